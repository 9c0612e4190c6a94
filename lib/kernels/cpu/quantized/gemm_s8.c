// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of quantized matrices: u8 by i8, summed exactly in i32 and requantized while the sums
 * are in the L1 cache. Both operands have contiguous rows of k bytes, so an element of the result
 * is a dot product of two rows, and nothing is packed. A tile of DOT_ROWS rows by four columns
 * takes fewer loads than additions. Processors with AMX pack (gemm_s8_amx.h); the sums are the same.
 */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/quantized.h"
#include "kernels/formula/quantize.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_i8.h"

#define PANEL 64   /* columns whose weights stay in the cache for all rows of a chunk */
#define ROWS  64   /* rows in a chunk */
#define ONES  1024 /* bytes of the row of ones in sum_weights() */

/*
 * sums[r * PANEL + j] = the dot product of x[r] and w[j], of k bytes, for j < 4 and for DOT_ROWS
 * rows (tile) or one (line).
 */
typedef void (*tile_fn)(int32_t *sums, const uint8_t *const *x, const int8_t *const *w, int64_t k);

#define SUFFIX plain
#define TARGET
#define ADD dot_add
#include "kernels/cpu/quantized/gemm_s8_tile.h"
#undef SUFFIX
#undef TARGET
#undef ADD

#ifdef DOT_FAST
#define SUFFIX fast
#define TARGET DOT_FAST
#define ADD    dot_add_fast
#include "kernels/cpu/quantized/gemm_s8_tile.h"
#undef SUFFIX
#undef TARGET
#undef ADD
#endif

#include "kernels/cpu/quantized/gemm_s8_amx.h"

struct tiles {
	tile_fn tile, line;
};

static struct tiles best_tiles(void)
{
#ifdef DOT_FAST
	if (dot_has_fast())
		return (struct tiles){ tile_fast, line_fast };
#endif
	return (struct tiles){ tile_plain, line_plain };
}

static int32_t row_sum_u8(const uint8_t *p, int64_t k)
{
	int32_t sum = 0;

	for (int64_t i = 0; i < k; i++)
		sum += p[i];
	return sum;
}

/* sums[j] = the sum of row j of weights, as its dot product with ones. */
static void sum_weights(int32_t *sums, tile_fn line, const int8_t *w, int64_t n, int64_t k)
{
	static const uint8_t ones[ONES] = { [0 ... ONES - 1] = 1 };
	const uint8_t *x = ones;
	int32_t part[PANEL];

	memset(sums, 0, PANEL * sizeof(*sums));
	for (int64_t at = 0; at < k; at += ONES) {
		for (int64_t j = 0; j < n; j += 4) {
			const int8_t *rows[4];

			for (int s = 0; s < 4; s++)
				rows[s] = w + (j + s < n ? j + s : n - 1) * k + at;
			line(part + j, &x, rows, k - at < ONES ? k - at : ONES);
		}
		for (int64_t j = 0; j < n; j++)
			sums[j] += part[j];
	}
}

/* The corrections of the columns of a panel; bias is in units of a sum. */
struct column {
	int32_t zero[PANEL], offset[PANEL];
	float bias[PANEL], multiplier[PANEL];
	bool zeros; /* a zero point is not 0 */
};

static void prepare_columns(struct column *c, const struct gemm_s8 *p, tile_fn line, int64_t first,
			    int64_t n)
{
	const struct requantize *q = p->requantize;
	int32_t sums[PANEL] = { 0 };

	if (q->x_zero)
		sum_weights(sums, line, p->w + first * p->k, n, p->k);

	c->zeros = false;
	for (int64_t j = 0; j < n; j++) {
		int64_t at = first + j;
		float scale = q->scale[at];

		c->zero[j] = q->w_zero[at];
		c->zeros |= q->w_zero[at] != 0;
		c->offset[j] = (int32_t)((uint32_t)p->k * q->x_zero * q->w_zero[at]);
		c->offset[j] -= q->x_zero * sums[j];
		c->multiplier[j] = scale / q->out_scale;
		c->bias[j] = !q->bias		? 0 :
			     q->bias_reciprocal ? q->bias[at] * (1.0f / scale) :
						  q->bias[at] / scale;
	}
}

static void requantize_row(uint8_t *out, const int32_t *sums, const struct column *c, int64_t n,
			   int32_t row, const struct requantize *q)
{
	float low = (float)(q->low - q->out_zero), high = (float)(q->high - q->out_zero);
	int32_t zero = q->out_zero;

	for (int64_t j = 0; j < n; j++) {
		int32_t sum = sums[j] + c->offset[j] - c->zero[j] * row;

		out[j] = (uint8_t)quantize_to_byte((float)sum + c->bias[j], c->multiplier[j], zero,
						   low, high);
	}
}

static void store_row(uint8_t *out, int64_t step, const uint8_t *row, int64_t n)
{
	if (step == 1)
		memcpy(out, row, n);
	else
		for (int64_t j = 0; j < n; j++)
			out[j * step] = row[j];
}

/* Rows begin to begin + m of n columns from `first` on. */
static void requantize_rows(const struct gemm_s8 *p, const int32_t *sums, const struct column *c,
			    int64_t begin, int64_t m, int64_t first, int64_t n)
{
	uint8_t row[PANEL];

	for (int64_t i = begin; i < begin + m; i++, sums += PANEL) {
		requantize_row(row, sums, c, n, c->zeros ? row_sum_u8(p->x + i * p->k, p->k) : 0,
			       p->requantize);
		store_row(p->out + i * p->out_row + first * p->out_column, p->out_column, row, n);
	}
}

