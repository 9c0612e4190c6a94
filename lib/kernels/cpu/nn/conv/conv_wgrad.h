/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of the weights of a convolution: for each tap the sum, over the positions of all
 * images, of the gradient of the output times the element that the tap reads. Rows of a tile are
 * taps, read from the source where units do not cross its lines, otherwise copied to be contiguous
 * along the positions. Columns are channels of the gradient, transposed in registers. A task reads
 * the taps of a block for several panels of channels.
 *
 * Elements of the source and of the gradient have the type E. A unit, which has the type T, is UNIT
 * elements at adjacent positions; an image whose positions are not a multiple ends with zeros.
 *
 * If there are few tasks, the positions are divided into slices, by the shape alone; their sums are
 * added in order at the end.
 */
#ifndef TENSOR_CONV_WGRAD_H
#define TENSOR_CONV_WGRAD_H

#define WEIGHT_ROWS   192 /* the most rows of a block */
#define WEIGHT_PANELS 4	  /* the most panels of a task */
#define ROW_PITCH \
	(DEPTH + 64 / sizeof(T)) /* units between rows: a copy writes up to a vector beyond */
#define SLICE	  1024		 /* the least number of positions in a slice */
#define CHUNKS	  16		 /* tasks from which no slices are needed */
#define SLICE_MAX (CHUNKS * WEIGHT_ROWS * WIDE) /* elements of all slices together */
#define ADD_GRAIN 16384

struct wgrad_plan {
	const struct conv_wgrad *c;
	int64_t plane, image_units,
		units; /* positions and units of an image, units of all images */
	int64_t rows;  /* of a block */
	int64_t panels, shares, blocks, slices; /* shares: tasks for the panels of a block */
	bool in_place;				/* the taps are read from the source, not copied */
	enum tile_mode tiles;
	T *more; /* [slices - 1, weights]: sums of the slices after the first, which is in c->out */
	_Atomic bool failed;
};

typedef T unit __attribute__((aligned(sizeof(E)), may_alias));

/* Positions that are contiguous in the source: from an index in it to one in a row. */
struct wgrad_run {
	int64_t from, to, n;
};

/* The memory of a task. */
struct wgrad_work {
	struct wgrad_run run[DEPTH * UNIT];
	int64_t position[DEPTH];
	T a[WEIGHT_ROWS * ROW_PITCH + LANES], b[DEPTH * WIDE];
	T sums[WEIGHT_PANELS * WEIGHT_ROWS * WIDE]; /* by panel: rows of WIDE sums */
	T model[MODEL_UNITS + 1];		    /* of tiles.h */
};

/* Sets run[] to the positions of units u to u + k. Returns their number. */
static int64_t runs_of_units(const struct wgrad_plan *s, struct wgrad_run *run, int64_t u,
			     int64_t k)
{
	const struct conv_wgrad *c = s->c;
	int64_t n = 0, at = u % s->image_units * UNIT, image = u / s->image_units;

	for (int64_t to = 0; to < k * UNIT; at = 0, image++) {
		struct conv_walk w = conv_walk_from(c->grid, image * s->plane + at);
		int64_t count = min64(s->plane - at, k * UNIT - to), i = 0;

		for (; i < count; i += run[n++].n) {
			run[n].from = conv_walk_offset(&w, c->src.image, c->src.step);
			run[n].to = to + i;
			run[n].n = conv_walk_run(&w, count - i);
			conv_walk_on(&w, run[n].n);
		}
		to += (count + UNIT - 1) / UNIT * UNIT;
	}
	return n;
}

/*
 * Copies the runs for each of m taps to a row. Writes up to a vector beyond each run: over the next
 * run or row, which is copied later, and with zeros for the rest of the last unit of an image.
 */
static void copy_taps(T *to, const E *src, const int64_t *offset, int64_t m,
		      const struct wgrad_run *run, int64_t runs)
{
	for (int64_t i = 0; i < m; i++, to += ROW_PITCH)
		for (int64_t r = 0; r < runs; r++) {
			const E *from = src + offset[i] + run[r].from;
			E *at = (E *)to + run[r].to;

			for (int64_t j = 0; j < run[r].n; j += LANES * UNIT) {
				VEC v = LOAD_UNITS(from + j, min64(run[r].n - j, LANES * UNIT));

				memcpy(at + j, &v, sizeof(v));
			}
		}
}

#define IN_PLACE (VEC_BYTES == 64)

/* Sets position[] to the places in the source of the units of the runs, which divide them evenly. */
static void positions_of_runs(int64_t *position, const struct wgrad_run *run, int64_t runs)
{
	for (int64_t r = 0; r < runs; r++)
		for (int64_t i = 0; i < run[r].n; i += UNIT)
			position[(run[r].to + i) / UNIT] = run[r].from + i;
}

