// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Reductions over any dimensions, by a tree of partial results.
 *
 * There are two orders of traversal. If the innermost reduced dimension has the smallest stride,
 * each output is reduced along its line. If a kept dimension has, a tile of neighbouring outputs is
 * reduced row by row. Both split long dimensions into halves and combine the results of the halves.
 * The shape of the tree depends on the tensor alone, so that the result has few rounding errors and
 * is the same for any number of threads.
 *
 * Elements of another dtype than the reducer's are converted in blocks.
 */
#include "kernels/cpu/reduce/reduce.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <stdlib.h>

#define ROWS_MAX    256 /* rows of a tile that are not split */
#define LINES_MAX   64	/* short lines of one output that are reduced together */
#define TILE_BYTES  4096
#define FOLD_MAX    63	 /* elements of a line whose elements become columns */
#define FOLD_ROWS   16	 /* lines for each output, at least, for that */
#define PARTS_MAX   64	 /* of a reduction that has too few outputs for all threads */
#define SHORT_MAX   8192 /* elements of a reduction without reduce_iter */
#define BLOCK	    2048 /* elements of a line that are converted at once */
#define FETCH_BYTES (16 * TILE_BYTES)

struct reduce_job {
	const struct reduction *what;
	const struct reducer *r;
	const struct reduce_iter *t;
	enum tensor_dtype from, to; /* dtypes of the input and of the output */
	bool direct;		    /* elements need no conversion */
	bool by_rows;
	/*
	 * Elements of a line that are reduced as columns of their own, and joined at the end; 1 if
	 * none are. A line of `fold` elements is then no dimension of t->along.
	 */
	int64_t fold;
	int64_t column;			/* bytes between the columns of a row */
	int64_t below[TENSOR_MAX_DIMS]; /* product of the sizes of reduced dimensions inside this one */
	int64_t tile, tiles; /* outputs of a tile; tiles of a run of the innermost kept dimension */
	int64_t parts, part; /* parts of the outermost reduced dimension, and the length of one */
	char *partial;	     /* [parts][outputs], if there are several parts */
};

/* ---- adding elements to accumulators ---- */

static void fetch(const struct reduce_job *j, void *to, const char *from, int64_t stride, int64_t n)
{
	enum tensor_dtype takes = j->r->takes;

	if (j->what->fetch)
		j->what->fetch(to, from, j->from, stride, n, j->what->p);
	else
		CPU_NAME(convert)(to, takes, dtype_sizes[takes], from, j->from, stride, n);
}

/* Adds the n elements of line l to acc[l], converted. */
static void fetch_line_block(const struct reduce_job *j, char *acc, const char *p, int64_t lines,
			     int64_t ls, int64_t n, int64_t stride)
{
	int64_t size = dtype_sizes[j->r->takes], at_once = n < BLOCK ? BLOCK / n : 1;
	_Alignas(64) char buf[BLOCK * 16];

	for (int64_t l = 0; l < lines;
	     l += at_once, acc += at_once * j->r->size, p += at_once * ls) {
		int64_t many = lines - l < at_once ? lines - l : at_once;

		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t m = n - i < BLOCK ? n - i : BLOCK;

			if (many > 1 && ls == n * stride)
				fetch(j, buf, p, stride, many * n);
			else
				for (int64_t k = 0; k < many; k++)
					fetch(j, buf + k * n * size, p + k * ls + i * stride,
					      stride, m);
			j->r->lines(acc, buf, many, n * size, m, size);
		}
	}
}

static void add_line_block(const struct reduce_job *j, void *acc, const char *p, int64_t lines,
			   int64_t ls, int64_t n, int64_t stride)
{
	if (likely(j->direct))
		j->r->lines(acc, p, lines, ls, n, stride);
	else if (n)
		fetch_line_block(j, acc, p, lines, ls, n, stride);
}

/* Contiguous rows of a few columns: several rows are treated as one of up to LANES columns. */
static void add_narrow_rows(const struct reduce_job *j, char *acc, const char *p, int64_t rows,
			    int64_t cols, int64_t size)
{
	int64_t q = LANES / cols, many = rows / q;
	_Alignas(64) char wide[LANES * ACC_MAX];

	j->r->clear(wide, q * cols);
	j->r->rows(wide, p, many, q * cols * size, q * cols, size);
	for (int64_t i = 0; i < q; i++)
		j->r->combine(acc, wide + i * cols * j->r->size, cols);
	p += many * q * cols * size;
	j->r->rows(acc, p, rows - many * q, cols * size, cols, size);
}

