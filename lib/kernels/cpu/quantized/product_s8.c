// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products and convolutions of quantized numbers: u8 by i8, summed exactly in i32 and requantized while the sums are in the L1 cache. A
 * convolution reads the channels of each tap where they are, with channels last, by a table of their addresses, so that no columns are
 * made; images with channels first are transposed once. Weights are packed (pack_s8.h). Processors with AMX use tiles
 * (product_s8_amx.h); the sums are the same.
 */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/quantized.h"
#include "kernels/formula/quantize.h"
#include "kernels/cpu/quantized/pack_s8.h"
#include "kernels/cpu/simd/transpose_bytes.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_i8.h"

#define ROWS  64 /* positions of a block */
#define TAPS  16 /* taps whose addresses are in the table */
#define SLACK 64 /* bytes that a vector may read past the last channel */

/* Rows of a block times one panel: of each tap, the addresses of the rows. */
struct tile {
	const uint8_t *const *x; /* [taps][ROWS] */
	const int8_t *w;
	int64_t width;			  /* columns that a unit of w has */
	int64_t rows, taps, units, shift; /* shift: bytes added to the addresses */
	bool add;			  /* to the sums */
};

#define SUFFIX plain
#define TARGET
#define ADD dot_add
#include "kernels/cpu/quantized/product_s8_tile.h"
#undef SUFFIX
#undef TARGET
#undef ADD

#ifdef DOT_FAST
#define SUFFIX fast
#define TARGET DOT_FAST
#define ADD    dot_add_fast
#include "kernels/cpu/quantized/product_s8_tile.h"
#undef SUFFIX
#undef TARGET
#undef ADD
#endif

/* The product of a block, of n columns. */
typedef void (*block_fn)(int32_t *sums, const struct tile *t, int64_t n);

static block_fn best_block(bool depthwise)
{
#ifdef DOT_FAST
	if (dot_has_fast())
		return depthwise ? channels_fast : block_fast;
#endif
	return depthwise ? channels_plain : block_plain;
}

struct job {
	const struct product_s8 *p;
	struct packing w;
	const int8_t *panels;
	const uint8_t *x,
		*outside; /* channels last; the channels of a position outside of the image */
	int64_t pitch;	  /* bytes of a position */
	int64_t positions, blocks; /* of an image */
};

#include "kernels/cpu/quantized/product_s8_amx.h"

/* ---- requantization ---- */

/* The position of the sum of channel j of a depthwise panel (product_s8_tile.h). */
static int64_t channel_place(int64_t j)
{
	return j % 16 / 4 * DOT_LANES + j / 16 * 4 + j % 4;
}

/* The corrections of the columns of a panel; bias is in units of a sum. */
struct column {
	int32_t zero[PANEL], offset[PANEL];
	float bias[PANEL], multiplier[PANEL];
	bool zeros; /* a zero point is not 0 */
};

static void prepare_columns(struct column *c, const struct job *job, int64_t first, int64_t n)
{
	const struct requantize *q = job->p->requantize;
	const int32_t *sums = job->p->packed->data;
	uint32_t depth = (uint32_t)(job->p->shape.channels * job->w.taps);

	memset(c, 0, sizeof(*c));
	for (int64_t k = 0; k < n; k++) {
		int64_t at = first + k, j = job->w.depthwise ? channel_place(k) : k;
		float scale = q->scale[at];

		c->zero[j] = q->w_zero[at];
		c->zeros |= q->w_zero[at] != 0;
		c->offset[j] = (int32_t)(depth * (uint32_t)q->x_zero * (uint32_t)q->w_zero[at] -
					 (uint32_t)q->x_zero * (uint32_t)sums[at]);
		c->multiplier[j] = scale / q->out_scale;
		c->bias[j] = !q->bias		? 0 :
			     q->bias_reciprocal ? q->bias[at] * (1.0f / scale) :
						  q->bias[at] / scale;
	}
}

