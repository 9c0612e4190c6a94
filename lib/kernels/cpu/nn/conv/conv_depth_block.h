/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of LINES lines by up to BLOCK_VECS vectors of positions, for conv_depth.h. A vector of the
 * source is loaded once for all lines that read it: taps form chains, in which each tap reads one line
 * below the tap before it.
 */
#ifndef TENSOR_CONV_DEPTH_BLOCK_H
#define TENSOR_CONV_DEPTH_BLOCK_H

#define BLOCK_VECS 2
#define CHAIN_TAPS 7 /* the most taps of a chain */

struct chain {
	int64_t offset; /* of its first tap */
	int taps;
};

struct chains {
	int n;
	struct chain chain[DEPTH_TAPS];
	int tap[DEPTH_TAPS]; /* chain by chain: the index of the tap */
};

/* The tap at `offset` that is in no chain yet, or -1. */
static int free_tap(const int64_t *offsets, const bool *used, int64_t depth, int64_t offset)
{
	for (int d = 0; d < depth; d++)
		if (!used[d] && offsets[d] == offset)
			return d;
	return -1;
}

static void chains_set(struct chains *c, const int64_t *offset, int64_t depth, int64_t line)
{
	bool used[DEPTH_TAPS] = { false };
	int n = 0;

	c->n = 0;
	while (n < depth) {
		struct chain *chain = &c->chain[c->n++];
		int d = 0, before;

		while (used[d])
			d++;
		while ((before = free_tap(offset, used, depth, offset[d] - line)) >= 0)
			d = before;
		*chain = (struct chain){ .offset = offset[d] };
		for (; d >= 0 && chain->taps < CHAIN_TAPS; chain->taps++) {
			used[d] = true;
			c->tap[n++] = d;
			d = free_tap(offset, used, depth, offset[d] + line);
		}
	}
}

/* Adds the taps of a chain to the sums of a block. The last vector has the lanes of `part`. */
static inline __attribute__((always_inline)) void add_chain(VEC sum[LINES][BLOCK_VECS],
							    const T *src, int64_t line, const T *w,
							    vec_part part, const int taps,
							    const int vecs)
{
#pragma GCC unroll 10
	for (int r = 0; r < taps + LINES - 1; r++, src += line) {
		VEC x[BLOCK_VECS];

#pragma GCC unroll 2
		for (int v = 0; v < vecs; v++)
			x[v] = v < vecs - 1 ? *(const VEC *)(src + v * LANES) :
					      LOAD(src + v * LANES, part);
#pragma GCC unroll 4
		for (int i = 0; i < LINES; i++)
#pragma GCC unroll 2
			for (int v = 0; v < vecs; v++)
				if (r - i >= 0 && r - i < taps)
					sum[i][v] += x[v] * w[r - i];
	}
}

static inline void store_lanes(T *out, int64_t step, VEC sum, int64_t n)
{
	T line[LANES];

	if (step == 1) {
		STORE(out, PART(n), sum);
		return;
	}
	*(VEC *)line = sum;
	for (int64_t k = 0; k < n; k++)
		out[k * step] = line[k];
}

#define CHAIN_CASE(N)                                                 \
	case N:                                                       \
		add_chain(sum, from, line, at, PART(lanes), N, vecs); \
		break;

/* One block at src and out, whose last vector has `lanes` lanes. Weights are in the order of the chains. */
static inline __attribute__((always_inline)) void depth_block(const struct conv_gemm *c,
							      const struct chains *chains,
							      const T *src, T *out, const T *w,
							      T bias, int64_t lanes, const int vecs)
{
	int64_t line = c->src.step[1], step = c->out_step[2];
	VEC sum[LINES][BLOCK_VECS];
	const T *at = w;

#pragma GCC unroll 8
	for (int i = 0; i < LINES * BLOCK_VECS; i++)
		sum[i / BLOCK_VECS][i % BLOCK_VECS] = bias - (VEC){ 0 };
	for (int k = 0; k < chains->n; at += chains->chain[k++].taps) {
		const T *from = src + chains->chain[k].offset;

		switch (chains->chain[k].taps) {
			CHAIN_CASE(1)
			CHAIN_CASE(2)
			CHAIN_CASE(3)
			CHAIN_CASE(4)
			CHAIN_CASE(5)
			CHAIN_CASE(6)
			CHAIN_CASE(7)
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < LINES; i++, out += c->out_step[1])
#pragma GCC unroll 2
		for (int v = 0; v < vecs; v++)
			store_lanes(out + v * LANES * step, step, sum[i][v],
				    v < vecs - 1 ? LANES : lanes);
}

/* All positions of a plane with LINES lines or more. The last block repeats lines of the one before it. */
static void depth_blocks(const struct conv_gemm *c, const struct chains *chains, const T *src,
			 T *out, const T *w, T bias)
{
	for (int64_t z = 0; z < c->grid[0]; z++)
		for (int64_t k = 0; k < c->grid[1]; k += LINES) {
			int64_t y = min64(k, c->grid[1] - LINES);
			const T *from = src + z * c->src.step[0] + y * c->src.step[1];
			T *to = out + z * c->out_step[0] + y * c->out_step[1];

			for (int64_t x = 0; x < c->grid[2]; x += BLOCK_VECS * LANES) {
				int64_t n = min64(c->grid[2] - x, BLOCK_VECS * LANES);
				T *at = to + x * c->out_step[2];

				if (n > LANES)
					depth_block(c, chains, from + x, at, w, bias, n - LANES, 2);
				else
					depth_block(c, chains, from + x, at, w, bias, n, 1);
			}
		}
}

#endif