static void add_dense_rows(const struct reduce_job *j, void *acc, const char *p, int64_t rows,
			   int64_t rs, int64_t cols, int64_t cs)
{
	if (cols <= LANES / 2 && rs == cols * cs && cs == dtype_sizes[j->r->takes] &&
	    rows >= 8 * (LANES / cols))
		add_narrow_rows(j, acc, p, rows, cols, cs);
	else
		j->r->rows(acc, p, rows, rs, cols, cs);
}

static void fetch_row_block(const struct reduce_job *j, void *acc, const char *p, int64_t rows,
			    int64_t rs, int64_t cols, int64_t cs)
{
	int64_t size = dtype_sizes[j->r->takes], at_once = FETCH_BYTES / (cols * size) & ~7;
	_Alignas(64) char buf[FETCH_BYTES];

	for (int64_t i = 0; i < rows; i += at_once, p += at_once * rs) {
		int64_t m = rows - i < at_once ? rows - i : at_once;

		if (rs == cols * cs)
			fetch(j, buf, p, cs, m * cols);
		else
			for (int64_t r = 0; r < m; r++)
				fetch(j, buf + r * cols * size, p + r * rs, cs, cols);
		add_dense_rows(j, acc, buf, m, cols * size, cols, size);
	}
}

static void add_row_block(const struct reduce_job *j, void *acc, const char *p, int64_t rows,
			  int64_t rs, int64_t cols, int64_t cs)
{
	if (likely(j->direct))
		add_dense_rows(j, acc, p, rows, rs, cols, cs);
	else
		fetch_row_block(j, acc, p, rows, rs, cols, cs);
}

