// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Between dense memory and the values of a sparse tensor: blocks moved, and blocks that are zero. */
#include "ops/sparse/indices.h"

#include "iter/iter.h"
#include "iter/parallel.h"

/* ---- moving ---- */

struct move {
	char *to;
	const char *from;
	const int64_t *at;
	size_t bytes;
	bool gather;
};

/* With constant bytes the copy is one instruction. */
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

/* ---- finding what is not zero ---- */

/*
 * An element is one unit or two (complex) of unsigned integers. Bits outside the mask, the sign
 * of floating point, do not make a number differ from zero.
 */
struct scan {
	const void *data;
	int64_t block, chunk;	/* units of a block; blocks of a chunk */
	int64_t *count, *found; /* of each chunk: how many, then where its first one goes */
};

#define SCAN(U, MASK, NAME)                                                  \
	static bool any_##NAME(const U *p, int64_t n)                        \
	{                                                                    \
		U all = 0;                                                   \
                                                                             \
		for (int64_t i = 0; i < n; i++)                              \
			all |= p[i] & (MASK);                                \
		return all != 0;                                             \
	}                                                                    \
	static void scan_##NAME(int64_t begin, int64_t end, void *ctx)       \
	{                                                                    \
		const struct scan *s = ctx;                                  \
		const U *p = s->data;                                        \
		int64_t n = s->found ? s->count[begin / s->chunk] : 0;       \
                                                                             \
		if (!s->found && s->block == 1) {                            \
			for (int64_t i = begin; i < end; i++)                \
				n += (p[i] & (MASK)) != 0;                   \
		} else if (!s->found) {                                      \
			for (int64_t i = begin; i < end; i++)                \
				n += any_##NAME(p + i * s->block, s->block); \
		} else {                                                     \
			for (int64_t i = begin; i < end; i++)                \
				if (any_##NAME(p + i * s->block, s->block))  \
					s->found[n++] = i;                   \
		}                                                            \
		if (!s->found)                                               \
			s->count[begin / s->chunk] = n;                      \
	}
SCAN(uint8_t, 0xff, i8)
SCAN(uint16_t, 0xffff, i16)
SCAN(uint32_t, 0xffffffff, i32)
SCAN(uint64_t, ~0ull, i64)
SCAN(uint8_t, 0x7f, f8)
SCAN(uint16_t, 0x7fff, f16)
SCAN(uint32_t, 0x7fffffff, f32)
SCAN(uint64_t, ~0ull >> 1, f64)

tensor *sparse_nonzero(const void *data, int64_t blocks, int64_t block, enum tensor_dtype dtype)
{
	static const parallel_fn scans[TENSOR_DTYPE_COUNT] = {
		[TENSOR_BOOL] = scan_i8,      [TENSOR_U8] = scan_i8,	  [TENSOR_I8] = scan_i8,
		[TENSOR_I16] = scan_i16,      [TENSOR_I32] = scan_i32,	  [TENSOR_I64] = scan_i64,
		[TENSOR_F16] = scan_f16,      [TENSOR_BF16] = scan_f16,	  [TENSOR_F32] = scan_f32,
		[TENSOR_F64] = scan_f64,      [TENSOR_C64] = scan_f32,	  [TENSOR_C128] = scan_f64,
		[TENSOR_U16] = scan_i16,      [TENSOR_U32] = scan_i32,	  [TENSOR_U64] = scan_i64,
		[TENSOR_F8_E4M3FN] = scan_f8, [TENSOR_F8_E5M2] = scan_f8,
	};
	struct scan s = { .data = data, .block = dtype_is_complex(dtype) ? 2 * block : block };
	int64_t chunks, total = 0;
	tensor *count, *found;

	s.chunk = s.block && s.block < ITER_GRAIN ? ITER_GRAIN / s.block : ITER_GRAIN;
	chunks = (blocks + s.chunk - 1) / s.chunk;
	count = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &chunks, 1);
	if (!count)
		return NULL;
	s.count = count->data;
	parallel_for(0, blocks, s.chunk, scans[dtype], &s);
	for (int64_t i = 0; i < chunks; i++) {
		int64_t n = s.count[i];

		s.count[i] = total;
		total += n;
	}
	found = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &total, 1);
	if (found) {
		s.found = found->data;
		parallel_for(0, total ? blocks : 0, s.chunk, scans[dtype], &s);
	}
	tensor_put(count);
	return found;
}
