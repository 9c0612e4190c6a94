/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of a convolution's weights: for each tap the sum, over the positions of all images,
 * of the output's gradient times what the tap reads. Rows of a tile are taps, read where they lie;
 * its columns are channels of the gradient, turned in registers and used by all rows of a block.
 *
 * Where there are few blocks the positions are cut into slices, by shape alone, which are added up
 * in order at the end. Also here: copies of sources.
 */
#ifndef TENSOR_CONV_WEIGHT_H
#define TENSOR_CONV_WEIGHT_H

#define WEIGHT_ROWS 192				  /* of a block */
#define SLICE	    1024			  /* positions in a slice, at least */
#define CHUNKS	    16				  /* blocks that are enough to go without slices */
#define SLICE_MAX   (CHUNKS * WEIGHT_ROWS * WIDE) /* elements of all slices together */
#define ADD_GRAIN   16384
#define COPY_GRAIN  32768

struct row_tile {
	struct tile t;
	const int64_t *offset; /* of the rows */
	const int64_t *position;
};

static inline __attribute__((always_inline)) void sum_positions(const struct row_tile *r,
								const int rows, const int vecs)
{
	const struct tile *t = &r->t;
	const int64_t *position = r->position;
	const T *a[ROWS], *b = t->b;
	int64_t rsb = t->rsb;
	VEC sum[ROWS][VECS];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		a[i] = t->a + r->offset[i];
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = (VEC){ 0 };
	}
	for (int64_t p = 0; p < t->k; p++, b += rsb) {
		int64_t at = position[p];
		VEC row[VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			row[j] = *(const VEC *)(b + j * LANES);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VEC x = a[i][at] - (VEC){ 0 };
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				sum[i][j] += x * row[j];
		}
	}
	finish(t, sum, rows, vecs, true);
}

#define ROW_TILE(R, V)                                      \
	static void row_##R##_##V(const struct row_tile *r) \
	{                                                   \
		sum_positions(r, R, V);                     \
	}
TILES_1(ROW_TILE)
TILES_2(ROW_TILE)
TILES_3(ROW_TILE)

#define ROW_ENTRY(R, V) [V][R] = row_##R##_##V,
static void (*const row_tiles[VECS + 1][ROWS + 1])(const struct row_tile *) = {
	TILES_1(ROW_ENTRY) TILES_2(ROW_ENTRY) TILES_3(ROW_ENTRY)
};

struct weight_plan {
	const struct conv_weight *c;
	int64_t plane, positions; /* of an image, of all */
	int64_t panels, blocks, slices;
	T *out; /* slices, one after the other */
	_Atomic bool failed;
};

/* Where k positions from p on lie in the source, and the gradient there as rows of `width`. */
static void positions_set(const struct weight_plan *s, int64_t *position, T *turned, const T *grad,
			  int64_t n, int64_t width, int64_t p, int64_t k)
{
	const struct conv_weight *c = s->c;
	struct conv_walk w = conv_walk_from(c->grid, p);
	int64_t image = c->groups * c->columns * s->plane;

	for (int64_t i = 0, run; i < k; i += run) {
		int64_t at = conv_walk_offset(&w, c->src.image, c->src.step);

		run = conv_walk_run(&w, k - i);
		for (int64_t x = 0; x < run; x++)
			position[i + x] = at + x;
		conv_walk_on(&w, run);
	}
	for (int64_t i = 0, run; i < k; i += run) {
		int64_t at = (p + i) % s->plane;

		run = s->plane - at < k - i ? s->plane - at : k - i;
		pack(turned + i * width, grad + (p + i) / s->plane * image + at, 1, s->plane, run,
		     n, width);
	}
}

static void weight_block(const struct weight_plan *s, T *block, T *turned, int64_t slice,
			 int64_t group, int64_t panel, int64_t row)
{
	const struct conv_weight *c = s->c;
	int64_t m = min64(c->depth - row, WEIGHT_ROWS), n = min64(c->columns - panel * WIDE, WIDE);
	int64_t p = s->positions * slice / s->slices, end = s->positions * (slice + 1) / s->slices;
	int vecs = (int)((n + LANES - 1) / LANES), most = tile_rows[vecs];
	int64_t channel = group * c->columns + panel * WIDE, position[DEPTH];
	struct row_tile r = { .t = { .a = (const T *)c->src.data + group * c->src.group,
				     .b = turned,
				     .rsb = vecs * (int64_t)LANES,
				     .rsc = WIDE,
				     .alpha = 1 },
			      .position = position };
	T *out = s->out + ((slice * c->groups * c->columns) + channel) * c->depth + row;

	for (int64_t k; p < end; p += k) {
		k = min64(end - p, DEPTH);
		positions_set(s, position, turned, (const T *)c->grad + channel * s->plane, n,
			      r.t.rsb, p, k);
		r.t.k = k;
		for (int64_t i = 0, rows; i < m; i += rows) {
			rows = min64(m - i, most);
			r.offset = c->src.offset + row + i;
			r.t.c = block + i * WIDE;
			row_tiles[vecs][rows](&r);
		}
		r.t.beta = 1;
	}
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++)
			out[j * c->depth + i] = block[i * WIDE + j];
}