/* Adds n positions of reduced dimension d, with all dimensions inside it, to acc. */
static void add_rows(const struct reduce_job *j, void *acc, const char *p, int64_t cols, int d,
		     int64_t n)
{
	const struct reduce_iter_dims *along = &j->t->along;
	int64_t step = along->stride[1][d], half = n / 2;
	_Alignas(64) char right[TILE_BYTES];

	if (d == 0 && n <= ROWS_MAX * (cols <= LANES / 2 ? LANES / cols : 1)) {
		add_row_block(j, acc, p, n, step, cols, j->column);
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

/* Adds short lines of the innermost reduced dimension to acc. */
static void add_short_lines(const struct reduce_job *j, void *acc, const char *p, int64_t lines,
			    int64_t ls)
{
	const struct reduce_iter_dims *along = &j->t->along;
	_Alignas(16) char sums[LINES_MAX * ACC_MAX];
	int64_t size = (int64_t)j->r->size;

	j->r->clear(sums, lines);
	add_line_block(j, sums, p, lines, ls, along->size[0], along->stride[1][0]);
	for (int64_t half; lines > 1; lines = half) {
		half = (lines + 1) / 2;
		j->r->combine(sums, sums + half * size, lines - half);
	}
	j->r->combine(acc, sums, 1);
}

static void add_lines(const struct reduce_job *j, void *acc, const char *p, int d, int64_t n)
{
	const struct reduce_iter_dims *along = &j->t->along;
	int64_t step = along->stride[1][d], half = d ? n / 2 : (n / 2 + LANES - 1) / LANES * LANES;
	_Alignas(16) char right[ACC_MAX];

	if (d == 0 && n <= LINE_MAX) {
		add_line_block(j, acc, p, 1, 0, n, step);
	} else if (d == 1 && n <= LINES_MAX && n * along->size[0] <= LINE_MAX) {
		add_short_lines(j, acc, p, n, step);
	} else if (n == 1) {
		add_lines(j, acc, p, d - 1, along->size[d - 1]);
	} else {
		j->r->clear(right, 1);
		add_lines(j, acc, p, d, half);
		add_lines(j, right, p + half * step, d, n - half);
		j->r->combine(acc, right, 1);
	}
}

/* Joins the accumulators of each of n lines, halves with halves, and moves the results together. */
static void join_columns(const struct reduce_job *j, char *acc, int64_t n)
{
	int64_t size = (int64_t)j->r->size, step = j->fold * size;

	for (int64_t i = 0; i < n; i++) {
		for (int64_t m = j->fold, half; m > 1; m = half) {
			half = (m + 1) / 2;
			j->r->combine(acc + i * step, acc + i * step + half * size, m - half);
		}
		memmove(acc + i * size, acc + i * step, size);
	}
}

/* ---- storing results ---- */

/* Stores n results from acc to a strided output. */
static void store(const struct reduce_job *j, char *out, int64_t stride, const char *acc, int64_t n)
{
	int64_t size = dtype_sizes[j->r->gives];
	_Alignas(64) char result[256 * 16];

	for (int64_t i = 0; i < n; i += 256, out += 256 * stride, acc += 256 * j->r->size) {
		int64_t m = n - i < 256 ? n - i : 256;
		const char *from = acc;

		if (j->what->finish) {
			j->what->finish(result, acc, m, j->t->along.count, j->what->p);
			from = result;
		}
		if (stride == size && j->to == j->r->gives)
			memcpy(out, from, m * size);
		else
			CPU_NAME(convert)(out, j->to, stride, from, j->r->gives, size, m);
	}
}

/* Outputs first to first + n of one run of the innermost kept dimension, for one part. */
static void reduce_outputs(const struct reduce_job *j, int64_t part, int64_t first, int64_t n)
{
	const struct reduce_iter *t = j->t;
	int d = t->along.n - 1;
	int64_t begin = part * j->part, len = t->along.size[d] - begin;
	_Alignas(64) char acc[TILE_BYTES];
	char *data[REDUCE_ITER_OPERANDS];

	reduce_iter_seek(t, first, data);
	if (len > j->part)
		len = j->part;
	data[1] += begin * t->along.stride[1][d];
	j->r->clear(acc, n * j->fold);
	if (j->by_rows) {
		add_rows(j, acc, data[1], n * j->fold, d, len);
		if (j->fold > 1)
			join_columns(j, acc, n);
	} else if (d == 0 && len <= LINE_MAX)
		add_line_block(j, acc, data[1], n, t->kept.stride[1][0], len,
			       t->along.stride[1][0]);
	else
		for (int64_t i = 0; i < n; i++)
			add_lines(j, acc + i * j->r->size, data[1] + i * t->kept.stride[1][0], d,
				  len);
	if (j->parts > 1)
		memcpy(j->partial + (part * t->kept.count + first) * j->r->size, acc,
		       n * j->r->size);
	else
		store(j, data[0], t->kept.stride[0][0], acc, n);
}

/* Tiles are numbered by part, run of the innermost kept dimension, tile of the run. */
static void reduce_tiles(int64_t begin, int64_t end, void *ctx)
{
	const struct reduce_job *j = ctx;
	int64_t run = j->t->kept.size[0], runs = j->t->kept.count / run;

	for (int64_t i = begin; i < end; i++) {
		int64_t at = i % j->tiles * j->tile, n = run - at < j->tile ? run - at : j->tile;
		int64_t part = i / j->tiles / runs;

		reduce_outputs(j, part, i / j->tiles % runs * run + at, n);
	}
}

static void store_partials(const struct reduce_job *j)
{
	const struct reduce_iter *t = j->t;
	int64_t run = t->kept.size[0], bytes = t->kept.count * j->r->size;
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t step = 1; step < j->parts; step *= 2)
		for (int64_t i = 0; i + step < j->parts; i += 2 * step)
			j->r->combine(j->partial + i * bytes, j->partial + (i + step) * bytes,
				      t->kept.count);
	for (int64_t i = 0; i < t->kept.count; i += run) {
		reduce_iter_seek(t, i, data);
		store(j, data[0], t->kept.stride[0][0], j->partial + i * j->r->size, run);
	}
}

/* ---- planning ---- */

/* Splits the outermost reduced dimension if there are few outputs of many elements. */
static void plan_parts(struct reduce_job *j, int64_t units, int64_t total)
{
	const struct reduce_iter *t = j->t;
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

/*
 * Short lines that follow each other in memory, many for each output: every element of a line is a
 * column, since rows of whole vectors take less time than as many lines. Removes the lines from
 * the reduced dimensions.
 */
static void fold_lines(struct reduce_job *j, struct reduce_iter *t)
{
	struct reduce_iter_dims *kept = &t->kept, *along = &t->along;
	int64_t n = along->size[0];

	j->fold = 1;
	j->column = kept->stride[1][0];
	if (along->n < 2 || n > FOLD_MAX || kept->size[0] < 2 || along->count / n < FOLD_ROWS ||
	    along->stride[1][0] != dtype_sizes[j->from] ||
	    kept->stride[1][0] != n * along->stride[1][0])
		return;
	j->fold = n;
	j->column = along->stride[1][0];
	along->n--;
	memmove(along->size, along->size + 1, along->n * sizeof(*along->size));
	for (int i = 0; i < 2; i++)
		memmove(along->stride[i], along->stride[i] + 1,
			along->n * sizeof(*along->stride[i]));
}

static void plan(struct reduce_job *j)
{
	const struct reduce_iter_dims *kept = &j->t->kept, *along = &j->t->along;
	int64_t below = 1, units;

	for (int d = 0; d < along->n; d++) {
		j->below[d] = below;
		below *= along->size[d];
	}
	/* Also for short lines, where the cost of a call exceeds that of the elements. */
	j->by_rows = j->fold > 1 || (kept->stride[1][0] &&
				     (llabs(kept->stride[1][0]) < llabs(along->stride[1][0]) ||
				      (along->size[0] < 16 && kept->size[0] >= 16)));
	j->tile = TILE_BYTES / (j->r->size * j->fold);
	j->tiles = (kept->size[0] + j->tile - 1) / j->tile;
	units = j->tiles * (kept->count / kept->size[0]);
	j->parts = 1;
	j->part = along->size[along->n - 1];
	plan_parts(j, j->by_rows ? units : kept->count, kept->count * along->count);
	/* Smaller tiles of long lines, so that there are enough for all threads. */
	if (!j->by_rows && kept->size[0] > 1 && along->count > ITER_GRAIN / j->tile) {
		j->tile = ITER_GRAIN / along->count + 1;
		j->tiles = (kept->size[0] + j->tile - 1) / j->tile;
	}
}

/* Reduces a small contiguous tensor to one element, without a reduce_iter. */
static bool reduce_short(struct reduce_job *j, tensor *out, const tensor *self, uint32_t dims)
{
	_Alignas(16) char acc[ACC_MAX];
	struct reduce_iter t;

	if (!self->contiguous || self->numel > SHORT_MAX || dims + 1 != 1u << self->ndim)
		return false;
	t.along.count = self->numel;
	j->t = &t;
	j->r->clear(acc, 1);
	add_line_block(j, acc, self->data, 1, 0, self->numel, itemsize(self));
	store(j, out->data, dtype_sizes[j->to], acc, 1);
	j->t = NULL;
	return true;
}

int CPU_NAME(reduce)(const struct reduction *what, tensor *out, const tensor *self, uint32_t dims)
{
	struct reduce_job j = { .what = what, .r = what->r, .from = self->dtype, .to = out->dtype };
	const tensor *ops[] = { out, self };
	struct tensor_storage *scratch = NULL;
	int64_t units, grain;
	struct reduce_iter t;

	j.direct = self->dtype == what->r->takes && !what->fetch;
	if (likely(reduce_short(&j, out, self, dims)))
		return 0;
	reduce_iter_build(&t, ops, 2, dims);
	if (!t.kept.count)
		return 0;
	j.t = &t;
	fold_lines(&j, &t);
	plan(&j);
	if (j.parts > 1) {
		scratch =
			storage_alloc(TENSOR_DEVICE_CPU, j.parts * t.kept.count * j.r->size, false);
		if (!scratch)
			return -thread()->error.code;
		j.partial = scratch->data;
	}
	units = j.tiles * (t.kept.count / t.kept.size[0]) * j.parts;
	grain = ITER_GRAIN * units / (t.kept.count * t.along.count + 1);
	parallel_for(0, units, grain > 1 ? grain : 1, reduce_tiles, &j);
	if (scratch) {
		store_partials(&j);
		storage_put(scratch);
	}
	return 0;
}
