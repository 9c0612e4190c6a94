// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Interpolation over the last one to three dimensions: operator functions. */
#include "ops/nn/spatial.h"

#include "family/upsample.h"

/* Compute the output's sizes: batch, channels, then output_size. */
static int infer(const struct tensor_op *op, const char *name, int64_t batch, int64_t channels,
		 tensor_ints output_size, int n, int64_t *sizes)
{
	int64_t size[SPATIAL];

	if (spatial_list(op, name, output_size, n, 1, 1, size) < 0)
		return error_code();
	sizes[0] = batch;
	sizes[1] = channels;
	memcpy(sizes + 2, size + SPATIAL - n, n * sizeof(*sizes));
	return 0;
}

static struct upsample_params params_of(int n, enum upsample_mode mode, bool align_corners,
					double a, double b, double c)
{
	struct upsample_params p = {
		.spatial = n, .mode = mode, .align_corners = align_corners, .scale = { a, b, c }
	};

	/* Without a valid scale, the kernel uses the ratio of the sizes. */
	for (int d = 0; d < SPATIAL; d++)
		if (!(p.scale[d] > 0))
			p.scale[d] = 0;
	return p;
}

static int run_kernel(const struct tensor_op *op, tensor **out, tensor *in, const int64_t *sizes,
		      const struct upsample_params *p)
{
	const tensor *inputs[] = { in };
	tensor *dense = NULL;
	struct op_output o;
	upsample_kernel fn;
	int err;

	if (output_begin_dense(op, &o, *out, in->dtype, sizes, p->spatial + 2, inputs, 1) < 0)
		return error_code();
	output_keep_format(&o, in);
	fn = (upsample_kernel)op_kernel(op, op->kernels, o.t);
	if (fn)
		dense = operand_dense(in);
	err = dense ? fn(o.t, dense, p) : error_code();
	tensor_put(dense);
	return output_end(op, &o, out, err);
}

static int forward(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints output_size,
		   const struct upsample_params *p)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	bool good = self->ndim == p->spatial + 2;

	for (int d = 1; good && d < self->ndim; d++)
		good = self->sizes[d] > 0;
	if (!good)
		return tensor_fail(EINVAL,
				   "%s: self must have %d dimensions, of which only the "
				   "first may be empty, got %s",
				   op->schema.name, p->spatial + 2, SHAPE_STR(self));
	if (infer(op, "output_size", self->sizes[0], self->sizes[1], output_size, p->spatial,
		  sizes) < 0)
		return error_code();
	return run_kernel(op, out, self, sizes, p);
}

static int backward(const struct tensor_op *op, tensor **out, tensor *grad, tensor_ints output_size,
		    tensor_ints input_size, const struct upsample_params *p)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	char text[SHAPE_TEXT];
	bool good = input_size.len == p->spatial + 2;

	for (int64_t d = 0; good && d < input_size.len; d++)
		good = input_size.data[d] >= (d ? 1 : 0);
	if (!good)
		return tensor_fail(EINVAL, "%s: input_size must have %d positive numbers",
				   op->schema.name, p->spatial + 2);
	if (infer(op, "output_size", input_size.data[0], input_size.data[1], output_size,
		  p->spatial, sizes) < 0)
		return error_code();
	if (grad->ndim != p->spatial + 2 || memcmp(grad->sizes, sizes, grad->ndim * sizeof(*sizes)))
		return tensor_fail(EINVAL, "%s: grad_output must have shape %s, got %s",
				   op->schema.name,
				   format_sizes(sizes, p->spatial + 2, text, sizeof(text)),
				   SHAPE_STR(grad));
	return run_kernel(op, out, grad, input_size.data, p);
}

