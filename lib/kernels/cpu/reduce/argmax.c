// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The greatest or the least element and where it is first: max and min along a dimension, argmax,
 * argmin. NaN comes before anything.
 *
 * A line is read once for the greatest value of each block; only the block that has the greatest
 * of all is searched for its position. Rows keep a value and a row number for each of a tile of
 * outputs. A line or stack of rows that is alone is cut into parts, as in reduce.c.
 */
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <stdlib.h>

#define LANES	  64
#define BLOCK	  1024	    /* elements of a line between two looks at the result */
#define TILE	  512	    /* outputs */
#define ROWS_MAX  (1 << 20) /* so that a row number fits beside a small element */
#define PARTS_MAX 64

/* What differs by dtype. best[i] is an element, at[i] its position, `from` the first position. */
struct finder {
	size_t size;
	void (*line)(void *best, int64_t *at, const char *p, int64_t n, int64_t stride,
		     int64_t from);
	void (*rows)(void *best, int64_t *at, const char *p, int64_t rows, int64_t row_stride,
		     int64_t cols, int64_t col_stride, int64_t from);
	/* Of results for earlier and later positions, the earlier stands unless it is less. */
	void (*combine)(void *best, int64_t *at, const void *best2, const int64_t *at2, int64_t n);
	/* Of results for q runs of cols columns, positions mixed, the best of each column. */
	void (*fold)(void *best, int64_t *at, int64_t cols, int64_t q);
};

/* OP: what one element is that stands before another. I: an integer as wide as T where there is
 * a vector of comparisons to gain from that. */
