/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of the input of one or two channels, and transposed convolutions to as many: a row for each channel and
 * tap is the product of weights and gradient, and rows are added to the elements that taps read. The gradient is
 * read once and in place; a product for each phase of positions has fewer rows and a copy with borders. If each element is
 * read by exactly one tap, the same holds for any number of channels: its rows are interleaved. Included by conv.c only.
 */
#ifndef TENSOR_CONV_COLUMNS_H
#define TENSOR_CONV_COLUMNS_H

#include "kernels/cpu/linalg/matmul.h"

#include "iter/parallel.h"

#define COLUMNS_ROWS_LEAST 4  /* rows of the product */
#define COLUMNS_ROWS_MOST  16 /* above, phases have rows enough */
#define COLUMNS_DEPTH \
	64 /* channels of the gradient, at least: rows are added for less than the product */

#define COLUMNS_MOST   (1 << 21) /* elements of the product of an image */
#define COLUMNS_IMAGES 8	 /* from which they are computed side by side */
#define COLUMNS_WORK   4096	 /* elements written in a chunk */

struct columns_job {
	const struct shape *s;
	const void *grad, *weight, *bias;
	void *out;
	const char *rows; /* of the image whose channels are written */
	int64_t image;
	_Atomic bool failed;
};

/* Whether the taps of adjacent positions are adjacent, without gaps, borders or elements that remain. */
static bool taps_are_apart(const struct shape *s)
{
	for (int d = 0; d < AXES; d++) {
		const struct axis *a = &s->axis[d];

		if (a->stride != a->extent || a->taps != a->extent || a->padding ||
		    (a->dilation != 1 && a->extent > 1) || a->in != a->out * a->stride)
			return false;
	}
	return true;
}

static bool suits_columns(const struct shape *s)
{
	int64_t rows = s->in * s->window;

	if (s->groups != 1 || s->units || s->out < COLUMNS_DEPTH || s->window == 1)
		return false;
	if (s->in <= 2 && rows >= COLUMNS_ROWS_LEAST && rows <= COLUMNS_ROWS_MOST)
		return true;
	return rows >= COLUMNS_ROWS_MOST && rows * s->out_plane <= COLUMNS_MOST &&
	       taps_are_apart(s);
}

#define ADD_LINE(T, SUFFIX)                                                                \
	static void add_line_##SUFFIX(char *to, int64_t step, const char *from, int64_t n) \
	{                                                                                  \
		T *o = (T *)to;                                                            \
		const T *x = (const T *)from;                                              \
                                                                                           \
		IVDEP for (int64_t i = 0; i < n; i++) o[i * step] += x[i];                 \
	}
ADD_LINE(float, f32)
ADD_LINE(double, f64)

#define FILL_LINE(T, SUFFIX)                                                                   \
	static void fill_line_##SUFFIX(char *to, const void *bias, int64_t channel, int64_t n) \
	{                                                                                      \
		T value = bias ? ((const T *)bias)[channel] : 0;                               \
                                                                                               \
		for (int64_t i = 0; i < n; i++)                                                \
			((T *)to)[i] = value;                                                  \
	}
FILL_LINE(float, f32)
FILL_LINE(double, f64)

/* Interleaves n elements of each of `taps` rows, which are `row` elements apart. */
#define MIX_LINE(T, SUFFIX)                                                                  \
	static void mix_line_##SUFFIX(char *to, const char *from, int64_t row, int64_t taps, \
				      int64_t n, const void *bias, int64_t channel)          \
	{                                                                                    \
		T value = bias ? ((const T *)bias)[channel] : 0;                             \
		const T *x = (const T *)from;                                                \
		T *o = (T *)to;                                                              \
                                                                                             \
		for (int64_t i = 0; taps == 2 && i < n; i++) {                               \
			o[2 * i] = x[i] + value;                                             \
			o[2 * i + 1] = x[row + i] + value;                                   \
		}                                                                            \
		for (int64_t t = 0; taps != 2 && t < taps; t++)                              \
			for (int64_t i = 0; i < n; i++)                                      \
				o[i * taps + t] = x[t * row + i] + value;                    \
	}
MIX_LINE(float, f32)
MIX_LINE(double, f64)

/* Adds a row of the product, an element for each position, to the channel at `to`, as tap r reads it. */
static void add_row(const struct shape *s, const int64_t *r, char *to, const char *row)
{
	const struct axis *a = s->axis;
	int64_t size = dtype_sizes[s->dtype], from[AXES], until[AXES], first[AXES];

	for (int d = 0; d < AXES; d++) {
		int64_t at = r[d] * a[d].dilation - a[d].padding;

		conv_positions(at, a[d].stride, a[d].in, a[d].out, &from[d], &until[d]);
		first[d] = from[d] * a[d].stride + at;
		if (from[d] >= until[d])
			return;
	}
	for (int64_t z = from[0]; z < until[0]; z++)
		for (int64_t y = from[1]; y < until[1]; y++) {
			int64_t line = first[0] + (z - from[0]) * a[0].stride;
			int64_t x = (z * a[1].out + y) * a[2].out + from[2];

			line = line * a[1].in + first[1] + (y - from[1]) * a[1].stride;
			line = line * a[2].in + first[2];
			(s->dtype == TENSOR_F32 ? add_line_f32 : add_line_f64)(
				to + line * size, a[2].stride, row + x * size, until[2] - from[2]);
		}
}