/* `width` columns of a row; inlined with a constant, so that a vector holds as many bytes as it can. */
static inline __attribute__((always_inline)) void
requantize_columns(uint8_t *restrict bytes, const int32_t *restrict sums,
		   const struct column *restrict c, int64_t at, const int32_t *restrict sums_x,
		   bool each, const struct requantize *restrict q, const int width)
{
	const float low = (float)(q->low - q->out_zero), high = (float)(q->high - q->out_zero);
	const int32_t zero = q->out_zero;
	int32_t corrected[PANEL];

	for (int j = 0; j < width; j++)
		corrected[j] = (int32_t)((uint32_t)sums[at + j] + (uint32_t)c->offset[at + j]);
	for (int j = 0; j < width && c->zeros; j++)
		corrected[j] =
			(int32_t)((uint32_t)corrected[j] -
				  (uint32_t)c->zero[at + j] * (uint32_t)sums_x[each ? at + j : 0]);
	for (int j = 0; j < width; j++)
		bytes[at + j] = (uint8_t)quantize_to_byte((float)corrected[j] + c->bias[at + j],
							  c->multiplier[at + j], zero, low, high);
}

/*
 * A block of a multiple of 16 columns; the corrections of columns beyond n are 0. `sums_x` has the sums of the rows of x: one of a row, or
 * with `each` one of each column. It is read where a zero point is not 0.
 */
static __attribute__((noinline)) void
requantize_block(uint8_t *restrict bytes, const int32_t *restrict sums,
		 const struct column *restrict c, int64_t rows, int64_t n,
		 const int32_t *restrict sums_x, bool each, const struct requantize *restrict q)
{
	for (int64_t r = 0; r < rows; r++, bytes += PANEL, sums += PANEL, sums_x += PANEL) {
		if (n == PANEL)
			requantize_columns(bytes, sums, c, 0, sums_x, each, q, PANEL);
		for (int64_t i = 0; i < n && n < PANEL; i += 16)
			requantize_columns(bytes, sums, c, i, sums_x, each, q, 16);
	}
}

/* Channels of a depthwise block from the order of their sums (product_s8_tile.h) to their own. */
static void order_channels(uint8_t *bytes, int64_t rows)
{
	for (int64_t r = 0; r < rows; r++, bytes += PANEL) {
		uint32_t from[DOT_LANES], to[DOT_LANES];

		memcpy(from, bytes, sizeof(from));
		for (int i = 0; i < DOT_LANES; i++)
			to[i] = from[i % 4 * (DOT_LANES / 4) + i / 4];
		memcpy(bytes, to, sizeof(to));
	}
}

/* ---- blocks ---- */

/* One task: a block of positions of an image, and a panel of columns. */
struct task {
	int64_t image, row, rows;	/* the first position, and their number */
	int64_t group, panel, first, n; /* first: of all output channels */
	int64_t shift;
};

static struct task task_of(const struct job *job, int64_t i)
{
	const struct packing *w = &job->w;
	int64_t block = i / (w->groups * w->panels), rest = i % (w->groups * w->panels);
	int64_t at = rest % w->panels * w->width;
	struct task t = { .image = block / job->blocks,
			  .row = block % job->blocks * ROWS,
			  .group = rest / w->panels,
			  .panel = rest };

	t.rows = job->positions - t.row < ROWS ? job->positions - t.row : ROWS;
	t.n = w->n - at < w->width ? w->n - at : w->width;
	t.first = t.group * w->n + at;
	t.shift = w->depthwise ? at : t.group * w->units * 4;
	return t;
}

/* The first tap of each row of a block. */
struct corners {
	int64_t y[ROWS], x[ROWS];
	uint64_t at[ROWS]; /* their addresses, which are not valid outside of the image */
	bool inside;	   /* all taps of all rows are in the image */
};

