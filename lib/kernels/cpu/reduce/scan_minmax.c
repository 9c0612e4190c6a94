// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * cummax and cummin: the greatest or the least element so far along a dimension, and its last
 * position. NaN comes before every number. Elements are compared as i64, u64, f32 or f64.
 */
#include "kernels/cpu/reduce/lines.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/vec.h"

#include "base/reduced_float.h"

#define BLOCK 512 /* elements of a line, or lines of a tile */
#define GROUP 16  /* elements compared with the result so far at once */

/*
 * The functions of a scan for one dtype. best and best_at are the result so far and its
 * position.
 */
struct minmax_scanner {
	uint8_t dtype;
	/* Sets out to the results of x, at to their positions; from is the position of x[0]. If from
	 * is 0, *best is not read. out may be x. */
	void (*line)(const void *x, void *out, int64_t *at, int64_t n, int64_t from, void *best,
		     int64_t *best_at);
	/* Compares row number `row`, x, with the best of n lines. */
	void (*row)(void *best, int64_t *best_at, const void *x, int64_t n, int64_t row);
};

#define SCAN		  cummax
#define REPLACES(x, best) ((x) >= (best))
#include "kernels/cpu/reduce/scan_minmax_each.h"
#define LOOPS_FILE "kernels/cpu/reduce/scan_minmax_tile.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE
#undef SCAN
#undef REPLACES

#define SCAN		  cummin
#define REPLACES(x, best) ((x) <= (best))
#include "kernels/cpu/reduce/scan_minmax_each.h"
#define LOOPS_FILE "kernels/cpu/reduce/scan_minmax_tile.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef LOOPS_FILE

typedef void (*minmax_tile)(char *const *data, const struct reduce_iter *t, int64_t cols);

/* The dtypes of which tiles need no conversion. */
#define TILES(NAME)                                                                            \
	{                                                                                      \
		AT_INT(NAME),                                                                  \
			AT_FLOAT(NAME), [TENSOR_F16] = NAME##_f16, [TENSOR_BF16] = NAME##_bf16 \
	}
static const minmax_tile max_tiles[TENSOR_DTYPE_COUNT] = TILES(cummax_tile);
static const minmax_tile min_tiles[TENSOR_DTYPE_COUNT] = TILES(cummin_tile);

struct scan_job {
	const struct minmax_scanner *s;
	minmax_tile tile;	     /* or NULL */
	const struct reduce_iter *t; /* operands: values, self, indices */
	enum tensor_dtype dtype;
	bool by_rows;
};

static void scan_lines(const struct scan_job *j, char *const *data, int64_t lines)
{
	const struct reduce_iter_dims *along = &j->t->along, *kept = &j->t->kept;
	int64_t so = along->stride[0][0], sa = along->stride[1][0], si = along->stride[2][0];
	enum tensor_dtype dtype = j->s->dtype, i64 = TENSOR_I64;
	int64_t n = along->size[0], size = dtype_sizes[dtype], at[BLOCK], best_at = 0;
	/* Contiguous lines are read and written in place. */
	bool same = dtype == j->dtype, read = same && sa == size, write = same && so == size;
	bool numbered = si == sizeof(*at);
	_Alignas(64) char x[BLOCK * 8], best[8];

	for (int64_t l = 0; l < lines; l++) {
		char *o = data[0] + l * kept->stride[0][0];
		char *p = data[2] + l * kept->stride[2][0];
		const char *a = data[1] + l * kept->stride[1][0];

		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t m = n - i < BLOCK ? n - i : BLOCK;
			const void *from = read ? (const void *)(a + i * sa) : x;
			int64_t *to = numbered ? (int64_t *)(p + i * si) : at;

			if (!read)
				CPU_NAME(convert)(x, dtype, size, a + i * sa, j->dtype, sa, m);
			j->s->line(from, write ? o + i * so : x, to, m, i, best, &best_at);
			if (!write)
				CPU_NAME(convert)(o + i * so, j->dtype, so, x, dtype, size, m);
			if (!numbered)
				CPU_NAME(convert)(p + i * si, i64, si, at, i64, sizeof(*at), m);
		}
	}
}

static void scan_tile(const struct scan_job *j, char *const *data, int64_t cols)
{
	const struct reduce_iter_dims *along = &j->t->along, *kept = &j->t->kept;
	int64_t so = kept->stride[0][0], sa = kept->stride[1][0], si = kept->stride[2][0];
	enum tensor_dtype dtype = j->s->dtype, i64 = TENSOR_I64;
	int64_t size = dtype_sizes[dtype], at[BLOCK] = { 0 };
	_Alignas(64) char x[BLOCK * 8], best[BLOCK * 8] = { 0 };
	char *o = data[0], *a = data[1], *p = data[2];

	for (int64_t r = 0; r < along->size[0]; r++) {
		CPU_NAME(convert)(x, dtype, size, a, j->dtype, sa, cols);
		j->s->row(best, at, x, cols, r);
		CPU_NAME(convert)(o, j->dtype, so, best, dtype, size, cols);
		CPU_NAME(convert)(p, i64, si, at, i64, sizeof(*at), cols);
		o += along->stride[0][0];
		a += along->stride[1][0];
		p += along->stride[2][0];
	}
}

static void scan_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct scan_job *j = ctx;
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t n; begin < end; begin += n) {
		n = lines_next(j->t, begin, end, j->by_rows ? BLOCK : INT64_MAX, data);
		if (j->by_rows && j->tile)
			j->tile(data, j->t, n);
		else if (j->by_rows)
			scan_tile(j, data, n);
		else
			scan_lines(j, data, n);
	}
}

/* The scanners in of[] are those for i64, f32, f64 and u64. */
static int scan_minmax(const char *name, const struct minmax_scanner *const of[4],
		       const minmax_tile *tiles, tensor *values, tensor *indices,
		       const tensor *self, int dim)
{
	struct scan_job j = { .dtype = self->dtype, .tile = tiles[self->dtype] };
	const tensor *op[] = { values, self, indices };
	enum tensor_dtype wide = dtype_wide(self->dtype);
	struct reduce_iter t;

	if (unlikely(dtype_is_complex(self->dtype)))
		return tensor_kernel_no_dtype(name, self->dtype, "cpu");
	if (!self->numel)
		return 0;
	j.s = of[wide == TENSOR_F32 ? 1 : wide == TENSOR_F64 ? 2 : wide == TENSOR_U64 ? 3 : 0];
	reduce_iter_build(&t, op, 3, 1u << dim);
	j.t = &t;
	j.by_rows = j.tile ? lines_are_closer(&t) : lines_by_rows(&t);
	parallel_for(0, t.kept.count, lines_grain(&t, j.by_rows), scan_chunk, &j);
	return 0;
}

static int cpu_cummax(tensor *values, tensor *indices, const tensor *self, int dim)
{
	static const struct minmax_scanner *const of[] = { &cummax_i64, &cummax_f32, &cummax_f64,
							   &cummax_u64 };

	return scan_minmax("cummax", of, max_tiles, values, indices, self, dim);
}

static int cpu_cummin(tensor *values, tensor *indices, const tensor *self, int dim)
{
	static const struct minmax_scanner *const of[] = { &cummin_i64, &cummin_f32, &cummin_f64,
							   &cummin_u64 };

	return scan_minmax("cummin", of, min_tiles, values, indices, self, dim);
}

CPU_KERNELS(KERNEL(cummax), KERNEL(cummin))
