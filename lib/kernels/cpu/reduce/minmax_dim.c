// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The greatest or the least element and its first position: max and min along a dimension, argmax,
 * argmin. NaN comes before every number.
 *
 * A line is read once for the best value of each block; only the block with the best value of all
 * is searched for the position. Over rows, a value and a row number are kept for each of a tile of
 * outputs. If there are few outputs, the reduced dimension is split into parts, as in reduce.c.
 */
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec_minmax_int.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <stdlib.h>

#define LANES	  64
#define BLOCK	  1024 /* elements of a line that are compared before the best value is updated */
#define TILE	  512  /* outputs of a tile, at most */
#define ROWS_MAX  (1 << 20) /* rows whose number fits in 32 bits beside the -1 of none */
#define PARTS_MAX 64

/*
 * The functions for one dtype and direction. best[i] is an element, at[i] its position; positions
 * count from `from`; strides are in bytes.
 */
struct minmax_finder {
	size_t size;
	/* The best of a line. */
	void (*line)(void *best, int64_t *at, const char *p, int64_t n, int64_t stride,
		     int64_t from);
	/* The best of each column. */
	void (*rows)(void *best, int64_t *at, const char *p, int64_t rows, int64_t row_stride,
		     int64_t cols, int64_t col_stride, int64_t from);
	/* Joins results of later positions (best2, at2); of equal elements the earlier one stays. */
	void (*combine)(void *best, int64_t *at, const void *best2, const int64_t *at2, int64_t n);
	/* Joins q results for each of cols columns, at c, c + cols, ..., with positions in any order. */
	void (*fold)(void *best, int64_t *at, int64_t cols, int64_t q);
};

#define LOOPS_FILE "kernels/cpu/reduce/minmax_dim_loops.h"

#define MINMAX	     max
#define BEFORE(x, y) ((x) > (y))
#define BEST(x, y)   CPU_PASTE(CPU_PASTE(vec, MINMAX), SUFFIX)(x, y)
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#undef MINMAX
#undef BEFORE
#undef BEST

#define MINMAX	     min
#define BEFORE(x, y) ((x) < (y))
#define BEST(x, y)   CPU_PASTE(CPU_PASTE(vec, MINMAX), SUFFIX)(x, y)
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"

struct minmax_job {
	const struct minmax_finder *f;
	const struct reduce_iter *t; /* operands: indices, self, values (or indices again) */
	bool by_rows, want_values;
	int64_t tile, tiles; /* outputs of a tile; tiles of a run of the innermost kept dimension */
	int64_t parts, part; /* parts of the reduced dimension, and the length of one */
	struct tensor_storage *scratch; /* memory of best and at */
	char *best;			/* [parts][outputs], if there are several parts */
	int64_t *at;
};

static void store(const struct minmax_job *j, char *const *data, const char *best,
		  const int64_t *at, int64_t n)
{
	const struct reduce_iter_dims *kept = &j->t->kept;

	for (int64_t i = 0; i < n; i++)
		*(int64_t *)(data[0] + i * kept->stride[0][0]) = at[i];
	if (j->want_values && kept->stride[2][0] == (int64_t)j->f->size)
		memcpy(data[2], best, n * j->f->size);
	else
		for (int64_t i = 0; j->want_values && i < n; i++)
			memcpy(data[2] + i * kept->stride[2][0], best + i * j->f->size, j->f->size);
}

/* Contiguous rows of a few columns: q rows are treated as one, and their results joined. */
static void find_narrow(const struct minmax_finder *f, void *best, int64_t *at, const char *p,
			int64_t rows, int64_t cols, int64_t from)
{
	int64_t q = LANES / cols, stride = cols * (int64_t)f->size, whole = rows / q;
	_Alignas(64) char many[LANES * 8], rest[LANES * 8];
	int64_t many_at[LANES], rest_at[LANES];

	f->rows(many, many_at, p, whole, q * stride, q * cols, (int64_t)f->size, 0);
	for (int64_t i = 0; i < q * cols; i++)
		many_at[i] = from + many_at[i] * q + i / cols;
	f->fold(many, many_at, cols, q);
	if (rows > whole * q) {
		f->rows(rest, rest_at, p + whole * q * stride, rows - whole * q, stride, cols,
			(int64_t)f->size, from + whole * q);
		f->combine(many, many_at, rest, rest_at, cols);
	}
	memcpy(best, many, cols * f->size);
	memcpy(at, many_at, cols * sizeof(*at));
}

/* Outputs first to first + n of one run of the innermost kept dimension, for one part. */
static void find_outputs(const struct minmax_job *j, int64_t part, int64_t first, int64_t n)
{
	const struct reduce_iter *t = j->t;
	int64_t ks = t->kept.stride[1][0], step = t->along.stride[1][0];
	int64_t from = part * j->part, len = t->along.size[0] - from;
	_Alignas(64) char own[TILE * 8];
	int64_t own_at[TILE], *at = own_at;
	char *data[REDUCE_ITER_OPERANDS], *best = own;

	reduce_iter_seek(t, first, data);
	if (len > j->part)
		len = j->part;
	data[1] += from * step;
	if (j->parts > 1) {
		best = j->best + (part * t->kept.count + first) * j->f->size;
		at = j->at + part * t->kept.count + first;
	}
	if (j->by_rows && n <= LANES / 4 && len >= LANES && ks == (int64_t)j->f->size &&
	    step == n * ks)
		find_narrow(j->f, best, at, data[1], len, n, from);
	else if (j->by_rows)
		j->f->rows(best, at, data[1], len, step, n, ks, from);
	else
		for (int64_t i = 0; i < n; i++)
			j->f->line(best + i * j->f->size, at + i, data[1] + i * ks, len, step,
				   from);
	if (j->parts == 1)
		store(j, data, best, at, n);
}