/* Rows begin to end of n columns from `first` on. */
static void compute_panel(const struct gemm_s8 *p, struct tiles tiles, const struct column *c,
			  int64_t begin, int64_t end, int64_t first, int64_t n)
{
	int32_t sums[DOT_ROWS * PANEL];

	for (int64_t i = begin, rows; i < end; i += rows) {
		const uint8_t *x[DOT_ROWS];

		rows = end - i < DOT_ROWS ? 1 : DOT_ROWS;
		for (int64_t r = 0; r < rows; r++)
			x[r] = p->x + (i + r) * p->k;
		for (int64_t j = 0; j < n; j += 4) {
			const int8_t *w[4];

			/*
			 * Sums of columns past the end are not read; they repeat the last column.
			 */
			for (int s = 0; s < 4; s++)
				w[s] = p->w + (first + (j + s < n ? j + s : n - 1)) * p->k;
			(rows == 1 ? tiles.line : tiles.tile)(sums + j, x, w, p->k);
		}
		requantize_rows(p, sums, c, i, rows, first, n);
	}
}

/* A task is ROWS rows of one panel. Tasks of one panel are adjacent: they share its column data. */
static void compute_tasks(int64_t begin, int64_t end, void *ctx)
{
	const struct gemm_s8 *p = ctx;
	int64_t blocks = (p->m + ROWS - 1) / ROWS;
	struct tiles tiles = best_tiles();
	int64_t prepared = -1;
	struct column c = { .zeros = false };
	struct block_work b;

	block_work_open(&b, p);
	for (int64_t i = begin; i < end; i++) {
		int64_t first = i / blocks * PANEL, row = i % blocks * ROWS;
		int64_t n = p->n - first < PANEL ? p->n - first : PANEL;
		int64_t m = p->m - row < ROWS ? p->m - row : ROWS;

		if (first != prepared) {
			prepare_columns(&c, p, tiles.line, prepared = first, n);
			if (b.tiles)
				pack_weights(&b, p, first, n);
		}
		if (b.tiles) {
			sum_block(&b, p, row, m);
			requantize_rows(p, b.sums, &c, row, m, first, n);
		} else {
			compute_panel(p, tiles, &c, row, row + m, first, n);
		}
	}
	block_work_close(&b);
}

static void multiply(const struct gemm_s8 *p)
{
	int64_t blocks = (p->m + ROWS - 1) / ROWS, panels = (p->n + PANEL - 1) / PANEL;
	int64_t work = (p->m < ROWS ? p->m : ROWS) * PANEL * (p->k / 16 + 1);

	if (p->m && p->n)
		parallel_for(0, blocks * panels, work < 4 * ITER_GRAIN ? 4 * ITER_GRAIN / work : 1,
			     compute_tasks, (void *)p);
}

static int cpu_gemm_s8(const struct gemm_s8 *p)
{
	for (int64_t i = 0; i < p->count; i++) {
		const int64_t first = i % p->groups * p->n;
		struct requantize q = *p->requantize;
		struct gemm_s8 one = *p;

		q.w_zero += first;
		q.scale += first;
		q.bias = q.bias ? q.bias + first : NULL;
		one.requantize = &q;
		one.x += i * p->m * p->k;
		one.w += first * p->k;
		one.out += i * p->out_step;
		multiply(&one);
	}
	return 0;
}

/* ---- patches ---- */

struct patch_job {
	uint8_t *out;
	const uint8_t *image;
	const struct patches *p;
};

/* One row of a patch: kw bytes from column x of a row of the image; `fill` outside of it. */
static void patch_row(uint8_t *out, const uint8_t *row, int64_t x, const struct patches *p)
{
	for (int64_t k = 0; k < p->kw; k++, x += p->dilation[1])
		out[k] = row && x >= 0 && x < p->width ? row[x] : p->fill;
}

static void patches_chunk(int64_t begin, int64_t end, void *ctx)
{
	const struct patch_job *job = ctx;
	const struct patches *p = job->p;
	int64_t size = p->channels * p->kh * p->kw, places = p->oh * p->ow;

	for (int64_t i = begin; i < end; i++) {
		int64_t y0 = i % places / p->ow * p->stride[0] - p->padding[0];
		int64_t x0 = i % p->ow * p->stride[1] - p->padding[1];
		const uint8_t *plane = job->image + i / places * p->channels * p->height * p->width;
		bool inside = p->dilation[1] == 1 && x0 >= 0 && x0 + p->kw <= p->width;
		uint8_t *out = job->out + i * size;

		for (int64_t c = 0; c < p->channels; c++) {
			const uint8_t *image = plane + c * p->height * p->width;

			for (int64_t k = 0; k < p->kh; k++, out += p->kw) {
				int64_t y = y0 + k * p->dilation[0];
				const uint8_t *row =
					y >= 0 && y < p->height ? image + y * p->width : NULL;

				if (row && inside && p->kw == 3)
					memcpy(out, row + x0, 3);
				else if (row && inside)
					memcpy(out, row + x0, p->kw);
				else
					patch_row(out, row, x0, p);
			}
		}
	}
}

static int cpu_patches_u8(uint8_t *out, const uint8_t *image, const struct patches *p)
{
	struct patch_job job = { out, image, p };
	int64_t size = p->channels * p->kh * p->kw;

	if (size)
		parallel_for(0, p->images * p->oh * p->ow,
			     size < ITER_GRAIN ? ITER_GRAIN / size : 1, patches_chunk, &job);
	return 0;
}

CPU_KERNELS(KERNEL(gemm_s8), KERNEL(patches_u8))