/* ROWS rows of taps, read at offset[] and position[] of the source, and `vecs` vectors of columns. */
static inline __attribute__((always_inline)) void place_tile(const struct tile *t, const E *src,
							     const int64_t *offset,
							     const int64_t *position,
							     const int vecs)
{
	const E *a[ROWS];
	const T *b = t->b;
	VEC sum[ROWS][VECS];

#pragma GCC unroll 8
	for (int i = 0; i < ROWS; i++) {
		a[i] = src + offset[i];
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = (VEC){ 0 };
	}
	for (int64_t k = 0; k < t->k; k++, b += vecs * LANES) {
		int64_t at = position[k];
		VEC row[VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			row[j] = *(const VEC *)(b + j * LANES);
#pragma GCC unroll 8
		for (int i = 0; i < ROWS; i++) {
			VEC x = BROADCAST(*(const unit *)(a[i] + at));
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				sum[i][j] = MULADD(sum[i][j], x, row[j]);
		}
	}
	store_tile(t, sum, ROWS, vecs, true);
}

static void place_tile_1(const struct tile *t, const E *src, const int64_t *offset,
			 const int64_t *position)
{
	place_tile(t, src, offset, position, 1);
}

static void place_tile_2(const struct tile *t, const E *src, const int64_t *offset,
			 const int64_t *position)
{
	place_tile(t, src, offset, position, 2);
}

static void place_tile_3(const struct tile *t, const E *src, const int64_t *offset,
			 const int64_t *position)
{
	place_tile(t, src, offset, position, 3);
}

/* m rows, a multiple of ROWS. */
static void compute_in_place(struct tile t, const E *src, const int64_t *offset,
			     const int64_t *position, int64_t m, int vecs)
{
	static void (*const place_tiles[VECS + 1])(
		const struct tile *, const E *, const int64_t *,
		const int64_t *) = { NULL, place_tile_1, place_tile_2, place_tile_3 };

	for (int64_t i = 0; i < m; i += ROWS, t.c += ROWS * t.rsc)
		place_tiles[vecs](&t, src, offset + i, position);
}

/* Transposes n channels of `count` positions, `plane` apart, to rows of `width` units. */
static void transpose_gradient(T *to, const E *grad, int64_t plane, int64_t n, int64_t width,
			       int64_t count)
{
	for (int64_t j = 0; j < width; j += LANES, n -= LANES, grad += LANES * plane)
		for (int64_t p = 0; p < count; p += LANES * UNIT) {
			int64_t left = min64(count - p, LANES * UNIT);
			T *at = to + p / UNIT * width + j;
			VEC row[LANES];

			if (n >= LANES && left == LANES * UNIT) {
#pragma GCC unroll 16
				for (int i = 0; i < LANES; i++)
					memcpy(&row[i], grad + i * plane + p, sizeof(*row));
				transpose_lanes(row);
#pragma GCC unroll 16
				for (int i = 0; i < LANES; i++)
					*(VEC *)(at + i * width) = row[i];
				continue;
			}
			for (int i = 0; i < LANES; i++)
				row[i] = i < n ? LOAD_UNITS(grad + i * plane + p, left) :
						 (VEC){ 0 };
			transpose_lanes(row);
			for (int64_t i = 0; i * UNIT < left; i++)
				*(VEC *)(at + i * width) = row[i];
		}
}

/* The gradient of n channels for units u to u + k. */
static void gradient_of_units(const struct wgrad_plan *s, T *to, const E *grad, int64_t n,
			      int64_t width, int64_t u, int64_t k)
{
	int64_t image = s->c->groups * s->c->columns * s->plane;
	int64_t at = u % s->image_units * UNIT;

	grad += u / s->image_units * image;
	for (int64_t done = 0, count; done < k; grad += image, at = 0) {
		count = min64(s->plane - at, (k - done) * UNIT);
		transpose_gradient(to + done * width, grad + at, s->plane, n, width, count);
		done += (count + UNIT - 1) / UNIT;
	}
}

/* out[j, i] = block[i, j], for m rows and n columns of the block. */
static void store_transposed(T *out, int64_t pitch, const T *block, int64_t m, int64_t n)
{
	for (int64_t j = 0; j < n; j += LANES, out += LANES * pitch)
		for (int64_t i = 0; i < m; i += LANES) {
			int64_t rows = min64(m - i, LANES), columns = min64(n - j, LANES);
			VEC row[LANES];

#pragma GCC unroll 16
			for (int x = 0; x < LANES; x++)
				row[x] =
					*(const VEC *)(block + (i + min64(x, rows - 1)) * WIDE + j);
			transpose_lanes(row);
			if (rows == LANES && columns == LANES)
#pragma GCC unroll 16
				for (int y = 0; y < LANES; y++)
					*(VEC *)(out + y * pitch + i) = row[y];
			else
				for (int64_t y = 0; y < columns; y++)
					STORE(out + y * pitch + i, PART(rows), row[y]);
		}
}

/* The same at out_offset[row + i], with zeros between. The last block stores the rest of a row. */
static void store_spread(const struct conv_wgrad *c, T *out, const T *block, int64_t row, int64_t m,
			 int64_t n)
{
	const int64_t *offset = c->out_offset + row;

	for (int64_t j = 0; j < n; j++, out += c->out_row) {
		int64_t at = row ? offset[0] : 0;

		/* In parts, so that the zeros are still in the L1 cache. */
		for (int64_t i = 0; i < m;) {
			int64_t until = min64(m, i + LANES);
			int64_t end = row + until < c->depth ? offset[until] : c->out_row;

			memset(out + at, 0, (end - at) * sizeof(T));
			for (; i < until; i++)
				out[offset[i]] = block[i * WIDE + j];
			at = end;
		}
	}
}

/* Columns of panel i, and its first column; see panel_start(). */
static int64_t panel_columns_of(const struct wgrad_plan *s, int64_t i, int64_t *first)
{
	*first = panel_start(s->c->columns, i);
	return min64(s->c->columns,
		     i + 1 < s->panels ? panel_start(s->c->columns, i + 1) : INT64_MAX) -
	       *first;
}

/* Adds the products of t, with rows of b of t->rsb units, to t->c by tiles. */
static void weight_tiles(const struct wgrad_plan *s, struct wgrad_work *w, const struct tile *t,
			 int64_t m)
{
	struct tile_block block = { .a = t->a,
				    .b = t->b,
				    .sums = t->c,
				    .pitch = ROW_PITCH,
				    .width = t->rsb,
				    .row = WIDE,
				    .depth = whole_tiles(t->k),
				    .add = t->beta != 0 };

	memset(w->b + t->k * t->rsb, 0, (block.depth - t->k) * t->rsb * sizeof(T));
	compute_tile_rows(&block, m, s->tiles == TILES_MODEL ? w->model : NULL);
}

/* Zeros behind the k units of each row of taps, up to whole tiles. */
static void end_taps(T *a, int64_t m, int64_t k)
{
	for (int64_t i = 0; i < m && k < whole_tiles(k); i++)
		memset(a + i * ROW_PITCH + k, 0, (whole_tiles(k) - k) * sizeof(T));
}

/* The sums of m rows from `row` on and of panels `from` to `until`, for a slice of the units. */
static void wgrad_sums(const struct wgrad_plan *s, struct wgrad_work *w, int64_t slice,
		       int64_t group, int64_t from, int64_t until, int64_t row, int64_t m)
{
	const struct conv_wgrad *c = s->c;
	const E *src = (const E *)c->src.data + group * c->src.group;
	int64_t u = s->units * slice / s->slices, end = s->units * (slice + 1) / s->slices;
	bool in_place = s->in_place && m % ROWS == 0;
	struct tile t = {
		.a = w->a, .rsa = ROW_PITCH, .csa = 1, .b = w->b, .rsc = WIDE, .alpha = 1
	};

	for (; u < end; u += t.k, t.beta = 1) {
		int64_t runs;

		t.k = min64(end - u, DEPTH);
		runs = runs_of_units(s, w->run, u, t.k);
		if (in_place)
			positions_of_runs(w->position, w->run, runs);
		else
			copy_taps(w->a, src, c->src.offset + row, m, w->run, runs);
		if (s->tiles)
			end_taps(w->a, m, t.k);
		for (int64_t i = from; i < until; i++) {
			int64_t first, n = panel_columns_of(s, i, &first);
			int vecs = (int)((n + LANES - 1) / LANES);
			const E *grad =
				(const E *)c->grad + (group * c->columns + first) * s->plane;

			t.rsb = vecs * (int64_t)LANES;
			t.c = w->sums + (i - from) * WEIGHT_ROWS * WIDE;
			gradient_of_units(s, w->b, grad, n, t.rsb, u, t.k);
			if (s->tiles)
				weight_tiles(s, w, &t, m);
			else if (in_place)
				compute_in_place(t, src, c->src.offset + row, w->position, m, vecs);
			else
				compute_tiles(&t, m, t.rsb, vecs);
		}
	}
}

static void wgrad_task(const struct wgrad_plan *s, struct wgrad_work *w, int64_t task)
{
	const struct conv_wgrad *c = s->c;
	int64_t row = task % s->blocks * s->rows, m = min64(c->depth - row, s->rows);
	int64_t share = task / s->blocks % s->shares, rest = task / s->blocks / s->shares;
	int64_t slice = rest % s->slices, group = rest / s->slices;
	int64_t from = s->panels * share / s->shares, until = s->panels * (share + 1) / s->shares;
	T *out;

	wgrad_sums(s, w, slice, group, from, until, row, m);
	for (int64_t i = from; i < until; i++) {
		const T *sums = w->sums + (i - from) * WEIGHT_ROWS * WIDE;
		int64_t first, n = panel_columns_of(s, i, &first);

		out = slice ? s->more + (slice - 1) * c->groups * c->columns * c->out_row : c->out;
		out += (group * c->columns + first) * c->out_row;
		if (c->out_offset)
			store_spread(c, out, sums, row, m, n);
		else
			store_transposed(out + row, c->out_row, sums, m, n);
	}
}

static void wgrad_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct wgrad_plan *s = ctx;
	struct tensor_storage *mem =
		storage_alloc(TENSOR_DEVICE_CPU, sizeof(struct wgrad_work), false);
	T *model;

	if (!mem) {
		s->failed = true;
		return;
	}
	model = s->tiles == TILES_MODEL ? ((struct wgrad_work *)mem->data)->model : NULL;
	if (s->tiles)
		tiles_begin(model);
	for (int64_t i = begin; i < end; i++)
		wgrad_task(s, mem->data, i);
	if (s->tiles)
		tiles_end(model);
	storage_put(mem);
}

