/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Convolutions with vectors of output channels, for the element type of the file that includes this one. Rows of the product
 * are positions, read from the source where they are, and its columns are channels, whose weights each task packs block by
 * block into the L1 cache. Compared with conv_implicit_gemm.h, whose vectors are positions, planes of any size fill the
 * tiles, no columns are gathered, and taps that read the border are left out: the positions of a tile have the same taps
 * (struct conv_class_axis). Sums of positions are transposed when they are stored.
 */
#ifndef TENSOR_CONV_CHANNELS_H
#define TENSOR_CONV_CHANNELS_H

#define BLOCK_DEPTH    128 /* weights of an output channel in a block */
#define MOST_POSITIONS 512 /* in a task: their sums stay in the L2 cache */
#define PACK_AHEAD     2   /* channels whose weights are prefetched */
#define LEAST_POSITIONS \
	48 /* packing weights takes as long as their products with about six positions */

/* The element of the source that a position reads, from its first one, and the row of the packed weights. */
struct channel_step {
	int64_t at, weight;
};

struct channel_position {
	int64_t at;  /* first element that it reads in the source of a group */
	int64_t sum; /* index in the chunk */
};

/* Positions of a chunk that have the same taps. */
struct channel_range {
	int64_t from, until;
};

struct channels_plan {
	const struct conv_channels *c;
	int64_t plane, positions, some; /* some: channels of a block */
	int64_t vecs, panels;		/* vectors of a group, and panels of them */
	int64_t chunk, chunks;		/* of positions */
	int classes;
	int64_t taps[MOST_CLASSES]; /* of each class */
	const struct channel_step *step[MOST_CLASSES];
	struct channel_position *position; /* by chunk and class */
	struct channel_range *range;	   /* [chunks][classes] */
	_Atomic bool failed;
};

/* ---- tiles ---- */

struct channel_tile {
	const struct channel_position *position;
	const struct channel_step *step;
	int64_t steps;
	const T *src, *weight;
	T *sums;
	bool add;
};

static inline __attribute__((always_inline)) void channel_tile(const struct channel_tile *t,
							       const int rows, const int vecs)
{
	const struct channel_step *step = t->step, *end = step + t->steps;
	VEC sum[ROWS][VECS];
	const T *a[ROWS];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		a[i] = t->src + t->position[i].at;
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = (VEC){ 0 };
	}
	for (; step < end; step++) {
		const T *b = t->weight + step->weight * (vecs * (int64_t)LANES);
		int64_t at = step->at;
		VEC row[VECS];

#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			row[j] = *(const VEC *)(b + j * LANES);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			VEC x = BROADCAST(a[i][at]);
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				sum[i][j] = MULADD(sum[i][j], x, row[j]);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		T *to = t->sums + t->position[i].sum * (vecs * (int64_t)LANES);
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++, to += LANES)
			*(VEC *)to = sum[i][j] + (t->add ? *(VEC *)to : (VEC){ 0 });
	}
}

#define CHANNEL_TILE(R, V)                                          \
	static void channel_##R##_##V(const struct channel_tile *t) \
	{                                                           \
		channel_tile(t, R, V);                              \
	}
TILES_1(CHANNEL_TILE)
TILES_2(CHANNEL_TILE)
TILES_3(CHANNEL_TILE)

#define CHANNEL_ENTRY(R, V) [V][R] = channel_##R##_##V,
static void (*const channel_tiles[VECS + 1][ROWS + 1])(const struct channel_tile *) = {
	TILES_1(CHANNEL_ENTRY) TILES_2(CHANNEL_ENTRY) TILES_3(CHANNEL_ENTRY)
};

/* The positions of a class, in tiles of almost equal size. */
static void compute_channel_tiles(struct channel_tile *t, int64_t n, int vecs)
{
	int64_t count = (n + tile_rows[vecs] - 1) / tile_rows[vecs];

	for (; count > 0; count--) {
		int64_t rows = n / count;

		channel_tiles[vecs][rows](t);
		t->position += rows;
		n -= rows;
	}
}

/* ---- results ---- */

/* Stores n <= LANES positions of up to LANES channels, m, whose sums are `width` apart. */
static inline void store_channels(T *out, int64_t plane, const T *sums, int64_t width, int64_t n,
				  int64_t m, const T *bias)
{
	vec_part part = PART(n);
	VEC line[LANES];

#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++)
		line[i] = i < n ? *(const VEC *)(sums + i * width) : (VEC){ 0 };
	transpose_lanes(line);
#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++)
		if (i < m)
			STORE(out + i * plane, part, line[i] + (bias ? bias[i] : 0));
}

