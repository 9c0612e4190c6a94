// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The greatest and the least so far along a dimension, and where it is last. NaN comes before
 * anything, and stays. Elements are compared as i64, u64, f32 or f64.
 */
#include "kernels/cpu/simd/cpu.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK 512 /* elements of a line, or lines side by side */

/* `first`: the elements are the first of their lines. Positions count from `from`. */
struct finder {
	uint8_t dtype;
	void (*line)(void *x, int64_t *at, int64_t n, int64_t from, void *best, int64_t *best_at);
	void (*row)(void *best, int64_t *at, const void *x, int64_t n, int64_t row);
};

#define FINDER(NAME, T, D, OP)                                                                \
	static void NAME##_line(void *buf, int64_t *at, int64_t n, int64_t from, void *best_, \
				int64_t *best_at)                                             \
	{                                                                                     \
		T *x = buf, best = from ? *(T *)best_ : x[0];                                 \
		int64_t where = from ? *best_at : 0;                                          \
                                                                                              \
		for (int64_t i = 0; i < n; i++) {                                             \
			bool take = (x[i] != x[i]) | ((x[i] OP best) & (best == best));       \
                                                                                              \
			best = take ? x[i] : best;                                            \
			where = take ? from + i : where;                                      \
			x[i] = best;                                                          \
			at[i] = where;                                                        \
		}                                                                             \
		*(T *)best_ = best;                                                           \
		*best_at = where;                                                             \
	}                                                                                     \
                                                                                              \
	static void NAME##_row(void *best_, int64_t *restrict at, const void *buf, int64_t n, \
			       int64_t row)                                                   \
	{                                                                                     \
		T *restrict best = best_;                                                     \
		const T *restrict x = buf;                                                    \
                                                                                              \
		for (int64_t i = 0; i < n; i++) {                                             \
			bool take = (row == 0) | (x[i] != x[i]) |                             \
				    ((x[i] OP best[i]) & (best[i] == best[i]));               \
                                                                                              \
			best[i] = take ? x[i] : best[i];                                      \
			at[i] = take ? row : at[i];                                           \
		}                                                                             \
	}                                                                                     \
                                                                                              \
	static const struct finder NAME = { D, NAME##_line, NAME##_row };

FINDER(max_i64, int64_t, TENSOR_I64, >=)
FINDER(max_u64, uint64_t, TENSOR_U64, >=)
FINDER(max_f32, float, TENSOR_F32, >=)
FINDER(max_f64, double, TENSOR_F64, >=)
FINDER(min_i64, int64_t, TENSOR_I64, <=)
FINDER(min_u64, uint64_t, TENSOR_U64, <=)
FINDER(min_f32, float, TENSOR_F32, <=)
FINDER(min_f64, double, TENSOR_F64, <=)

struct job {
	const struct finder *f;
	const struct reduce_iter *t; /* operands: values, self, indices */
	enum tensor_dtype dtype;
	bool by_rows;
};

static void find_lines(const struct job *j, char *const *data, int64_t lines)
{
	const struct reduce_iter_dims *along = &j->t->along, *kept = &j->t->kept;
	int64_t n = along->size[0], size = dtype_sizes[j->f->dtype], at[BLOCK], best_at = 0;
	_Alignas(64) char x[BLOCK * 8], best[8];

	for (int64_t l = 0; l < lines; l++) {
		char *o = data[0] + l * kept->stride[0][0];
		char *p = data[2] + l * kept->stride[2][0];
		const char *a = data[1] + l * kept->stride[1][0];

		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t m = n - i < BLOCK ? n - i : BLOCK;

			CPU_NAME(convert)
			(x, j->f->dtype, size, a + i * along->stride[1][0], j->dtype,
			 along->stride[1][0], m);
			j->f->line(x, at, m, i, best, &best_at);
			CPU_NAME(convert)
			(o + i * along->stride[0][0], j->dtype, along->stride[0][0], x, j->f->dtype,
			 size, m);
			CPU_NAME(convert)
			(p + i * along->stride[2][0], TENSOR_I64, along->stride[2][0], at,
			 TENSOR_I64, 8, m);
		}
	}
}

static void find_tile(const struct job *j, char *const *data, int64_t cols)
{
	const struct reduce_iter_dims *along = &j->t->along, *kept = &j->t->kept;
	int64_t size = dtype_sizes[j->f->dtype], at[BLOCK] = { 0 };
	_Alignas(64) char x[BLOCK * 8], best[BLOCK * 8] = { 0 };

	for (int64_t r = 0; r < along->size[0]; r++) {
		CPU_NAME(convert)
		(x, j->f->dtype, size, data[1] + r * along->stride[1][0], j->dtype,
		 kept->stride[1][0], cols);
		j->f->row(best, at, x, cols, r);
		CPU_NAME(convert)
		(data[0] + r * along->stride[0][0], j->dtype, kept->stride[0][0], best, j->f->dtype,
		 size, cols);
		CPU_NAME(convert)
		(data[2] + r * along->stride[2][0], TENSOR_I64, kept->stride[2][0], at, TENSOR_I64,
		 8, cols);
	}
}

static void find_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct job *j = ctx;
	int64_t run = j->t->kept.size[0];
	char *data[REDUCE_ITER_OPERANDS];

	while (begin < end) {
		int64_t n = run - begin % run;

		if (n > end - begin)
			n = end - begin;
		if (j->by_rows && n > BLOCK)
			n = BLOCK;
		reduce_iter_seek(j->t, begin, data);
		if (j->by_rows)
			find_tile(j, data, n);
		else
			find_lines(j, data, n);
		begin += n;
	}
}

static int find(const struct finder *const of[4], tensor *values, tensor *indices,
		const tensor *self, int dim, const char *name)
{
	struct job j = { .dtype = self->dtype };
	const tensor *op[] = { values, self, indices };
	enum tensor_dtype wide = dtype_wide(self->dtype);
	int64_t grain;
	struct reduce_iter t;

	if (unlikely(dtype_is_complex(self->dtype)))
		return kernel_no_dtype(name, self->dtype, "cpu");
	if (!self->numel)
		return 0;
	j.f = of[wide == TENSOR_F32 ? 1 : wide == TENSOR_F64 ? 2 : wide == TENSOR_U64 ? 3 : 0];
	reduce_iter_build(&t, op, 3, 1u << dim);
	j.t = &t;
	j.by_rows = t.kept.size[0] >= 8 && llabs(t.kept.stride[1][0]) < llabs(t.along.stride[1][0]);
	grain = ITER_GRAIN / t.along.count;
	grain = j.by_rows && grain < 128 ? 128 : grain < 1 ? 1 : grain;
	parallel_for(0, t.kept.count, grain, find_chunk, &j);
	return 0;
}

static int cpu_cummax(tensor *values, tensor *indices, const tensor *self, int dim)
{
	static const struct finder *const of[] = { &max_i64, &max_f32, &max_f64, &max_u64 };

	return find(of, values, indices, self, dim, "cummax");
}

static int cpu_cummin(tensor *values, tensor *indices, const tensor *self, int dim)
{
	static const struct finder *const of[] = { &min_i64, &min_f32, &min_f64, &min_u64 };

	return find(of, values, indices, self, dim, "cummin");
}

CPU_KERNELS(K(cummax), K(cummin))