int op_upsample_nearest1d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints output_size, double scales)
{
	const struct upsample_params p = params_of(1, UPSAMPLE_NEAREST, false, 0, 0, scales);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_nearest1d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				   tensor_ints output_size, tensor_ints input_size, double scales)
{
	const struct upsample_params p = params_of(1, UPSAMPLE_NEAREST, false, 0, 0, scales);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_nearest2d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints output_size, double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_NEAREST, false, 0, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_nearest2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				   tensor_ints output_size, tensor_ints input_size, double scales_h,
				   double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_NEAREST, false, 0, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_nearest3d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints output_size, double scales_d, double scales_h,
			  double scales_w)
{
	const struct upsample_params p =
		params_of(3, UPSAMPLE_NEAREST, false, scales_d, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_nearest3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				   tensor_ints output_size, tensor_ints input_size, double scales_d,
				   double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(3, UPSAMPLE_NEAREST, false, scales_d, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_nearest_exact1d(const struct tensor_op *op, tensor **out, tensor *self,
				tensor_ints output_size, double scales)
{
	const struct upsample_params p = params_of(1, UPSAMPLE_NEAREST_EXACT, false, 0, 0, scales);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_nearest_exact1d_backward(const struct tensor_op *op, tensor **out,
					 tensor *grad_output, tensor_ints output_size,
					 tensor_ints input_size, double scales)
{
	const struct upsample_params p = params_of(1, UPSAMPLE_NEAREST_EXACT, false, 0, 0, scales);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_nearest_exact2d(const struct tensor_op *op, tensor **out, tensor *self,
				tensor_ints output_size, double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_NEAREST_EXACT, false, 0, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_nearest_exact2d_backward(const struct tensor_op *op, tensor **out,
					 tensor *grad_output, tensor_ints output_size,
					 tensor_ints input_size, double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_NEAREST_EXACT, false, 0, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_nearest_exact3d(const struct tensor_op *op, tensor **out, tensor *self,
				tensor_ints output_size, double scales_d, double scales_h,
				double scales_w)
{
	const struct upsample_params p =
		params_of(3, UPSAMPLE_NEAREST_EXACT, false, scales_d, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_nearest_exact3d_backward(const struct tensor_op *op, tensor **out,
					 tensor *grad_output, tensor_ints output_size,
					 tensor_ints input_size, double scales_d, double scales_h,
					 double scales_w)
{
	const struct upsample_params p =
		params_of(3, UPSAMPLE_NEAREST_EXACT, false, scales_d, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_linear1d(const struct tensor_op *op, tensor **out, tensor *self,
			 tensor_ints output_size, bool align_corners, double scales)
{
	const struct upsample_params p = params_of(1, UPSAMPLE_LINEAR, align_corners, 0, 0, scales);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_linear1d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				  tensor_ints output_size, tensor_ints input_size,
				  bool align_corners, double scales)
{
	const struct upsample_params p = params_of(1, UPSAMPLE_LINEAR, align_corners, 0, 0, scales);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_bilinear2d(const struct tensor_op *op, tensor **out, tensor *self,
			   tensor_ints output_size, bool align_corners, double scales_h,
			   double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_LINEAR, align_corners, 0, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_bilinear2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				    tensor_ints output_size, tensor_ints input_size,
				    bool align_corners, double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_LINEAR, align_corners, 0, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_trilinear3d(const struct tensor_op *op, tensor **out, tensor *self,
			    tensor_ints output_size, bool align_corners, double scales_d,
			    double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(3, UPSAMPLE_LINEAR, align_corners, scales_d, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_trilinear3d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				     tensor_ints output_size, tensor_ints input_size,
				     bool align_corners, double scales_d, double scales_h,
				     double scales_w)
{
	const struct upsample_params p =
		params_of(3, UPSAMPLE_LINEAR, align_corners, scales_d, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}

int op_upsample_bicubic2d(const struct tensor_op *op, tensor **out, tensor *self,
			  tensor_ints output_size, bool align_corners, double scales_h,
			  double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_CUBIC, align_corners, 0, scales_h, scales_w);

	return forward(op, out, self, output_size, &p);
}

int op_upsample_bicubic2d_backward(const struct tensor_op *op, tensor **out, tensor *grad_output,
				   tensor_ints output_size, tensor_ints input_size,
				   bool align_corners, double scales_h, double scales_w)
{
	const struct upsample_params p =
		params_of(2, UPSAMPLE_CUBIC, align_corners, 0, scales_h, scales_w);

	return backward(op, out, grad_output, output_size, input_size, &p);
}