/* Tiles are numbered by part, run of the innermost kept dimension, tile of the run. */
static void find_tiles(int64_t begin, int64_t end, void *ctx)
{
	const struct minmax_job *j = ctx;
	int64_t run = j->t->kept.size[0], runs = j->t->kept.count / run;

	for (int64_t i = begin; i < end; i++) {
		int64_t at = i % j->tiles * j->tile, n = run - at < j->tile ? run - at : j->tile;

		find_outputs(j, i / j->tiles / runs, i / j->tiles % runs * run + at, n);
	}
}

static void store_parts(const struct minmax_job *j)
{
	const struct reduce_iter *t = j->t;
	int64_t outputs = t->kept.count, run = t->kept.size[0];
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t i = 1; i < j->parts; i++)
		j->f->combine(j->best, j->at, j->best + i * outputs * j->f->size,
			      j->at + i * outputs, outputs);
	for (int64_t i = 0; i < outputs; i += run) {
		reduce_iter_seek(t, i, data);
		store(j, data, j->best + i * j->f->size, j->at + i, run);
	}
}

static int plan(struct minmax_job *j)
{
	const struct reduce_iter_dims *kept = &j->t->kept, *along = &j->t->along;
	int64_t parts = kept->count * along->count / (2 * ITER_GRAIN), results, units;

	/* Also for short lines, where the cost of a call exceeds that of the search. */
	j->by_rows = kept->stride[1][0] &&
		     (llabs(kept->stride[1][0]) < llabs(along->stride[1][0]) ||
		      (along->size[0] < 16 && kept->size[0] >= 16));
	j->tile = j->by_rows ? TILE : ITER_GRAIN / along->count + 1;
	if (j->tile > TILE)
		j->tile = TILE;
	j->tiles = (kept->size[0] + j->tile - 1) / j->tile;
	j->parts = 1;
	j->part = along->size[0];
	units = j->by_rows ? j->tiles * (kept->count / kept->size[0]) : kept->count;
	if (units >= 16 || kept->count > ITER_GRAIN || parts < 2)
		return 0;
	if (parts > PARTS_MAX)
		parts = PARTS_MAX;
	j->part = (along->size[0] + parts - 1) / parts;
	j->parts = (along->size[0] + j->part - 1) / j->part;
	results = j->parts * kept->count;
	j->scratch =
		storage_alloc(TENSOR_DEVICE_CPU, results * (sizeof(*j->at) + j->f->size), false);
	if (!j->scratch)
		return -thread()->error.code;
	j->at = j->scratch->data;
	j->best = (char *)(j->at + results);
	return 0;
}

#define MAX_ENTRY(d, T, D) [D] = &max_finder_##d,
#define MIN_ENTRY(d, T, D) [D] = &min_finder_##d,
static const struct minmax_finder *const maxima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MAX_ENTRY)[TENSOR_BOOL] = &max_finder_u8,
};
static const struct minmax_finder *const minima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MIN_ENTRY)[TENSOR_BOOL] = &min_finder_u8,
};

static int minmax_dim(const char *name, const struct minmax_finder *f, tensor *values,
		      tensor *indices, const tensor *self, uint32_t dims)
{
	const tensor *ops[] = { indices, self, values ? values : indices };
	struct minmax_job j = { .f = f, .want_values = values };
	int64_t units, grain;
	struct reduce_iter t;

	if (unlikely(!j.f))
		return tensor_kernel_no_dtype(name, self->dtype, "cpu");
	reduce_iter_build(&t, ops, 3, dims);
	if (!t.kept.count)
		return 0;
	j.t = &t;
	if (plan(&j) < 0)
		return -thread()->error.code;
	units = j.tiles * (t.kept.count / t.kept.size[0]) * j.parts;
	grain = ITER_GRAIN * units / (t.kept.count * t.along.count);
	parallel_for(0, units, grain > 1 ? grain : 1, find_tiles, &j);
	if (j.scratch) {
		store_parts(&j);
		storage_put(j.scratch);
	}
	return 0;
}

static int cpu_max_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return minmax_dim("max", maxima[self->dtype], values, indices, self, dims);
}

static int cpu_min_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return minmax_dim("min", minima[self->dtype], values, indices, self, dims);
}

static int cpu_argmax(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return minmax_dim("argmax", maxima[self->dtype], values, indices, self, dims);
}

static int cpu_argmin(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return minmax_dim("argmin", minima[self->dtype], values, indices, self, dims);
}

CPU_KERNELS(KERNEL(max_dim), KERNEL(min_dim), KERNEL(argmax), KERNEL(argmin))