/* Stores the sums of positions `from` to `until` of a panel of m channels from `row` on. */
static void channels_store(const struct channels_plan *s, int64_t group, int64_t row, int64_t m,
			   int64_t from, int64_t until, const T *sums, int64_t width)
{
	const struct conv_channels *c = s->c;
	const T *bias = c->bias ? (const T *)c->bias + group * c->rows + row : NULL;

	for (int64_t n; from < until; from += n, sums += n * width) {
		int64_t image = from / s->plane, at = from % s->plane;
		T *out =
			(T *)c->out + ((image * c->groups + group) * c->rows + row) * s->plane + at;

		n = min64(s->plane - at, until - from);
		for (int64_t j = 0; j < n; j += LANES)
			for (int64_t i = 0; i < m; i += LANES)
				store_channels(out + i * s->plane + j, s->plane,
					       sums + j * width + i, width, min64(n - j, LANES),
					       m - i, bias ? bias + i : NULL);
	}
}

/* ---- tasks ---- */

/* Packs `channels` channels of m rows: a row of `width` weights for each channel and tap. */
static void channels_pack(const struct conv_channels *c, T *to, const T *w, int64_t channels,
			  int64_t m, int64_t width)
{
	if (c->weight_channel == c->window) {
		pack_panel(to, w, 1, c->weight_row, channels * c->window, m, width);
	} else if (c->weight_row == 1) {
		pack_panel(to, w, c->weight_channel, 1, channels, m, width);
	} else {
		for (int64_t k = 0; k < channels; k++, w += c->weight_channel) {
			/* The processor does not prefetch runs of some lines that are pages apart. */
			for (int64_t i = 0; i < m * c->window; i += 64 / sizeof(T))
				__builtin_prefetch(w + PACK_AHEAD * c->weight_channel + i);
			pack_panel(to + k * c->window * width, w, 1, c->weight_row, c->window, m,
				   width);
		}
	}
}

/* The channels of panel i: vectors from .. the result, the first of panel i + 1. */
static inline int64_t channels_panel(const struct channels_plan *s, int64_t i)
{
	return i * s->vecs / s->panels;
}

static void channels_task(const struct channels_plan *s, T *mem, int64_t group, int64_t panel,
			  int64_t chunk)
{
	const struct conv_channels *c = s->c;
	int vecs = (int)(channels_panel(s, panel + 1) - channels_panel(s, panel));
	int64_t row = channels_panel(s, panel) * LANES, width = vecs * (int64_t)LANES;
	int64_t m = min64(c->rows - row, width), from = chunk * s->chunk;
	T *weight = mem, *sums = mem + s->some * c->window * width;
	const struct channel_range *range = s->range + chunk * s->classes;

	for (int64_t k = 0, n; k < c->channels; k += n) {
		n = min64(c->channels - k, s->some);
		channels_pack(c, weight,
			      (const T *)c->weight + group * c->weight_group + row * c->weight_row +
				      k * c->weight_channel,
			      n, m, width);
		for (int i = 0; i < s->classes; i++) {
			struct channel_tile t = { .position = s->position + range[i].from,
						  .step = s->step[i],
						  .steps = n * s->taps[i],
						  .src = (const T *)c->src +
							 (group * c->channels + k) * c->src_channel,
						  .weight = weight,
						  .sums = sums,
						  .add = k };

			compute_channel_tiles(&t, range[i].until - range[i].from, vecs);
		}
	}
	channels_store(s, group, row, m, from, min64(from + s->chunk, s->positions), sums, width);
}

static void channels_tasks(int64_t begin, int64_t end, void *ctx)
{
	struct channels_plan *s = ctx;
	struct tensor_storage *mem;

	mem = storage_alloc(TENSOR_DEVICE_CPU,
			    (s->some * s->c->window + s->chunk) * WIDE * sizeof(T), false);
	if (!mem) {
		s->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t rest = i % (s->panels * s->chunks);

		channels_task(s, mem->data, i / (s->panels * s->chunks), rest / s->chunks,
			      rest % s->chunks);
	}
	storage_put(mem);
}

/* ---- plan ---- */

/* The number of the class of position z, y, x. */
static inline int class_of(const struct conv_class_axis *a, int64_t z, int64_t y, int64_t x)
{
	return (a[0].of[z] * a[1].classes + a[1].of[y]) * a[2].classes + a[2].of[x];
}

