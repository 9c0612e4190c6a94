// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * sum and max over any dimensions.
 *
 * Two ways through memory. Along lines, where the innermost reduced dimension is the closest one:
 * each output is 64 running values over its line, folded at the end. Over rows, where a kept
 * dimension is closest: a tile of neighbouring outputs takes whole rows at once. Both split what
 * is long into halves and add the results of the halves, a tree whose shape follows from the
 * tensor's alone: few roundings a sum, and the same ones on any number of threads.
 */
#include "cpu.h"

#include "../nest.h"
#include "../parallel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define LANES	   64 /* running values of a line */
#define LINE_MAX   8192 /* elements of a line before it is halved */
#define ROWS_MAX   256 /* rows of a tile before they are halved */
#define TILE_BYTES 4096
#define PARTS_MAX  64 /* of a reduction that has too few outputs to share out */

/* What differs by operator and dtype. Accumulators have the output's dtype. */
struct reducer {
	size_t size;
	/* acc[0..n) becomes the value that changes nothing. */
	void (*clear)(void *acc, int64_t n);
	/* acc[i] takes in other[i]. */
	void (*combine)(void *acc, const void *other, int64_t n);
	/* acc[c] takes in element c of each row; strides in bytes. */
	void (*rows)(void *acc, const char *p, int64_t rows, int64_t row_stride, int64_t cols,
		     int64_t col_stride);
	/* acc[0] takes in n elements. */
	void (*line)(void *acc, const char *p, int64_t n, int64_t stride);
};

/* AT_ONCE: rows that are combined before the running values are touched, 8 or 1. gcc makes
 * vectors of a tree of additions, but not of one of choices. */