static void weight_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct weight_plan *s = ctx;
	struct tensor_storage *mem =
		storage_alloc(TENSOR_DEVICE_CPU, (WEIGHT_ROWS + DEPTH) * WIDE * sizeof(T), false);

	if (!mem) {
		s->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t row = i % s->blocks, rest = i / s->blocks;
		int64_t panel = rest % s->panels, slice = rest / s->panels % s->slices;

		weight_block(s, mem->data, (T *)mem->data + WEIGHT_ROWS * WIDE, slice,
			     rest / s->panels / s->slices, panel, row * WEIGHT_ROWS);
	}
	storage_put(mem);
}

static void add_slices(int64_t begin, int64_t end, void *ctx)
{
	const struct weight_plan *s = ctx;
	const struct conv_weight *c = s->c;
	int64_t n = c->groups * c->columns * c->depth;
	T *out = c->out;

	memcpy(out + begin, s->out + begin, (end - begin) * sizeof(T));
	for (int64_t k = 1; k < s->slices; k++) {
		const T *part = s->out + k * n;

		IVDEP for (int64_t i = begin; i < end; i++) out[i] += part[i];
	}
}

int CONV(conv_weight)(const struct conv_weight *given)
{
	struct conv_weight c = *given;
	struct weight_plan s = { .c = &c, .slices = 1, .out = c.out };
	struct tensor_storage *mem = NULL;
	int64_t n = c.groups * c.columns * c.depth, chunks, step[AXES];

	s.plane = c.grid[0] * c.grid[1] * c.grid[2];
	s.positions = c.batch * s.plane;
	if (!n)
		return 0;
	if (!s.positions) {
		memset(c.out, 0, n * sizeof(T));
		return 0;
	}
	if (is_depthwise(c.columns, c.depth, c.groups)) {
		depth_weight(&c);
		return 0;
	}
	memcpy(step, c.src.step, sizeof(step));
	conv_fold(c.grid, c.src.step, step);
	s.panels = (c.columns + WIDE - 1) / WIDE;
	s.blocks = (c.depth + WEIGHT_ROWS - 1) / WEIGHT_ROWS;
	chunks = c.groups * s.panels * s.blocks;
	if (chunks < CHUNKS) {
		s.slices = min64((CHUNKS + chunks - 1) / chunks, s.positions / SLICE);
		s.slices = min64(s.slices, SLICE_MAX / n);
		if (s.slices < 1)
			s.slices = 1;
	}
	if (s.slices > 1) {
		mem = storage_alloc(TENSOR_DEVICE_CPU, s.slices * n * sizeof(T), false);
		if (!mem)
			return -thread()->error.code;
		s.out = mem->data;
	}
	parallel_for(0, chunks * s.slices, 1, weight_chunk, &s);
	if (mem) {
		parallel_for(0, n, ADD_GRAIN, add_slices, &s);
		storage_put(mem);
	}
	return s.failed ? tensor_fail(ENOMEM, "convolution_backward: no memory for a block") : 0;
}

/* ---- copies of sources ---- */

/* A row of an axis: extent elements of phase f from `in`, NULL for a row that is not there. */
static void copy_row(T *to, const T *in, const struct conv_axis *a, int64_t f)
{
	int64_t at = a->first + a->phase[f], from = 0, until = 0;

	if (in) {
		from = at < 0 ? (-at + a->stride - 1) / a->stride : 0;
		until = at < a->size ? (a->size - at + a->stride - 1) / a->stride : 0;
		from = min64(from, a->extent);
		until = min64(until < from ? from : until, a->extent);
	}
	for (int64_t i = 0; i < from; i++)
		to[i] = 0;
	if (a->stride == 1)
		memcpy(to + from, in ? in + at + from : to, (until - from) * sizeof(T));
	else if (a->stride == 2)
		for (int64_t i = from; i < until; i++)
			to[i] = in[at + i * 2];
	else
		for (int64_t i = from; i < until; i++)
			to[i] = in[at + i * a->stride];
	for (int64_t i = until; i < a->extent; i++)
		to[i] = 0;
}