static void find_corners(struct corners *c, const struct job *job, const struct task *t)
{
	const struct patches *s = &job->p->shape;
	int64_t y = t->row / s->ow, x = t->row % s->ow;
	int64_t high = s->height - (s->kh - 1) * s->dilation[0],
		wide = s->width - (s->kw - 1) * s->dilation[1];

	uint64_t image = (uintptr_t)(job->x + t->image * s->height * s->width * job->pitch);

	c->inside = true;
	for (int64_t r = 0; r < t->rows; r++) {
		c->y[r] = y * s->stride[0] - s->padding[0];
		c->x[r] = x * s->stride[1] - s->padding[1];
		c->at[r] = image + (uint64_t)((c->y[r] * s->width + c->x[r]) * job->pitch);
		c->inside &= c->y[r] >= 0 && c->x[r] >= 0 && c->y[r] < high && c->x[r] < wide;
		if (++x == s->ow) {
			x = 0;
			y++;
		}
	}
}

/* The addresses of `taps` taps from `tap` on for the rows of a task. */
static void make_table(const uint8_t **table, const struct corners *c, const struct job *job,
		       const struct task *t, int64_t tap, int64_t taps)
{
	const struct patches *s = &job->p->shape;
	const int64_t height = s->height, width = s->width;
	const uint64_t outside = (uintptr_t)job->outside;

	for (int64_t k = 0; k < taps; k++) {
		int64_t dy = (tap + k) / s->kw * s->dilation[0],
			dx = (tap + k) % s->kw * s->dilation[1];
		uint64_t at[ROWS], step = (uint64_t)((dy * width + dx) * job->pitch);

		for (int64_t r = 0; r < t->rows; r++)
			at[r] = c->at[r] + step;
		for (int64_t r = 0; r < t->rows && !c->inside; r++) {
			bool inside = (uint64_t)(c->y[r] + dy) < (uint64_t)height &&
				      (uint64_t)(c->x[r] + dx) < (uint64_t)width;

			at[r] = inside ? at[r] : outside;
		}
		memcpy(table + k * ROWS, at, t->rows * sizeof(*at));
	}
}

/* rows[r]: the sum of the bytes of x that row r multiplies; depthwise: that of each channel, at its place. */
static void add_rows(int32_t *rows, const struct job *job, const struct task *t,
		     const uint8_t *const *table, int64_t taps)
{
	int64_t n = job->w.depthwise ? t->n : job->w.units * 4;

	for (int64_t k = 0; k < taps; k++)
		for (int64_t r = 0; r < t->rows; r++) {
			const uint8_t *x = table[k * ROWS + r] + t->shift;
			uint32_t sum = 0;

			for (int64_t c = 0; c < n && job->w.depthwise; c++)
				rows[r * PANEL + channel_place(c)] += x[c];
			for (int64_t c = 0; c < n && !job->w.depthwise; c++)
				sum += x[c];
			rows[r * PANEL] = job->w.depthwise ?
						  rows[r * PANEL] :
						  (int32_t)((uint32_t)rows[r * PANEL] + sum);
		}
}

static void store_block(const struct job *job, const struct task *t, const uint8_t *bytes)
{
	const struct product_s8 *p = job->p;
	int64_t channels = p->groups * p->n;

	if (!p->channels_last) {
		transpose_bytes(p->out + (t->image * channels + t->first) * job->positions + t->row,
				job->positions, bytes, PANEL, t->rows, t->n, t->rows);
		return;
	}
	for (int64_t r = 0; r < t->rows; r++)
		memcpy(p->out + (t->image * job->positions + t->row + r) * channels + t->first,
		       bytes + r * PANEL, t->n);
}

/* The memory of a chunk. */
struct space {
	int32_t sums[ROWS * PANEL], rows[ROWS * PANEL];
	uint8_t bytes[ROWS * PANEL];
	const uint8_t *table[TAPS * ROWS];
	struct corners corners;
	struct column columns;
	int64_t made,
		prepared; /* the block whose addresses, and the first column whose corrections are made, or -1 */
};

