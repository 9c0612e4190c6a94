// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of im2col, col2im and grid_sampler. */
#include "ops/nn/spatial.h"

#include "family/sample.h"

/* ---- columns ---- */

static int get_params(const struct tensor_op *op, tensor_ints kernel, tensor_ints dilation,
		      tensor_ints padding, tensor_ints stride, struct columns_params *p)
{
	int64_t v[4][SPATIAL];

	if (spatial_list(op, "kernel_size", kernel, 2, 1, 1, v[0]) < 0 ||
	    spatial_list(op, "dilation", dilation, 2, 1, 1, v[1]) < 0 ||
	    spatial_list(op, "padding", padding, 2, 0, 0, v[2]) < 0 ||
	    spatial_list(op, "stride", stride, 2, 1, 1, v[3]) < 0)
		return error_code();
	memcpy(p->kernel, v[0] + 1, sizeof(p->kernel));
	memcpy(p->dilation, v[1] + 1, sizeof(p->dilation));
	memcpy(p->padding, v[2] + 1, sizeof(p->padding));
	memcpy(p->stride, v[3] + 1, sizeof(p->stride));
	return 0;
}

/* Number of positions of the window in an image of h by w; -1 with the error set. */
static int64_t positions(const struct tensor_op *op, const struct columns_params *p, int64_t h,
			 int64_t w)
{
	const int64_t size[2] = { h, w };
	int64_t n = 1;

	for (int d = 0; d < 2; d++) {
		int64_t left =
			size[d] + 2 * p->padding[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;

		if (left < 0)
			return tensor_fail(EINVAL,
					   "%s: an image of [%lld, %lld] is too small for "
					   "kernel_size [%lld, %lld]",
					   op->schema.name, (long long)h, (long long)w,
					   (long long)p->kernel[0], (long long)p->kernel[1]),
			       -1;
		n *= left / p->stride[d] + 1;
	}
	return n;
}

/* Run the kernel on a tensor with or without a batch; `sizes` has space for the batch. */
static int run_kernel(const struct tensor_op *op, tensor **out, tensor *self, const int64_t *sizes,
		      int ndim, const struct columns_params *p, bool wide)
{
	const tensor *inputs[] = { self };
	tensor from, to, *dense = NULL;
	struct op_output o;
	columns_kernel fn;
	int err;

	err = output_begin_dense(op, &o, *out, self->dtype, sizes, ndim, inputs, 1);
	if (err < 0)
		return err;
	fn = (columns_kernel)op_kernel(op, op->kernels, o.t);
	if (fn)
		dense = operand_dense(self);
	if (dense) {
		from = *dense;
		to = *o.t;
		spatial_batch(&from, wide ? 3 : 4);
		spatial_batch(&to, wide ? 4 : 3);
	}
	err = dense ? fn(&to, &from, p) : error_code();
	tensor_put(dense);
	return output_end(op, &o, out, err);
}

int op_im2col(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints kernel_size,
	      tensor_ints dilation, tensor_ints padding, tensor_ints stride)
{
	int batch = self->ndim == 4;
	struct columns_params p;
	int64_t sizes[3], n;

	if (get_params(op, kernel_size, dilation, padding, stride, &p) < 0)
		return error_code();
	if ((self->ndim != 3 && !batch) || !self->sizes[self->ndim - 1] ||
	    !self->sizes[self->ndim - 2] || !self->sizes[self->ndim - 3])
		return tensor_fail(EINVAL,
				   "%s: self must have 3 dimensions, or 4 with a batch, and "
				   "only the batch may be empty, got %s",
				   op->schema.name, SHAPE_STR(self));
	n = positions(op, &p, self->sizes[batch + 1], self->sizes[batch + 2]);
	if (n < 0)
		return error_code();
	sizes[0] = self->sizes[0];
	sizes[batch] = self->sizes[batch] * p.kernel[0] * p.kernel[1];
	sizes[batch + 1] = n;
	return run_kernel(op, out, self, sizes, batch + 2, &p, false);
}

int op_col2im(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints output_size,
	      tensor_ints kernel_size, tensor_ints dilation, tensor_ints padding,
	      tensor_ints stride)
{
	int64_t sizes[4], size[SPATIAL], n, taps;
	int batch = self->ndim == 3;
	struct columns_params p;

	if (get_params(op, kernel_size, dilation, padding, stride, &p) < 0 ||
	    spatial_list(op, "output_size", output_size, 2, 1, 1, size) < 0)
		return error_code();
	taps = p.kernel[0] * p.kernel[1];
	n = positions(op, &p, size[1], size[2]);
	if (n < 0)
		return error_code();
	if ((self->ndim != 2 && !batch) || !self->sizes[batch] || self->sizes[batch] % taps ||
	    self->sizes[batch + 1] != n)
		return tensor_fail(EINVAL,
				   "%s: self must be [channels * %lld, %lld], or that with a "
				   "batch before, got %s",
				   op->schema.name, (long long)taps, (long long)n, SHAPE_STR(self));
	sizes[0] = self->sizes[0];
	sizes[batch] = self->sizes[batch] / taps;
	sizes[batch + 1] = size[1];
	sizes[batch + 2] = size[2];
	return run_kernel(op, out, self, sizes, batch + 3, &p, true);
}

/* ---- grids ---- */

static int check_grid(const struct tensor_op *op, const tensor *input, const tensor *grid,
		      int64_t mode, int64_t padding, bool align_corners, struct grid_params *p)
{
	if (input->ndim != 4 || !input->sizes[2] || !input->sizes[3])
		return tensor_fail(EINVAL,
				   "%s: input must be [n, c, h, w] with elements in each "
				   "plane, got %s",
				   op->schema.name, SHAPE_STR(input));
	if (grid->ndim != 4 || grid->sizes[0] != input->sizes[0] || grid->sizes[3] != 2)
		return tensor_fail(EINVAL, "%s: grid must be [%lld, y, x, 2], got %s",
				   op->schema.name, (long long)input->sizes[0], SHAPE_STR(grid));
	if (grid->dtype != input->dtype)
		return tensor_fail(EINVAL, "%s: grid must be %s like input, got %s",
				   op->schema.name, tensor_dtype_name(input->dtype),
				   tensor_dtype_name(grid->dtype));
	if (mode < GRID_BILINEAR || mode > GRID_BICUBIC)
		return tensor_fail(EINVAL, "%s: interpolation_mode must be 0 to 2, got %lld",
				   op->schema.name, (long long)mode);
	if (padding < GRID_ZEROS || padding > GRID_REFLECTION)
		return tensor_fail(EINVAL, "%s: padding_mode must be 0 to 2, got %lld",
				   op->schema.name, (long long)padding);
	*p = (struct grid_params){ (enum grid_mode)mode, (enum grid_padding)padding,
				   align_corners };
	return operand_check_device(op->schema.name, input, grid);
}

int op_grid_sampler_2d(const struct tensor_op *op, tensor **out, tensor *input, tensor *grid,
		       int64_t interpolation_mode, int64_t padding_mode, bool align_corners)
{
	const tensor *inputs[] = { input, grid };
	tensor *image = NULL, *places = NULL;
	grid_sampler_kernel fn;
	struct grid_params p;
	struct op_output o;
	int64_t sizes[4];
	int err;

	if (check_grid(op, input, grid, interpolation_mode, padding_mode, align_corners, &p) < 0)
		return error_code();
	memcpy(sizes, input->sizes, 2 * sizeof(*sizes));
	memcpy(sizes + 2, grid->sizes + 1, 2 * sizeof(*sizes));
	if (output_begin_dense(op, &o, *out, input->dtype, sizes, 4, inputs, 2) < 0)
		return error_code();
	fn = (grid_sampler_kernel)op_kernel(op, op->kernels, o.t);
	if (fn)
		image = operand_dense(input);
	if (image)
		places = operand_dense(grid);
	err = places ? fn(o.t, image, places, &p) : error_code();
	tensor_put(image);
	tensor_put(places);
	return output_end(op, &o, out, err);
}

/* One kernel computes both gradients; begun[i] is true after output_begin() of result i. */
int op_grid_sampler_2d_backward(const struct tensor_op *op, tensor **grad_input, tensor **grad_grid,
				tensor *grad_output, tensor *input, tensor *grid,
				int64_t interpolation_mode, int64_t padding_mode,
				bool align_corners, uint64_t output_mask)
{
	tensor *like[] = { input, grid }, *dense[3] = { NULL },
	       *given[] = { grad_output, input, grid };
	grid_sampler_backward_kernel fn =
		(grid_sampler_backward_kernel)op_kernel(op, op->kernels, input);
	tensor **result[] = { grad_input, grad_grid };
	struct op_output o[2] = { { .t = NULL } };
	struct grid_params p;
	int err = 0;

	*grad_input = *grad_grid = NULL;
	if (!fn ||
	    check_grid(op, input, grid, interpolation_mode, padding_mode, align_corners, &p) < 0)
		return error_code();
	if (grad_output->ndim != 4 || grad_output->dtype != input->dtype ||
	    memcmp(grad_output->sizes, input->sizes, 2 * sizeof(int64_t)) ||
	    memcmp(grad_output->sizes + 2, grid->sizes + 1, 2 * sizeof(int64_t)))
		return tensor_fail(EINVAL,
				   "%s: grad_output must be %s and have the output's shape, "
				   "got %s %s",
				   op->schema.name, tensor_dtype_name(input->dtype),
				   tensor_dtype_name(grad_output->dtype), SHAPE_STR(grad_output));
	for (int i = 0; !err && i < 2; i++) {
		const tensor *t = like[i];

		if (output_mask >> i & 1)
			err = output_begin_dense(op, &o[i], NULL, t->dtype, t->sizes, 4, &t, 1);
	}
	for (int i = 0; !err && i < 3; i++) {
		dense[i] = operand_dense(given[i]);
		err = dense[i] ? 0 : error_code();
	}
	if (!err)
		err = fn(o[0].t, o[1].t, dense[0], dense[1], dense[2], &p);
	for (int i = 0; i < 3; i++)
		tensor_put(dense[i]);
	for (int i = 0; i < 2; i++)
		if (o[i].t)
			err = output_end(op, &o[i], result[i], err);
	if (!err)
		return 0;
	tensor_put(*grad_input);
	*grad_input = NULL;
	return err;
}
