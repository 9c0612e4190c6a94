/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of the weights of a convolution: for each tap the sum, over the positions of all
 * images, of the gradient of the output times the element that the tap reads. Rows of a tile are
 * taps, read in place; its columns are channels of the gradient, transposed in registers and used
 * by all rows of a block.
 *
 * If there are few blocks, the positions are divided into slices, by the shape alone; their sums
 * are added in order at the end.
 */
#ifndef TENSOR_CONV_WGRAD_H
#define TENSOR_CONV_WGRAD_H

#define WEIGHT_ROWS 192				  /* rows of a block */
#define SLICE	    1024			  /* the least number of positions in a slice */
#define CHUNKS	    16				  /* blocks from which no slices are needed */
#define SLICE_MAX   (CHUNKS * WEIGHT_ROWS * WIDE) /* elements of all slices together */
#define ADD_GRAIN   16384

struct wgrad_plan {
	const struct conv_wgrad *c;
	int64_t plane, positions; /* positions of an image, of all images */
	int64_t panels, blocks, slices;
	T *more; /* [slices - 1, weights]: sums of the slices after the first, which is in c->out */
	_Atomic bool failed;
};

/*
 * Sets position[] to the indices of k positions from p on, and `transposed` to the gradient there,
 * transposed to rows of `width` channels.
 */
static void positions_set(const struct wgrad_plan *s, int64_t *position, T *transposed,
			  const T *grad, int64_t n, int64_t width, int64_t p, int64_t k)
{
	const struct conv_wgrad *c = s->c;
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
		pack_panel(transposed + i * width, grad + (p + i) / s->plane * image + at, 1,
			   s->plane, run, n, width);
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

static void wgrad_block(const struct wgrad_plan *s, T *block, T *transposed, int64_t slice,
			int64_t group, int64_t panel, int64_t row)
{
	const struct conv_wgrad *c = s->c;
	int64_t m = min64(c->depth - row, WEIGHT_ROWS), n = min64(c->columns - panel * WIDE, WIDE);
	int64_t p = s->positions * slice / s->slices, end = s->positions * (slice + 1) / s->slices;
	int vecs = (int)((n + LANES - 1) / LANES);
	int64_t channel = group * c->columns + panel * WIDE, position[DEPTH];
	struct offset_tile r = { .t = { .a = (const T *)c->src.data + group * c->src.group,
					.b = transposed,
					.c = block,
					.rsb = vecs * (int64_t)LANES,
					.rsc = WIDE,
					.alpha = 1 },
				 .offset = c->src.offset + row,
				 .position = position };
	T *out = slice ? s->more + (slice - 1) * c->groups * c->columns * c->out_row : c->out;

	for (int64_t k; p < end; p += k) {
		k = min64(end - p, DEPTH);
		positions_set(s, position, transposed, (const T *)c->grad + channel * s->plane, n,
			      r.t.rsb, p, k);
		r.t.k = k;
		compute_offset_tiles(&r, m, vecs);
		r.t.beta = 1;
	}
	out += channel * c->out_row;
	if (c->out_offset)
		store_spread(c, out, block, row, m, n);
	else
		store_transposed(out + row, c->out_row, block, m, n);
}

static void wgrad_chunk(int64_t begin, int64_t end, void *ctx)
{
	struct wgrad_plan *s = ctx;
	int64_t rows = min64(s->c->depth, WEIGHT_ROWS), depth = min64(s->positions, DEPTH);
	struct tensor_storage *mem =
		storage_alloc(TENSOR_DEVICE_CPU, (rows + depth) * WIDE * sizeof(T), false);

	if (!mem) {
		s->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t row = i % s->blocks, rest = i / s->blocks;
		int64_t panel = rest % s->panels, slice = rest / s->panels % s->slices;

		wgrad_block(s, mem->data, (T *)mem->data + rows * WIDE, slice,
			    rest / s->panels / s->slices, panel, row * WEIGHT_ROWS);
	}
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

int CONV(conv_wgrad)(const struct conv_wgrad *given)
{
	struct conv_wgrad c = *given;
	struct wgrad_plan s = { .c = &c, .slices = 1 };
	struct tensor_storage *mem = NULL;
	int64_t n = c.groups * c.columns * c.out_row, chunks, step[AXES];

	s.plane = c.grid[0] * c.grid[1] * c.grid[2];
	s.positions = c.batch * s.plane;
	if (!n)
		return 0;
	if (!s.positions || !c.depth) {
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
		mem = storage_alloc(TENSOR_DEVICE_CPU, (s.slices - 1) * n * sizeof(T), false);
		if (!mem)
			return -thread()->error.code;
		s.more = mem->data;
	}
	parallel_for(0, chunks * s.slices, 1, wgrad_chunk, &s);
	if (mem) {
		parallel_for(0, n, ADD_GRAIN, add_slices, &s);
		storage_put(mem);
	}
	return s.failed ? tensor_fail(ENOMEM, "convolution_backward: no memory for a block") : 0;
}

#endif