/* The sums of a task, and those of its rows where zero points need them. */
static void sum_task(struct space *s, struct tile_work *tiles, const struct job *job,
		     const struct task *t, int64_t block)
{
	const struct packing *w = &job->w;
	const int8_t *panel = job->panels + t->panel * w->bytes;
	bool copy = tile_work_begin(tiles, block, t->shift);
	block_fn product = tiles->mode ? NULL : best_block(w->depthwise);

	if (s->made != block)
		find_corners(&s->corners, job, t);
	if (s->columns.zeros)
		memset(s->rows, 0, sizeof(s->rows));
	for (int64_t tap = 0; tap < w->taps; tap += TAPS) {
		int64_t taps = w->taps - tap < TAPS ? w->taps - tap : TAPS;
		struct tile tile = { .x = s->table,
				     .w = panel + (w->depthwise ? tap * DOT_BYTES :
								  tap * w->units * 4 * w->width),
				     .width = w->width,
				     .rows = t->rows,
				     .taps = taps,
				     .units = w->units,
				     .shift = t->shift,
				     .add = tap > 0 };

		if (s->made != block || w->taps > TAPS)
			make_table(s->table, &s->corners, job, t, tap, taps);
		if (product)
			product(s->sums, &tile, t->n);
		if (copy)
			tile_work_copy(tiles, &tile, tap);
		if (s->columns.zeros)
			add_rows(s->rows, job, t, s->table, taps);
	}
	s->made = block;
	if (!product)
		tile_work_sum(tiles, s->sums, panel, w->width, t->rows);
}

static void compute_tasks(int64_t begin, int64_t end, void *ctx)
{
	const struct job *job = ctx;
	struct tile_work tiles;
	struct space s;

	s.made = s.prepared = -1;
	tile_work_open(&tiles, job);
	for (int64_t i = begin; i < end; i++) {
		struct task t = task_of(job, i);

		if (s.prepared != t.first)
			prepare_columns(&s.columns, job, s.prepared = t.first, t.n);
		sum_task(&s, &tiles, job, &t, i / (job->w.groups * job->w.panels));
		requantize_block(s.bytes, s.sums, &s.columns, t.rows,
				 job->w.depthwise ? DOT_BYTES : (t.n + 15) / 16 * 16, s.rows,
				 job->w.depthwise, job->p->requantize);
		if (job->w.depthwise)
			order_channels(s.bytes, t.rows);
		store_block(job, &t, s.bytes);
	}
	tile_work_close(&tiles);
}

/* ---- images with channels last ---- */

struct reorder {
	const struct job *job;
	uint8_t *to;
	int64_t parts, channels, pitch,
		pixels; /* of an image: parts of so many channels, `pitch` bytes each afterwards */
};

#define PIXELS 256 /* of a task */

static void reorder_tasks(int64_t begin, int64_t end, void *ctx)
{
	const struct reorder *o = ctx;
	int64_t runs = (o->pixels + PIXELS - 1) / PIXELS;

	for (int64_t i = begin; i < end; i++) {
		int64_t image = i / (o->parts * runs), part = i / runs % o->parts,
			first = i % runs * PIXELS;
		int64_t n = o->pixels - first < PIXELS ? o->pixels - first : PIXELS;
		uint8_t *to = o->to + (image * o->pixels + first) * o->job->pitch + part * o->pitch;
		const uint8_t *from = o->job->p->x + image * o->parts * o->channels * o->pixels +
				      part * o->channels;

		if (!o->job->p->channels_last) {
			transpose_bytes(
				to, o->job->pitch,
				o->job->p->x + (image * o->parts + part) * o->channels * o->pixels +
					first,
				o->pixels, o->channels, n, o->pitch);
			continue;
		}
		from += first * o->parts * o->channels;
		for (int64_t k = 0; k < n;
		     k++, to += o->job->pitch, from += o->parts * o->channels) {
			memcpy(to, from, o->channels);
			memset(to + o->channels, 0, o->pitch - o->channels);
		}
	}
}

/* The numbers 0 of a position outside of the image. */
static void fill_outside(uint8_t *to, const struct reorder *o, uint8_t zero)
{
	memset(to, 0, o->job->pitch + SLACK);
	for (int64_t i = 0; i < o->parts; i++)
		memset(to + i * o->pitch, zero, o->channels);
}

