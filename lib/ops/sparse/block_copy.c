// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies between dense memory and the values of a sparse tensor, and the search for non-zero
 * blocks. */
#include "ops/sparse/indices.h"

#include "iter/iter.h"
#include "iter/parallel.h"

/* ---- copies ---- */

struct move {
	char *to;
	const char *from;
	const int64_t *at;
	size_t bytes;
	bool gather;
};

/* Inlined with constant `bytes`, so that the copy of a block is one instruction. */
static inline void move_blocks(const struct move *m, int64_t begin, int64_t end, size_t bytes)
{
	for (int64_t i = begin; i < end; i++) {
		int64_t at = m->at[i];

		if (!m->gather)
			memcpy(m->to + at * bytes, m->from + i * bytes, bytes);
		else if (at >= 0)
			memcpy(m->to + i * bytes, m->from + at * bytes, bytes);
		else
			memset(m->to + i * bytes, 0, bytes);
	}
}

static void move_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct move *m = ctx;

	switch (m->bytes) {
	case 1:
		move_blocks(m, begin, end, 1);
		break;
	case 2:
		move_blocks(m, begin, end, 2);
		break;
	case 4:
		move_blocks(m, begin, end, 4);
		break;
	case 8:
		move_blocks(m, begin, end, 8);
		break;
	default:
		move_blocks(m, begin, end, m->bytes);
	}
}

static void move(struct move *m, int64_t n)
{
	int64_t grain = 4 * ITER_GRAIN / (int64_t)(m->bytes + 1);

	parallel_for(0, m->bytes ? n : 0, grain > 64 ? grain : 64, move_chunk, m);
}

void sparse_scatter(void *to, const void *from, const int64_t *at, int64_t n, size_t bytes)
{
	move(&(struct move){ to, from, at, bytes, false }, n);
}

void sparse_gather(void *to, const void *from, const int64_t *at, int64_t n, size_t bytes)
{
	move(&(struct move){ to, from, at, bytes, true }, n);
}

/* ---- search for non-zero blocks ---- */

/* An element is one unsigned integer, or two if complex. Bits outside the mask (the sign of
 * floating point) do not make it non-zero. */
struct scan {
	const void *data;
	uint64_t mask;
	int64_t block, chunk; /* units per block; blocks per chunk */
	/* per chunk: number of blocks found, then position of its first result */
	int64_t *count, *found;
};

#define UNIT uint8_t
#define ANY  any_u8
#define SCAN scan_u8
#include "ops/sparse/nonzero_scan.h"
#define UNIT uint16_t
#define ANY  any_u16
#define SCAN scan_u16
#include "ops/sparse/nonzero_scan.h"
#define UNIT uint32_t
#define ANY  any_u32
#define SCAN scan_u32
#include "ops/sparse/nonzero_scan.h"
#define UNIT uint64_t
#define ANY  any_u64
#define SCAN scan_u64
#include "ops/sparse/nonzero_scan.h"

static uint64_t nonzero_mask(enum tensor_dtype dtype, size_t unit)
{
	uint64_t bits = ~0ull >> (64 - 8 * unit);

	return dtype_is_float(dtype) || dtype_is_complex(dtype) ? bits >> 1 : bits;
}

tensor *sparse_nonzero(const void *data, int64_t blocks, int64_t block, enum tensor_dtype dtype)
{
	static const parallel_fn scans[] = {
		[1] = scan_u8, [2] = scan_u16, [4] = scan_u32, [8] = scan_u64
	};
	bool complex = dtype_is_complex(dtype);
	size_t unit = dtype_sizes[dtype] >> complex;
	struct scan s = { .data = data,
			  .mask = nonzero_mask(dtype, unit),
			  .block = block << complex };
	int64_t chunks, total = 0;
	tensor *count, *found;

	s.chunk = s.block && s.block < ITER_GRAIN ? ITER_GRAIN / s.block : ITER_GRAIN;
	chunks = (blocks + s.chunk - 1) / s.chunk;
	count = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &chunks, 1);
	if (!count)
		return NULL;
	s.count = count->data;
	parallel_for(0, blocks, s.chunk, scans[unit], &s);
	for (int64_t i = 0; i < chunks; i++) {
		int64_t n = s.count[i];

		s.count[i] = total;
		total += n;
	}
	found = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &total, 1);
	if (found) {
		s.found = found->data;
		parallel_for(0, total ? blocks : 0, s.chunk, scans[unit], &s);
	}
	tensor_put(count);
	return found;
}