static void add_slices(int64_t begin, int64_t end, void *ctx)
{
	const struct wgrad_plan *s = ctx;
	const struct conv_wgrad *c = s->c;
	int64_t n = c->groups * c->columns * c->out_row;
	T *out = c->out;

	for (int64_t k = 1; k < s->slices; k++) {
		const T *part = s->more + (k - 1) * n;

		IVDEP for (int64_t i = begin; i < end; i++) out[i] += part[i];
	}
}

/* Divides the work into tasks, by the shape alone. */
static void divide_weights(struct wgrad_plan *s)
{
	const struct conv_wgrad *c = s->c;
	int64_t n = c->groups * c->columns * c->out_row, tasks;

	s->tiles = tiles_for(c->depth);
	s->in_place = !s->tiles && IN_PLACE && c->grid[AXES - 1] % UNIT == 0;
	s->image_units = (s->plane + UNIT - 1) / UNIT;
	s->units = c->batch * s->image_units;
	s->panels = panel_count(c->columns);
	s->shares = (s->panels + WEIGHT_PANELS - 1) / WEIGHT_PANELS;
	s->blocks = (c->depth + WEIGHT_ROWS - 1) / WEIGHT_ROWS;
	s->rows = ((c->depth + s->blocks - 1) / s->blocks + ROWS - 1) / ROWS * ROWS;
	tasks = c->groups * s->shares * s->blocks;
	s->slices = 1;
	if (tasks < CHUNKS) {
		s->slices = min64((CHUNKS + tasks - 1) / tasks, c->batch * s->plane / SLICE);
		s->slices = min64(s->slices, SLICE_MAX / n);
		if (s->slices < 1)
			s->slices = 1;
	}
}