#define REDUCER(NAME, T, A, IDENTITY, AT_ONCE, EXPR)                                              \
	static inline A NAME##_op(A x, A y)                                                       \
	{                                                                                         \
		return (EXPR);                                                                    \
	}                                                                                         \
                                                                                                  \
	static void NAME##_clear(void *acc, int64_t n)                                            \
	{                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                   \
			((A *)acc)[i] = (IDENTITY);                                               \
	}                                                                                         \
                                                                                                  \
	static void NAME##_combine(void *acc, const void *other, int64_t n)                       \
	{                                                                                         \
		A *restrict a = acc;                                                              \
		const A *restrict b = other;                                                      \
                                                                                                  \
		for (int64_t i = 0; i < n; i++)                                                   \
			a[i] = NAME##_op(a[i], b[i]);                                             \
	}                                                                                         \
                                                                                                  \
	static inline A NAME##_op4(A x, A y, A z, A w)                                            \
	{                                                                                         \
		return NAME##_op(NAME##_op(x, y), NAME##_op(z, w));                               \
	}                                                                                         \
                                                                                                  \
	static inline __attribute__((always_inline)) void NAME##_dense(                           \
		A *restrict a, const char *restrict p, int64_t rows, int64_t rs, int64_t cols)    \
	{                                                                                         \
		for (; (AT_ONCE) == 8 && rows >= 8; rows -= 8, p += 8 * rs) {                     \
			const T *r0 = (const T *)p, *r1 = (const T *)(p + rs);                    \
			const T *r2 = (const T *)(p + 2 * rs), *r3 = (const T *)(p + 3 * rs);     \
			const T *r4 = (const T *)(p + 4 * rs), *r5 = (const T *)(p + 5 * rs);     \
			const T *r6 = (const T *)(p + 6 * rs), *r7 = (const T *)(p + 7 * rs);     \
                                                                                                  \
			for (int64_t c = 0; c < cols; c++)                                        \
				a[c] = NAME##_op(                                                 \
					a[c], NAME##_op(NAME##_op4(r0[c], r1[c], r2[c], r3[c]),   \
							NAME##_op4(r4[c], r5[c], r6[c], r7[c]))); \
		}                                                                                 \
		for (; rows > 0; rows--, p += rs)                                                 \
			for (int64_t c = 0; c < cols; c++)                                        \
				a[c] = NAME##_op(a[c], ((const T *)p)[c]);                        \
	}                                                                                         \
                                                                                                  \
	static void NAME##_rows(void *acc, const char *p, int64_t rows, int64_t rs, int64_t cols, \
				int64_t cs)                                                       \
	{                                                                                         \
		A *a = acc;                                                                       \
                                                                                                  \
		if (cs == sizeof(T)) {                                                            \
			NAME##_dense(a, p, rows, rs, cols);                                       \
			return;                                                                   \
		}                                                                                 \
		for (int64_t c = 0; c < cols; c++, p += cs)                                       \
			for (int64_t r = 0; r < rows; r++)                                        \
				a[c] = NAME##_op(a[c], *(const T *)(p + r * rs));                 \
	}                                                                                         \
                                                                                                  \
	static inline A NAME##_eight(const char *p, int64_t s)                                    \
	{                                                                                         \
		return NAME##_op(NAME##_op4(*(const T *)p, *(const T *)(p + s),                   \
					    *(const T *)(p + 2 * s), *(const T *)(p + 3 * s)),    \
				 NAME##_op4(*(const T *)(p + 4 * s), *(const T *)(p + 5 * s),     \
					    *(const T *)(p + 6 * s), *(const T *)(p + 7 * s)));   \
	}                                                                                         \
                                                                                                  \
	static void NAME##_line(void *acc, const char *p, int64_t n, int64_t s)                   \
	{                                                                                         \
		A lane[LANES], sum = *(A *)acc;                                                   \
		int64_t width = 8;                                                                \
                                                                                                  \
		NAME##_clear(lane, LANES);                                                        \
		if (s == sizeof(T) && n >= LANES) {                                               \
			NAME##_dense(lane, p, n / LANES, LANES * sizeof(T), LANES);               \
			p += n / LANES * LANES * sizeof(T);                                       \
			n %= LANES;                                                               \
			width = LANES;                                                            \
		}                                                                                 \
		for (; n >= LANES; n -= LANES, p += LANES * s)                                    \
			for (int64_t k = 0; k < 8; k++)                                           \
				lane[k] = NAME##_op(lane[k], NAME##_eight(p + 8 * k * s, s));     \
		for (; n >= 8; n -= 8, p += 8 * s)                                                \
			for (int64_t k = 0; k < 8; k++)                                           \
				lane[k] = NAME##_op(lane[k], *(const T *)(p + k * s));            \
		for (; width > 1; width /= 2)                                                     \
			for (int64_t k = 0; k < width / 2; k++)                                   \
				lane[k] = NAME##_op(lane[k], lane[k + width / 2]);                \
		for (; n > 0; n--, p += s)                                                        \
			sum = NAME##_op(sum, *(const T *)p);                                      \
		*(A *)acc = NAME##_op(sum, lane[0]);                                              \
	}                                                                                         \
                                                                                                  \
	static const struct reducer NAME = {sizeof(A), NAME##_clear, NAME##_combine, NAME##_rows, \
					    NAME##_line};

/* Integers are added as i64; bool counts what is true. */
#define SUM_INT(d, T, D)   REDUCER(sum_##d, T, int64_t, 0, 8, x + y)
#define SUM_FLOAT(d, T, D) REDUCER(sum_##d, T, T, 0, 8, x + y)
DTYPES_INT(SUM_INT)
DTYPES_FLOAT(SUM_FLOAT)

/* A NaN wins, and stays. */
#define MAX(d, T, LOWEST) REDUCER(max_##d, T, T, LOWEST, 1, ((y > x) | (y != y)) ? y : x)
MAX(u8, uint8_t, 0)
MAX(i8, int8_t, INT8_MIN)
MAX(i16, int16_t, INT16_MIN)
MAX(i32, int32_t, INT32_MIN)
MAX(i64, int64_t, INT64_MIN)
MAX(f32, float, -INFINITY)
MAX(f64, double, -INFINITY)

/* ---- the tree ------------------------------------------------------------------------------- */

struct job {
	const struct reducer *r;
	const struct nest *t;
	bool by_rows;
	int64_t below[TENSOR_MAX_DIMS]; /* reduced positions in the dimensions inside this one */
	int64_t tile, tiles; /* outputs of a tile; tiles of a run of the innermost kept dimension */
	int64_t parts, part; /* of the outermost reduced dimension, and the length of one */
	char *partial; /* parts x outputs, when there are several parts */
};

/* acc takes in n positions of reduced dimension d, and all of those inside it. */
static void add_rows(const struct job *j, void *acc, const char *p, int64_t cols, int d, int64_t n)
{
	const struct nest_dims *along = &j->t->along;
	int64_t step = along->stride[1][d], half = n / 2;
	_Alignas(64) char right[TILE_BYTES];

	if (d == 0 && n <= ROWS_MAX) {
		j->r->rows(acc, p, n, step, cols, j->t->kept.stride[1][0]);
	} else if (n == 1 || n * j->below[d] <= ROWS_MAX) {
		for (int64_t i = 0; i < n; i++)
			add_rows(j, acc, p + i * step, cols, d - 1, along->size[d - 1]);
	} else {
		j->r->clear(right, cols);
		add_rows(j, acc, p, cols, d, half);
		add_rows(j, right, p + half * step, cols, d, n - half);
		j->r->combine(acc, right, cols);
	}
}

static void add_lines(const struct job *j, void *acc, const char *p, int d, int64_t n)
{
	const struct nest_dims *along = &j->t->along;
	int64_t step = along->stride[1][d], half = d ? n / 2 : (n / 2 + LANES - 1) / LANES * LANES;
	_Alignas(8) char right[8];

	if (d == 0 && n <= LINE_MAX) {
		j->r->line(acc, p, n, step);
	} else if (n == 1) {
		add_lines(j, acc, p, d - 1, along->size[d - 1]);
	} else {
		j->r->clear(right, 1);
		add_lines(j, acc, p, d, half);
		add_lines(j, right, p + half * step, d, n - half);
		j->r->combine(acc, right, 1);
	}
}

/* ---- where results go ------------------------------------------------------------------------ */

static void store(const struct job *j, char *out, int64_t stride, const char *acc, int64_t n)
{
	size_t size = j->r->size;

	if (stride == (int64_t)size) {
		memcpy(out, acc, n * size);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		memcpy(out + i * stride, acc + i * size, size);
}

/* n neighbouring outputs of one run of the innermost kept dimension, from number `first` on. */
static void reduce_outputs(const struct job *j, int64_t part, int64_t first, int64_t n)
{
	const struct nest *t = j->t;
	int d = t->along.n - 1;
	int64_t begin = part * j->part, len = t->along.size[d] - begin;
	_Alignas(64) char acc[TILE_BYTES];
	char *data[NEST_OPERANDS];

	nest_seek(t, first, data);
	if (len > j->part)
		len = j->part;
	data[1] += begin * t->along.stride[1][d];
	j->r->clear(acc, n);
	if (j->by_rows)
		add_rows(j, acc, data[1], n, d, len);
	else
		for (int64_t i = 0; i < n; i++)
			add_lines(j, acc + i * j->r->size, data[1] + i * t->kept.stride[1][0], d,
				  len);
	if (j->parts > 1)
		store(j, j->partial + (part * t->kept.count + first) * j->r->size, j->r->size, acc,
		      n);
	else
		store(j, data[0], t->kept.stride[0][0], acc, n);
}

/* Tiles by number: parts outermost, then runs of the innermost kept dimension. */
static void reduce_tiles(int64_t begin, int64_t end, void *ctx)
{
	const struct job *j = ctx;
	int64_t run = j->t->kept.size[0], runs = j->t->kept.count / run;

	for (int64_t i = begin; i < end; i++) {
		int64_t at = i % j->tiles * j->tile, n = run - at < j->tile ? run - at : j->tile;
		int64_t part = i / j->tiles / runs;

		reduce_outputs(j, part, i / j->tiles % runs * run + at, n);
	}
}

static void store_partials(const struct job *j)
{
	const struct nest *t = j->t;
	int64_t run = t->kept.size[0], bytes = t->kept.count * j->r->size;
	char *data[NEST_OPERANDS];

	for (int64_t step = 1; step < j->parts; step *= 2)
		for (int64_t i = 0; i + step < j->parts; i += 2 * step)
			j->r->combine(j->partial + i * bytes, j->partial + (i + step) * bytes,
				      t->kept.count);
	for (int64_t i = 0; i < t->kept.count; i += run) {
		nest_seek(t, i, data);
		store(j, data[0], t->kept.stride[0][0], j->partial + i * j->r->size, run);
	}
}

/* ---- planning -------------------------------------------------------------------------------- */

/* Few outputs of many elements are cut along the outermost reduced dimension. */
static void plan_parts(struct job *j, int64_t units, int64_t total)
{
	const struct nest *t = j->t;
	int64_t longest = t->along.size[t->along.n - 1], parts = total / (2 * ITER_GRAIN);

	if (units >= 16 || t->kept.count > ITER_GRAIN || parts < 2)
		return;
	if (parts > PARTS_MAX)
		parts = PARTS_MAX;
	if (parts > longest)
		parts = longest;
	j->part = (longest + parts - 1) / parts;
	j->parts = (longest + j->part - 1) / j->part;
}

static void plan(struct job *j)
{
	const struct nest_dims *kept = &j->t->kept, *along = &j->t->along;
	int64_t below = 1, units;

	for (int d = 0; d < along->n; d++) {
		j->below[d] = below;
		below *= along->size[d];
	}
	/* Lines of a handful of elements cost more to begin than to add. */
	j->by_rows = kept->stride[1][0] &&
		     (llabs(kept->stride[1][0]) < llabs(along->stride[1][0]) ||
		      (along->size[0] < 16 && kept->size[0] >= 16));
	j->tile = TILE_BYTES / j->r->size;
	j->tiles = (kept->size[0] + j->tile - 1) / j->tile;
	units = j->tiles * (kept->count / kept->size[0]);
	j->parts = 1;
	j->part = along->size[along->n - 1];
	plan_parts(j, j->by_rows ? units : kept->count, kept->count * along->count);
	/* Lines are shared out in smaller groups, when each is long. */
	if (!j->by_rows && kept->size[0] > 1 && along->count > ITER_GRAIN / j->tile) {
		j->tile = ITER_GRAIN / along->count + 1;
		j->tiles = (kept->size[0] + j->tile - 1) / j->tile;
	}
}

static int reduce(const struct reducer *r, tensor *out, const tensor *self, uint32_t dims)
{
	const tensor *ops[] = {out, self};
	struct job j = {.r = r};
	int64_t units, grain;
	struct nest t;

	nest_build(&t, ops, 2, dims);
	if (!t.kept.count)
		return 0;
	j.t = &t;
	plan(&j);
	if (j.parts > 1) {
		j.partial = malloc(j.parts * t.kept.count * r->size);
		if (!j.partial)
			return tensor_fail(ENOMEM, "no memory for %lld partial results",
					   (long long)(j.parts * t.kept.count));
	}
	units = j.tiles * (t.kept.count / t.kept.size[0]) * j.parts;
	grain = ITER_GRAIN * units / (t.kept.count * t.along.count + 1);
	parallel_for(0, units, grain > 1 ? grain : 1, reduce_tiles, &j);
	if (j.parts > 1)
		store_partials(&j);
	free(j.partial);
	return 0;
}

/* One output of a few elements in a row, without the set-up. */
static inline bool is_short_line(const tensor *self, uint32_t dims)
{
	return self->contiguous && self->numel <= LINE_MAX && dims + 1 == 1u << self->ndim;
}

#define SUM(d, T, D) [D] = &sum_##d,
#define M(d, T, D)   [D] = &max_##d,
static const struct reducer *const sums[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(SUM)[TENSOR_BOOL] = &sum_u8,
};
static const struct reducer *const maxima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(M)[TENSOR_BOOL] = &max_u8,
};

static int run(const char *name, const struct reducer *r, tensor *out, const tensor *self,
	       uint32_t dims)
{
	if (unlikely(!r))
		return kernel_no_dtype(name, self->dtype, "cpu");
	if (likely(is_short_line(self, dims))) {
		r->clear(out->data, 1);
		r->line(out->data, self->data, self->numel, itemsize(self));
		return 0;
	}
	return reduce(r, out, self, dims);
}

static int cpu_sum(tensor *out, const tensor *self, uint32_t dims)
{
	return run("sum", sums[self->dtype], out, self, dims);
}

static int cpu_max_all(tensor *out, const tensor *self, uint32_t dims)
{
	return run("max", maxima[self->dtype], out, self, dims);
}

CPU_KERNELS(K(sum), K(max_all))
