// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The tree of every reduction over any dimensions.
 *
 * Two ways through memory. Along lines, where the innermost reduced dimension is the closest one:
 * each output is 64 running values over its line, folded at the end. Over rows, where a kept
 * dimension is closest: a tile of neighbouring outputs takes whole rows at once. Both split what
 * is long into halves and add the results of the halves, a tree whose shape follows from the
 * tensor's alone: few roundings a sum, and the same ones on any number of threads.
 *
 * Elements that are not of the reducer's dtype pass through a small buffer on their way.
 */
#include "reduce.h"

#include "../nest.h"
#include "../parallel.h"

#include <stdlib.h>

#define ROWS_MAX   256 /* rows of a tile before they are halved */
#define TILE_BYTES 4096
#define PARTS_MAX  64 /* of a reduction that has too few outputs to share out */
#define BLOCK	   2048 /* elements of a line that are fetched at once */
#define FETCH_BYTES (16 * TILE_BYTES)

/* ---- the tree ------------------------------------------------------------------------------- */

struct job {
	const struct reduction *what;
	const struct reducer *r;
	const struct nest *t;
	enum tensor_dtype from, to; /* the tensors' */
	bool direct; /* elements are what r takes */
	bool by_rows;
	int64_t below[TENSOR_MAX_DIMS]; /* reduced positions in the dimensions inside this one */
	int64_t tile, tiles; /* outputs of a tile; tiles of a run of the innermost kept dimension */
	int64_t parts, part; /* of the outermost reduced dimension, and the length of one */
	char *partial; /* parts x outputs, when there are several parts */
};

/* ---- elements in -------------------------------------------------------------------------- */

static void fetch(const struct job *j, void *to, const char *from, int64_t stride, int64_t n)
{
	if (j->what->fetch)
		j->what->fetch(to, from, j->from, stride, n, j->what->p);
	else
		CPU_NAME(convert)(to, j->r->takes, dtype_sizes[j->r->takes], from, j->from, stride,
				  n);
}

static void take_line(const struct job *j, void *acc, const char *p, int64_t n, int64_t stride)
{
	_Alignas(64) char buf[BLOCK * 16];

	if (likely(j->direct)) {
		j->r->line(acc, p, n, stride);
		return;
	}
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t m = n - i < BLOCK ? n - i : BLOCK;

		fetch(j, buf, p + i * stride, stride, m);
		j->r->line(acc, buf, m, dtype_sizes[j->r->takes]);
	}
}

static void take_rows(const struct job *j, void *acc, const char *p, int64_t rows, int64_t rs,
		      int64_t cols, int64_t cs)
{
	int64_t size = dtype_sizes[j->r->takes], at_once = FETCH_BYTES / (cols * size) & ~7;
	_Alignas(64) char buf[FETCH_BYTES];

	if (likely(j->direct)) {
		j->r->rows(acc, p, rows, rs, cols, cs);
		return;
	}
	for (int64_t i = 0; i < rows; i += at_once, p += at_once * rs) {
		int64_t m = rows - i < at_once ? rows - i : at_once;

		if (rs == cols * cs)
			fetch(j, buf, p, cs, m * cols);
		else
			for (int64_t r = 0; r < m; r++)
				fetch(j, buf + r * cols * size, p + r * rs, cs, cols);
		j->r->rows(acc, buf, m, cols * size, cols, size);
	}
}

/* acc takes in n positions of reduced dimension d, and all of those inside it. */
static void add_rows(const struct job *j, void *acc, const char *p, int64_t cols, int d, int64_t n)
{
	const struct nest_dims *along = &j->t->along;
	int64_t step = along->stride[1][d], half = n / 2;
	_Alignas(64) char right[TILE_BYTES];

	if (d == 0 && n <= ROWS_MAX) {
		take_rows(j, acc, p, n, step, cols, j->t->kept.stride[1][0]);
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
	_Alignas(16) char right[ACC_MAX];

	if (d == 0 && n <= LINE_MAX) {
		take_line(j, acc, p, n, step);
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

/* n results from acc, to a strided output. */
static void store(const struct job *j, char *out, int64_t stride, const char *acc, int64_t n)
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
		memcpy(j->partial + (part * t->kept.count + first) * j->r->size, acc,
		       n * j->r->size);
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

/* One output of a few elements in a row, without the set-up. */
static bool reduce_short(struct job *j, tensor *out, const tensor *self, uint32_t dims)
{
	_Alignas(16) char acc[ACC_MAX];
	struct nest t;

	if (!self->contiguous || self->numel > LINE_MAX || dims + 1 != 1u << self->ndim)
		return false;
	t.along.count = self->numel;
	j->t = &t;
	j->r->clear(acc, 1);
	take_line(j, acc, self->data, self->numel, itemsize(self));
	store(j, out->data, dtype_sizes[j->to], acc, 1);
	return true;
}

int CPU_NAME(reduce)(const struct reduction *what, tensor *out, const tensor *self, uint32_t dims)
{
	struct job j = {.what = what, .r = what->r, .from = self->dtype, .to = out->dtype};
	const tensor *ops[] = {out, self};
	int64_t units, grain;
	struct nest t;

	j.direct = self->dtype == what->r->takes && !what->fetch;
	if (likely(reduce_short(&j, out, self, dims)))
		return 0;
	nest_build(&t, ops, 2, dims);
	if (!t.kept.count)
		return 0;
	j.t = &t;
	plan(&j);
	if (j.parts > 1) {
		j.partial = malloc(j.parts * t.kept.count * j.r->size);
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
