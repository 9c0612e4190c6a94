/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of the input of depthwise convolutions with stride 2, and transposed ones: two lines of two vectors of the
 * result are computed together. Each of the taps reads a vector of the gradient for one of four sums, a pair of which is
 * interleaved when it is stored. Lines outside of the gradient are a line of zeros.
 */
#ifndef TENSOR_CONV_DEPTH_GRADIENT_H
#define TENSOR_CONV_DEPTH_GRADIENT_H

#define GRADIENT_READS 4 /* lines, and vectors of a line, that the taps read */
#define ZIP_LOW(s, j)  ((j) / 2 + ((j)&1) * LANES)
#define ZIP_HIGH(s, j) ((j) / 2 + ((j)&1) * LANES + LANES / 2)

#if ROWS_LANES
/* Tap t is in the sum of the positions with this parity. odd: of the padding. */
#define TAP_PARITY(t, odd) (((t) + (odd)) & 1)
/* The element that it reads, counted back from the last. */
#define TAP_BACK(t, odd) ((odd) - (TAP_PARITY(t, odd) + (odd) - (t)) / 2)

/* The memory of a task: lanes of the vectors that are read for each block of a line, and zeros. */
struct gradient_memory {
	struct tensor_storage *mem;
	vec_part *part;
	T *zeros;
};

static inline __attribute__((always_inline)) void store_zipped(T *to, VEC even, VEC odd, int64_t n)
{
	VEC low = __builtin_shuffle(even, odd, (MASK){ EACH_LANE(ZIP_LOW, 0) });
	VEC high = __builtin_shuffle(even, odd, (MASK){ EACH_LANE(ZIP_HIGH, 0) });

	STORE(to, PART(min64(n, LANES)), low);
	if (n > LANES)
		STORE(to + LANES, PART(min64(n - LANES, LANES)), high);
}

/* A block of `lines` lines at `to`, whose taps read vectors at row[i] + x. n: elements of a line that are stored. */
static inline __attribute__((always_inline)) void
gradient_block(T *to, int64_t pitch, int lines, int64_t n, const T *const *row, int64_t x,
	       const vec_part *part, const T *w, T bias, const int taps, const int odd)
{
	VEC sum[4];

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		sum[i] = bias - (VEC){ 0 };
#pragma GCC unroll 7
	for (int r = 0; r < taps; r++)
#pragma GCC unroll 7
		for (int k = 0; k < taps; k++) {
			const int back = TAP_BACK(k, odd);

			sum[2 * TAP_PARITY(r, odd) + TAP_PARITY(k, odd)] +=
				w[r * taps + k] *
				LOAD(row[TAP_BACK(r, odd)] + x - back, part[back]);
		}
	store_zipped(to, sum[0], sum[1], n);
	if (lines > 1)
		store_zipped(to + pitch, sum[2], sum[3], n);
}

/* A plane of the gradient of the input. */
static inline __attribute__((always_inline)) void
gradient_plane(const struct conv_depth_gradient *g, const struct gradient_memory *m, T *out,
	       const T *grad, const T *w, T bias, const int taps, const int odd)
{
	int64_t first = g->padding[0] / 2 + odd,
		x = g->padding[1] / 2 + odd; /* the last that position 0 reads */
	const T *row[GRADIENT_READS];

	for (int64_t y = 0; y < g->out_size[0]; y += 2, first++) {
		const vec_part *part = m->part;

		for (int i = 0; i < GRADIENT_READS; i++) {
			int64_t line = first - i;

			row[i] = line >= 0 && line < g->grad_size[0] ?
					 grad + line * g->grad_size[1] :
					 m->zeros;
		}
		for (int64_t i = 0; i < g->out_size[1]; i += 2 * LANES, part += GRADIENT_READS)
			gradient_block(out + y * g->out_size[1] + i, g->out_size[1],
				       (int)min64(g->out_size[0] - y, 2), g->out_size[1] - i, row,
				       x + i / 2, part, w, bias, taps, odd);
	}
}

static bool gradient_memory_begin(struct gradient_memory *m, const struct conv_depth_gradient *g)
{
	int64_t blocks = (g->out_size[1] + 2 * LANES - 1) / (2 * LANES), size = g->grad_size[1];
	int64_t at = g->padding[1] / 2 + g->padding[1] % 2;
	size_t zeros = (size * sizeof(T) + 63) / 64 * 64;

	m->mem = storage_alloc(TENSOR_DEVICE_CPU,
			       zeros + blocks * GRADIENT_READS * sizeof(*m->part), false);
	if (!m->mem)
		return false;
	m->zeros = m->mem->data;
	m->part = (vec_part *)((char *)m->mem->data + zeros);
	memset(m->zeros, 0, zeros);
	for (int64_t i = 0; i < blocks * GRADIENT_READS; i++) {
		int64_t from = at + i / GRADIENT_READS * LANES - i % GRADIENT_READS;
		int64_t until = min64(size - from, LANES);

		from = from < 0 ? min64(-from, LANES) : 0;
		m->part[i] = PART_OF((int)from, (int)(until < from ? from : until));
	}
	return true;
}

static void gradient_planes(int64_t begin, int64_t end, void *ctx)
{
	struct conv_depth_gradient *g = ctx;
	int64_t plane = g->grad_size[0] * g->grad_size[1], result = g->out_size[0] * g->out_size[1];
	struct gradient_memory m;

	if (!gradient_memory_begin(&m, g)) {
		g->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t channel = i % g->channels;
		const T *grad = (const T *)g->grad + i * plane;
		const T *w = (const T *)g->weight + channel * g->taps * g->taps;
		T *out = (T *)g->out + i * result;
		T bias = g->bias ? ((const T *)g->bias)[channel] : 0;

		if (g->taps == 3)
			gradient_plane(g, &m, out, grad, w, bias, 3, 1);
		else if (g->taps == 5)
			gradient_plane(g, &m, out, grad, w, bias, 5, 0);
		else
			gradient_plane(g, &m, out, grad, w, bias, 7, 1);
	}
	storage_put(m.mem);
}

int CONV(conv_depth_gradient)(struct conv_depth_gradient *g)
{
	int64_t work = g->taps * g->taps * g->grad_size[0] * g->grad_size[1] + 1;

	parallel_for(0, g->planes, work < DEPTH_WORK ? DEPTH_WORK / work : 1, gradient_planes, g);
	return g->failed ? tensor_fail(ENOMEM, "convolution: no memory for a line") : 0;
}
#else
int CONV(conv_depth_gradient)(struct conv_depth_gradient *g)
{
	return 1;
}
#endif

#endif