int CONV(conv_wgrad)(const struct conv_wgrad *given)
{
	struct conv_wgrad c = *given;
	struct wgrad_plan s = { .c = &c };
	struct tensor_storage *mem = NULL;
	int64_t n = c.groups * c.columns * c.out_row, step[AXES];

	s.plane = c.grid[0] * c.grid[1] * c.grid[2];
	if (!n)
		return 0;
	if (!c.batch || !s.plane || !c.depth) {
		memset(c.out, 0, n * sizeof(T));
		return 0;
	}
#ifndef NO_DEPTHWISE
	if (conv_is_depthwise(c.columns, c.depth, c.groups))
		return depth_weight(&c);
#endif
	memcpy(step, c.src.step, sizeof(step));
	conv_fold(c.grid, c.src.step, step);
	divide_weights(&s);
	if (s.slices > 1) {
		mem = storage_alloc(TENSOR_DEVICE_CPU, (s.slices - 1) * n * sizeof(T), false);
		if (!mem)
			return -thread()->error.code;
		s.more = mem->data;
	}
	parallel_for(0, c.groups * s.shares * s.blocks * s.slices, 1, wgrad_chunk, &s);
	if (mem) {
		parallel_for(0, n, ADD_GRAIN, add_slices, &s);
		storage_put(mem);
	}
	return s.failed ? tensor_fail(ENOMEM, "convolution_backward: no memory for a block") : 0;
}

#endif