/*
 * Sets the addresses of x with channels last; *memory is that of the copy, if one is needed, and of the position outside. Groups are whole
 * units, and the vectors of a depthwise product may read past the last position.
 */
static int read_images(struct job *job, struct tensor_storage **memory)
{
	const struct product_s8 *p = job->p;
	int64_t channels = p->shape.channels, pixels = p->shape.height * p->shape.width;
	bool whole = job->w.depthwise || channels % 4 == 0;
	struct reorder o = { .job = job,
			     .parts = whole ? 1 : p->groups,
			     .channels = whole ? p->groups * channels : channels,
			     .pixels = pixels };
	bool in_place = p->channels_last && whole && !job->w.depthwise;
	int64_t size, runs = (pixels + PIXELS - 1) / PIXELS, least;

	o.pitch = whole ? o.channels : job->w.units * 4;
	job->pitch = o.parts * o.pitch;
	size = in_place ? 0 : p->shape.images * pixels * job->pitch;
	*memory = storage_alloc(TENSOR_DEVICE_CPU, size + SLACK + job->pitch + SLACK, false);
	if (!*memory)
		return -ENOMEM;
	o.to = (*memory)->data;
	job->x = in_place ? p->x : o.to;
	job->outside = o.to + size + SLACK;
	fill_outside(o.to + size + SLACK, &o, p->shape.fill);
	if (in_place)
		return 0;
	memset(o.to + size, 0, SLACK);
	least = PIXELS * (o.pitch / 8 + 1);
	parallel_for(0, p->shape.images * o.parts * runs,
		     least < ITER_GRAIN ? ITER_GRAIN / least : 1, reorder_tasks, &o);
	return 0;
}

/* Tasks of a chunk: the panels of some blocks, which share the addresses of their rows, or of a part of a block. */
static int64_t grain(const struct job *job)
{
	int64_t rows = job->positions < ROWS ? job->positions : ROWS,
		of_block = job->w.groups * job->w.panels;
	int64_t vectors = job->w.depthwise ? job->w.taps : job->w.taps * job->w.units;
	int64_t work = rows * job->w.width * (vectors / 4 + 1),
		n = work < 4 * ITER_GRAIN ? 4 * ITER_GRAIN / work : 1;

	return job->p->shape.images * job->blocks < 16 ? n :
							 (n + of_block - 1) / of_block * of_block;
}

/* Some images, whose copy stays in a cache. */
static int compute_images(const struct product_s8 *p)
{
	const struct patches *s = &p->shape;
	struct job job = { .p = p,
			   .w = packing_of(p->groups, p->n, s->channels, s->kh * s->kw),
			   .positions = s->oh * s->ow };
	struct tensor_storage *memory;
	int err;

	job.blocks = (job.positions + ROWS - 1) / ROWS;
	job.panels = (const int8_t *)p->packed->data + job.w.start;
	err = read_images(&job, &memory);
	if (err < 0)
		return err;
	parallel_for(0, s->images * job.blocks * job.w.groups * job.w.panels, grain(&job),
		     compute_tasks, &job);
	storage_put(memory);
	return 0;
}

#define COPY_BYTES (1ll << 20) /* of images that are copied together */

static int cpu_product_s8(const struct product_s8 *p)
{
	const struct patches *s = &p->shape;
	int64_t image = p->groups * s->channels * s->height * s->width, places = s->oh * s->ow,
		channels = p->groups * p->n;
	int64_t most = image < COPY_BYTES ? COPY_BYTES / (image + 1) + 1 : 1;
	int err = 0;

	for (int64_t i = 0; i < s->images && places && channels && !err; i += most) {
		struct product_s8 part = *p;

		part.shape.images = s->images - i < most ? s->images - i : most;
		part.x += i * image;
		part.out += i * places * channels;
		err = compute_images(&part);
	}
	return err;
}

CPU_KERNELS(KERNEL(product_s8))