/* Writes channels begin to end of an image from the rows of the product: its lines are those of taps side by side. */
static void mix_channels(int64_t begin, int64_t end, void *ctx)
{
	const struct columns_job *j = ctx;
	const struct shape *s = j->s;
	const struct axis *a = s->axis;
	int64_t size = dtype_sizes[s->dtype], n = a[2].out;

	for (int64_t c = begin; c < end; c++) {
		char *to = (char *)j->out + (j->image * s->in + c) * s->in_plane * size;

		for (int64_t z = 0; z < a[0].in; z++)
			for (int64_t y = 0; y < a[1].in; y++, to += a[2].in * size) {
				int64_t tap = (z % a[0].stride * a[1].stride + y % a[1].stride) *
					      a[2].stride;
				int64_t line = (z / a[0].stride * a[1].out + y / a[1].stride) * n;

				(s->dtype == TENSOR_F32 ? mix_line_f32 : mix_line_f64)(
					to,
					j->rows + ((c * s->window + tap) * s->out_plane + line) *
							  size,
					s->out_plane, a[2].stride, n, j->bias, c);
			}
	}
}

/* The same for any taps. */
static void add_channels(int64_t begin, int64_t end, void *ctx)
{
	const struct columns_job *j = ctx;
	const struct shape *s = j->s;
	const struct axis *a = s->axis;
	int64_t size = dtype_sizes[s->dtype];

	for (int64_t c = begin; c < end; c++) {
		char *to = (char *)j->out + (j->image * s->in + c) * s->in_plane * size;

		(s->dtype == TENSOR_F32 ? fill_line_f32 : fill_line_f64)(to, j->bias, c,
									 s->in_plane);
		for (int64_t t = 0; t < s->window; t++)
			add_row(s,
				(const int64_t[]){ t / a[2].extent / a[1].extent,
						   t / a[2].extent % a[1].extent, t % a[2].extent },
				to, j->rows + (c * s->window + t) * s->out_plane * size);
	}
}

static int columns_of_image(const struct columns_job *given, int64_t image)
{
	struct columns_job one = {
		.s = given->s, .bias = given->bias, .out = given->out, .image = image
	};
	const struct columns_job *j = given;
	const struct shape *s = j->s;
	int64_t size = dtype_sizes[s->dtype], rows = s->in * s->window,
		row_size = s->out_plane * size;
	struct product p = { .m = rows,
			     .n = s->out_plane,
			     .k = s->out,
			     .a = j->weight,
			     .b = (const char *)j->grad + image * s->out * row_size,
			     .rsa = 1,
			     .csa = rows,
			     .rsb = s->out_plane,
			     .csb = 1,
			     .rsc = s->out_plane,
			     .csc = 1,
			     .alpha = 1 };
	struct tensor_storage *mem = storage_alloc(TENSOR_DEVICE_CPU, rows * row_size, false);
	int64_t grain = COLUMNS_WORK / s->in_plane + 1;
	int err;

	if (!mem)
		return -thread()->error.code;
	p.c = mem->data;
	one.rows = mem->data;
	err = (s->dtype == TENSOR_F32 ? CPU_NAME(matmul_f32) : CPU_NAME(matmul_f64))(&p);
	if (!err)
		parallel_for(0, s->in, grain, taps_are_apart(s) ? mix_channels : add_channels,
			     &one);
	storage_put(mem);
	return err;
}

static void columns_of_images(int64_t begin, int64_t end, void *ctx)
{
	struct columns_job *j = ctx;

	for (int64_t i = begin; i < end; i++)
		if (columns_of_image(j, i) < 0)
			j->failed = true;
}

/* Images are parallel if there are enough of them, otherwise each of them. */
static int input_by_columns(const struct shape *s, tensor *out, const tensor *grad,
			    const tensor *weight, const tensor *bias)
{
	struct columns_job j = { .s = s,
				 .grad = grad->data,
				 .weight = weight->data,
				 .bias = bias ? bias->data : NULL,
				 .out = out->data };
	bool few = s->batch < COLUMNS_IMAGES && s->batch % tensor_get_num_threads();

	if (few)
		columns_of_images(0, s->batch, &j);
	else
		parallel_for(0, s->batch, 1, columns_of_images, &j);
	return j.failed ? tensor_fail(ENOMEM, "convolution: no memory for rows") : 0;
}

#endif
