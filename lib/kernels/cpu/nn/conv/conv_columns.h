/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The gradient of the input of one or two channels, and transposed convolutions to as many: a row for each channel and
 * tap is the product of weights and gradient, and rows are added to the elements that taps read. The gradient is
 * read once and in place; a product for each phase of positions has fewer rows and a copy with borders. Included by conv.c only.
 */
#ifndef TENSOR_CONV_COLUMNS_H
#define TENSOR_CONV_COLUMNS_H

#include "kernels/cpu/linalg/matmul.h"

#include "iter/parallel.h"

#define COLUMNS_ROWS_LEAST 4  /* rows of the product */
#define COLUMNS_ROWS_MOST  16 /* above, phases have rows enough */
#define COLUMNS_DEPTH \
	64 /* channels of the gradient, at least: rows are added for less than the product */

struct columns_job {
	const struct shape *s;
	const void *grad, *weight;
	void *out;
	_Atomic bool failed;
};

static bool suits_columns(const struct shape *s)
{
	int64_t rows = s->in * s->window;

	return s->groups == 1 && !s->units && s->in <= 2 && rows >= COLUMNS_ROWS_LEAST &&
	       rows <= COLUMNS_ROWS_MOST && s->out >= COLUMNS_DEPTH;
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

static int columns_of_image(const struct columns_job *j, int64_t image)
{
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
	const struct axis *a = s->axis;
	int err;

	if (!mem)
		return -thread()->error.code;
	p.c = mem->data;
	err = (s->dtype == TENSOR_F32 ? CPU_NAME(matmul_f32) : CPU_NAME(matmul_f64))(&p);
	for (int64_t i = 0; !err && i < rows; i++) {
		int64_t channel = i / s->window, tap = i % s->window;
		int64_t r[AXES] = { tap / a[2].extent / a[1].extent,
				    tap / a[2].extent % a[1].extent, tap % a[2].extent };

		add_row(s, r, (char *)j->out + (image * s->in + channel) * s->in_plane * size,
			(const char *)p.c + i * row_size);
	}
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

/* Adds the gradient to out, which has the bias or zeros. */
static int input_by_columns(const struct shape *s, tensor *out, const tensor *grad,
			    const tensor *weight)
{
	struct columns_job j = {
		.s = s, .grad = grad->data, .weight = weight->data, .out = out->data
	};

	parallel_for(0, s->batch, 1, columns_of_images, &j);
	return j.failed ? tensor_fail(ENOMEM, "convolution_backward: no memory for rows") : 0;
}

#endif