/* Sets the steps of all classes, for a block of channels. Returns their end. */
static struct channel_step *channels_steps(struct channels_plan *s, struct channel_step *to)
{
	const struct conv_class_axis *a = s->c->axis;

	for (int i = 0; i < s->classes; i++) {
		const struct conv_class *x = &a[2].class[i % a[2].classes];
		const struct conv_class *y = &a[1].class[i / a[2].classes % a[1].classes];
		const struct conv_class *z = &a[0].class[i / a[2].classes / a[1].classes];

		s->step[i] = to;
		s->taps[i] = (int64_t)z->taps * y->taps * x->taps;
		for (int64_t k = 0; k < s->some; k++)
			for (int p = 0; p < z->taps; p++)
				for (int q = 0; q < y->taps; q++)
					for (int r = 0; r < x->taps; r++) {
						int64_t line = z->at[p] * a[1].in + y->at[q];
						int64_t tap = z->tap[p] * a[1].extent + y->tap[q];

						to->at = k * s->c->src_channel + line * a[2].in +
							 x->at[r];
						to++->weight = k * s->c->window +
							       tap * a[2].extent + x->tap[r];
					}
	}
	return to;
}

/* Counts the positions of each range, or, if `set`, sorts them into the ranges. */
static void channels_sort(struct channels_plan *s, bool set)
{
	const struct conv_class_axis *a = s->c->axis;
	int64_t chunk = 0, at = 0;

	for (int64_t image = 0; image < s->c->batch; image++)
		for (int64_t z = 0; z < a[0].out; z++)
			for (int64_t y = 0; y < a[1].out; y++)
				for (int64_t x = 0; x < a[2].out; x++, at++) {
					struct channel_range *r;
					int64_t line = a[0].first[z] * a[1].in + a[1].first[y];

					if (at == s->chunk)
						chunk += s->classes, at = 0;
					r = s->range + chunk + class_of(a, z, y, x);
					if (set)
						s->position[r->until] = (struct channel_position){
							.at = image * s->c->src_image +
							      line * a[2].in + a[2].first[x],
							.sum = at
						};
					r->until++;
				}
}

/* Divides positions and channels among tasks, evenly for the threads. */
static void channels_divide(struct channels_plan *s)
{
	const struct conv_channels *c = s->c;
	int64_t threads = tensor_get_num_threads(), most = MOST_POSITIONS;

	s->vecs = (c->rows + LANES - 1) / LANES;
	s->panels = (s->vecs + VECS - 1) / VECS;
	if (c->groups * s->panels % threads)
		s->panels = min64(s->vecs, (s->panels + threads - 1) / threads * threads);
	while (most > 2 * LEAST_POSITIONS &&
	       c->groups * s->panels * ((s->positions + most - 1) / most) < 2 * threads)
		most /= 2;
	s->chunks = (s->positions + most - 1) / most;
	s->chunk = (s->positions + s->chunks - 1) / s->chunks;
	s->chunks = (s->positions + s->chunk - 1) / s->chunk;
}

int CONV(conv_channels)(const struct conv_channels *c)
{
	const struct conv_class_axis *a = c->axis;
	struct channels_plan s = {
		.c = c,
		.plane = a[0].out * a[1].out * a[2].out,
		.some = min64(BLOCK_DEPTH / c->window + !(BLOCK_DEPTH / c->window), c->channels),
		.classes = a[0].classes * a[1].classes * a[2].classes
	};
	struct tensor_storage *mem;
	int64_t ranges, steps, from = 0;

	s.positions = c->batch * s.plane;
	channels_divide(&s);
	ranges = s.chunks * s.classes;
	steps = s.classes * s.some * c->window;
	mem = storage_alloc(TENSOR_DEVICE_CPU,
			    ranges * sizeof(*s.range) + steps * sizeof(**s.step) +
				    s.positions * sizeof(*s.position),
			    false);
	if (!mem)
		return -thread()->error.code;
	s.range = mem->data;
	s.position = (struct channel_position *)(s.range + ranges);
	channels_steps(&s, (struct channel_step *)(s.position + s.positions));
	memset(s.range, 0, ranges * sizeof(*s.range));
	channels_sort(&s, false);
	for (int64_t i = 0; i < ranges; i++) {
		int64_t n = s.range[i].until;

		s.range[i] = (struct channel_range){ from, from };
		from += n;
	}
	channels_sort(&s, true);
	parallel_for(0, c->groups * s.panels * s.chunks, 1, channels_tasks, &s);
	storage_put(mem);
	return s.failed ? tensor_fail(ENOMEM, "convolution: no memory for a block") : 0;
}

#endif