#define FINDER(NAME, T, I, OP, BEST)                                                               \
	static inline bool NAME##_less(T x, T y)                                                   \
	{                                                                                          \
		return (y OP x) | ((y != y) & (x == x));                                           \
	}                                                                                          \
                                                                                                   \
	typedef T NAME##_v __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias)); \
	enum { NAME##_width = VEC_BYTES / sizeof(T) };                                             \
                                                                                                   \
	/* At least a vector; the last one may overlap the one before. */                          \
	static T NAME##_block(const T *p, int64_t n)                                               \
	{                                                                                          \
		NAME##_v a = *(const NAME##_v *)p, b = a, c = a, d = a, last;                      \
		const int64_t w = NAME##_width;                                                    \
		T lane[NAME##_width];                                                              \
		int64_t i = w;                                                                     \
                                                                                                   \
		for (; i + 4 * w <= n; i += 4 * w) {                                               \
			a = BEST(a, *(const NAME##_v *)(p + i));                                   \
			b = BEST(b, *(const NAME##_v *)(p + i + w));                               \
			c = BEST(c, *(const NAME##_v *)(p + i + 2 * w));                           \
			d = BEST(d, *(const NAME##_v *)(p + i + 3 * w));                           \
		}                                                                                  \
		for (; i + w <= n; i += w)                                                         \
			a = BEST(a, *(const NAME##_v *)(p + i));                                   \
		last = *(const NAME##_v *)(p + n - w);                                             \
		b = BEST(b, last);                                                                 \
		a = BEST(a, b);                                                                    \
		c = BEST(c, d);                                                                    \
		a = BEST(a, c);                                                                    \
		if (VEC_BYTES >= 64)                                                               \
			a = BEST(a, VEC_CROSS(NAME##_v, a, 4));                                    \
		if (VEC_BYTES >= 32)                                                               \
			a = BEST(a, VEC_CROSS(NAME##_v, a, 2));                                    \
		a = BEST(a, VEC_CROSS(NAME##_v, a, 1));                                            \
		*(NAME##_v *)lane = a;                                                             \
		for (int64_t k = 1; k < 8 / (int64_t)sizeof(T); k++)                               \
			lane[0] = NAME##_less(lane[0], lane[k]) ? lane[k] : lane[0];               \
		return lane[0];                                                                    \
	}                                                                                          \
                                                                                                   \
	static int64_t NAME##_find(const T *p, int64_t n, T value)                                 \
	{                                                                                          \
		NAME##_v wanted = (NAME##_v){ 0 } + value;                                         \
		bool nan = value != value;                                                         \
		int64_t i = 0;                                                                     \
                                                                                                   \
		for (; i + NAME##_width <= n; i += NAME##_width) {                                 \
			NAME##_v x = *(const NAME##_v *)(p + i);                                   \
			uint64_t found = vec_byte_bits((vec_u64)((x == wanted) | (x != x)));       \
                                                                                                   \
			if (found)                                                                 \
				return i + __builtin_ctzll(found) / (int)sizeof(T);                \
		}                                                                                  \
		while (i < n - 1 && !(nan ? p[i] != p[i] : p[i] == value))                         \
			i++;                                                                       \
		return i;                                                                          \
	}                                                                                          \
                                                                                                   \
	static void NAME##_line(void *best, int64_t *at, const char *p, int64_t n, int64_t s,      \
				int64_t from)                                                      \
	{                                                                                          \
		T greatest = *(const T *)p;                                                        \
		int64_t where = 0;                                                                 \
                                                                                                   \
		if (s == sizeof(T) && n >= NAME##_width) {                                         \
			for (int64_t i = 0; i < n; i += BLOCK) {                                   \
				/* What is left at the end has seen some before. */                \
				int64_t m = n - i < NAME##_width ? NAME##_width : n - i;           \
				int64_t begin = n - i < NAME##_width ? n - m : i;                  \
				T value =                                                          \
					NAME##_block((const T *)p + begin, m < BLOCK ? m : BLOCK); \
                                                                                                   \
				if (NAME##_less(greatest, value)) {                                \
					greatest = value;                                          \
					where = i;                                                 \
				}                                                                  \
			}                                                                          \
			where += NAME##_find((const T *)p + where,                                 \
					     n - where < BLOCK ? n - where : BLOCK, greatest);     \
		} else {                                                                           \
			for (int64_t i = 1; i < n; i++) {                                          \
				T value = *(const T *)(p + i * s);                                 \
                                                                                                   \
				if (NAME##_less(greatest, value)) {                                \
					greatest = value;                                          \
					where = i;                                                 \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
		*(T *)best = *(const T *)(p + where * s);                                          \
		*at = from + where;                                                                \
	}                                                                                          \
                                                                                                   \
	static void NAME##_row(T *restrict best, I *restrict row, const char *restrict p,          \
			       int64_t cols, int64_t cs, I r)                                      \
	{                                                                                          \
		if (cs == sizeof(T)) {                                                             \
			const T *restrict x = (const T *)p;                                        \
                                                                                                   \
			for (int64_t c = 0; c < cols; c++) {                                       \
				bool less = NAME##_less(best[c], x[c]);                            \
                                                                                                   \
				best[c] = less ? x[c] : best[c];                                   \
				row[c] = less ? r : row[c];                                        \
			}                                                                          \
			return;                                                                    \
		}                                                                                  \
		for (int64_t c = 0; c < cols; c++) {                                               \
			T x = *(const T *)(p + c * cs);                                            \
			bool less = NAME##_less(best[c], x);                                       \
                                                                                                   \
			best[c] = less ? x : best[c];                                              \
			row[c] = less ? r : row[c];                                                \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	static void NAME##_rows(void *best, int64_t *at, const char *p, int64_t rows, int64_t rs,  \
				int64_t cols, int64_t cs, int64_t from)                            \
	{                                                                                          \
		_Alignas(64) I row[TILE];                                                          \
                                                                                                   \
		for (int64_t c = 0; c < cols; c++) {                                               \
			((T *)best)[c] = *(const T *)(p + c * cs);                                 \
			at[c] = from;                                                              \
		}                                                                                  \
		for (int64_t i = 0; i < rows; i += ROWS_MAX) {                                     \
			int64_t n = rows - i < ROWS_MAX ? rows - i : ROWS_MAX;                     \
                                                                                                   \
			for (int64_t c = 0; c < cols; c++)                                         \
				row[c] = -1;                                                       \
			for (int64_t r = 0; r < n; r++)                                            \
				NAME##_row(best, row, p + (i + r) * rs, cols, cs, (I)r);           \
			for (int64_t c = 0; c < cols; c++)                                         \
				at[c] = row[c] < 0 ? at[c] : from + i + row[c];                    \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	static void NAME##_combine(void *best, int64_t *at, const void *best2, const int64_t *at2, \
				   int64_t n)                                                      \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++) {                                                  \
			if (NAME##_less(((T *)best)[i], ((const T *)best2)[i])) {                  \
				((T *)best)[i] = ((const T *)best2)[i];                            \
				at[i] = at2[i];                                                    \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	static void NAME##_fold(void *best, int64_t *at, int64_t cols, int64_t q)                  \
	{                                                                                          \
		T *b = best;                                                                       \
                                                                                                   \
		for (int64_t i = cols; i < cols * q; i++) {                                        \
			int64_t c = i % cols;                                                      \
			bool tie = !NAME##_less(b[i], b[c]) && at[i] < at[c];                      \
                                                                                                   \
			if (NAME##_less(b[c], b[i]) || tie) {                                      \
				b[c] = b[i];                                                       \
				at[c] = at[i];                                                     \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	static const struct finder NAME = { sizeof(T), NAME##_line, NAME##_rows, NAME##_combine,   \
					    NAME##_fold };

/* x or y where y stands before it, of vectors of integers. */
#define VEC_OF(x, y, OP)                                        \
	((__typeof__(x))(((__typeof__(y OP x))(y) & (y OP x)) | \
			 ((__typeof__(y OP x))(x) & ~(y OP x))))
#define VEC_MORE(x, y)		      VEC_OF(x, (y), >)
#define VEC_LESS(x, y)		      VEC_OF(x, (y), <)
#define GREATEST(d, T, I, MORE, LESS) FINDER(greatest_##d, T, I, >, MORE)
#define LEAST(d, T, I, MORE, LESS)    FINDER(least_##d, T, I, <, LESS)
#define ORDERED(X)                                       \
	X(u8, uint8_t, int32_t, VEC_MORE, VEC_LESS)      \
	X(i8, int8_t, int32_t, VEC_MORE, VEC_LESS)       \
	X(i16, int16_t, int32_t, VEC_MORE, VEC_LESS)     \
	X(i32, int32_t, int32_t, VEC_MORE, VEC_LESS)     \
	X(i64, int64_t, int64_t, VEC_MORE, VEC_LESS)     \
	X(u16, uint16_t, int32_t, VEC_MORE, VEC_LESS)    \
	X(u32, uint32_t, int32_t, VEC_MORE, VEC_LESS)    \
	X(u64, uint64_t, int64_t, VEC_MORE, VEC_LESS)    \
	X(f32, float, int32_t, vec_max_f32, vec_min_f32) \
	X(f64, double, int64_t, vec_max_f64, vec_min_f64)
ORDERED(GREATEST)
ORDERED(LEAST)

struct job {
	const struct finder *f;
	const struct reduce_iter *t; /* operands: indices, self, values (or again indices) */
	bool by_rows, want_values;
	int64_t tile, tiles; /* outputs of a tile; tiles of a run of the innermost kept dimension */
	int64_t parts, part; /* of the reduced dimension, and the length of one */
	struct tensor_storage *scratch; /* for the next two */
	char *best;			/* parts x outputs, when there are several parts */
	int64_t *at;
};

static void store(const struct job *j, char *const *data, const char *best, const int64_t *at,
		  int64_t n)
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

/* Rows of a few columns that lie one after the other: many rows are taken as one. */
static void find_narrow(const struct finder *f, void *best, int64_t *at, const char *p,
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

/* n neighbouring outputs of one run of the innermost kept dimension, from number `first` on. */
static void find_outputs(const struct job *j, int64_t part, int64_t first, int64_t n)
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

static void find_tiles(int64_t begin, int64_t end, void *ctx)
{
	const struct job *j = ctx;
	int64_t run = j->t->kept.size[0], runs = j->t->kept.count / run;

	for (int64_t i = begin; i < end; i++) {
		int64_t at = i % j->tiles * j->tile, n = run - at < j->tile ? run - at : j->tile;

		find_outputs(j, i / j->tiles / runs, i / j->tiles % runs * run + at, n);
	}
}

static void store_parts(const struct job *j)
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

static int plan(struct job *j)
{
	const struct reduce_iter_dims *kept = &j->t->kept, *along = &j->t->along;
	int64_t parts = kept->count * along->count / (2 * ITER_GRAIN), results;

	/* Lines of a handful of elements cost more to begin than to search. */
	j->by_rows = kept->stride[1][0] &&
		     (llabs(kept->stride[1][0]) < llabs(along->stride[1][0]) ||
		      (along->size[0] < 16 && kept->size[0] >= 16));
	j->tile = j->by_rows ? TILE : ITER_GRAIN / along->count + 1;
	if (j->tile > TILE)
		j->tile = TILE;
	j->tiles = (kept->size[0] + j->tile - 1) / j->tile;
	j->parts = 1;
	j->part = along->size[0];
	if (j->tiles * (kept->count / kept->size[0]) >= 16 || kept->count > ITER_GRAIN || parts < 2)
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

#define MAX_OF(d, T, D) [D] = &greatest_##d,
#define MIN_OF(d, T, D) [D] = &least_##d,
static const struct finder *const maxima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MAX_OF)[TENSOR_BOOL] = &greatest_u8,
};
static const struct finder *const minima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MIN_OF)[TENSOR_BOOL] = &least_u8,
};

static int find(const char *name, const struct finder *f, tensor *values, tensor *indices,
		const tensor *self, uint32_t dims)
{
	const tensor *ops[] = { indices, self, values ? values : indices };
	struct job j = { .f = f, .want_values = values };
	int64_t units, grain;
	struct reduce_iter t;

	if (unlikely(!j.f))
		return kernel_no_dtype(name, self->dtype, "cpu");
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
	return find("max", maxima[self->dtype], values, indices, self, dims);
}

static int cpu_min_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return find("min", minima[self->dtype], values, indices, self, dims);
}

static int cpu_argmax(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return find("argmax", maxima[self->dtype], values, indices, self, dims);
}

static int cpu_argmin(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return find("argmin", minima[self->dtype], values, indices, self, dims);
}

CPU_KERNELS(K(max_dim), K(min_dim), K(argmax), K(argmin))