/* Element i of phase f along the axis, -1 where there is none. */
static int64_t axis_at(const struct conv_axis *a, int64_t f, int64_t i)
{
	int64_t at = a->first + a->phase[f] + a->stride * i;

	return at >= 0 && at < a->size ? at : -1;
}

#define EVEN_LANE(s, j) (2 * (j))
#define ODD_LANE(s, j)	(2 * (j) + 1)

/* n consecutive vectors, 1, 2 or 4, to one of each residue modulo n. */
static inline __attribute__((always_inline)) void part_residues(VEC *x, const int n)
{
	for (int k = n / 2; k > 0; k /= 2) {
		VEC y[4];

		for (int i = 0; i < n / 2; i++) {
			y[i] = __builtin_shuffle(x[2 * i], x[2 * i + 1],
						 (MASK){ EACH_LANE(EVEN_LANE, 0) });
			y[i + n / 2] = __builtin_shuffle(x[2 * i], x[2 * i + 1],
							 (MASK){ EACH_LANE(ODD_LANE, 0) });
		}
		memcpy(x, y, n * sizeof(*x));
	}
}

/* Rows of all phases of an axis, which are all residues in their order; `block` apart. */
static inline __attribute__((always_inline)) void
copy_phases(T *to, int64_t block, const T *in, const struct conv_axis *a, const int stride)
{
	for (int64_t i = 0; i < a->extent; i += LANES, to += LANES) {
		int64_t at = a->first + i * stride, n = min64(a->extent - i, LANES);
		VEC x[4];

#pragma GCC unroll 4
		for (int k = 0; k < stride; k++, at += LANES) {
			int64_t from = at < 0 ? min64(-at, LANES) : 0;
			int64_t until = at < a->size ? min64(a->size - at, LANES) : 0;

			x[k] = in && from < until ? LOAD(in + at, PART_OF((int)from, (int)until)) :
						    (VEC){ 0 };
		}
		part_residues(x, stride);
		for (int k = 0; k < stride; k++)
			STORE(to + k * block, PART(n), x[k]);
	}
}

/* A row for each phase, `block` apart. */
static void copy_rows(T *to, int64_t block, const T *in, const struct conv_axis *a)
{
	bool all = a->phases == a->stride;

	for (int64_t f = 0; f < a->phases && all; f++)
		all = a->phase[f] == f;
	if (all && a->stride == 1)
		copy_phases(to, block, in, a, 1);
	else if (all && a->stride == 2)
		copy_phases(to, block, in, a, 2);
	else if (all && a->stride == 4)
		copy_phases(to, block, in, a, 4);
	else
		for (int64_t f = 0; f < a->phases; f++)
			copy_row(to + f * block, in, a, f);
}

static void copy_plane(T *to, const T *in, const struct conv_axis *axis)
{
	const struct conv_axis *z = axis, *y = axis + 1, *x = axis + 2;
	int64_t block = z->extent * y->extent * x->extent;

	for (int64_t f = 0; f < z->phases * y->phases; f++, to += x->phases * block)
		for (int64_t i = 0; i < z->extent; i++) {
			int64_t at = axis_at(z, f / y->phases, i);

			for (int64_t k = 0; k < y->extent; k++) {
				int64_t line = axis_at(y, f % y->phases, k);
				bool there = at >= 0 && line >= 0;

				copy_rows(to + (i * y->extent + k) * x->extent, block,
					  there ? in + (at * y->size + line) * x->size : NULL, x);
			}
		}
}

static void copy_planes(int64_t begin, int64_t end, void *ctx)
{
	const struct conv_copy *c = ctx;
	int64_t plane = c->axis[0].size * c->axis[1].size * c->axis[2].size;

	for (int64_t i = begin; i < end; i++)
		copy_plane((T *)c->out + i * c->pitch, (const T *)c->in + i * plane, c->axis);
}

void CONV(conv_copy)(const struct conv_copy *c)
{
	parallel_for(0, c->planes, c->pitch < COPY_GRAIN ? COPY_GRAIN / c->pitch : 1, copy_planes,
		     (void *)c);
}

#endif
