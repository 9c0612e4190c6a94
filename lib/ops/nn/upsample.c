// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Interpolation over the last one to three dimensions: fronts, and the forms that take a factor
 * instead of a size.
 */
#include "ops/nn/spatial.h"

#include "family/upsample.h"

/* The scale of dimension i of n is the i-th argument; the output's sizes follow those of planes. */
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

	/* Not given, and what cannot be a factor: the sizes decide. */
	for (int d = 0; d < SPATIAL; d++)
		if (!(p.scale[d] > 0))
			p.scale[d] = 0;
	return p;
}

static int run(const struct tensor_op *op, tensor **out, tensor *in, const int64_t *sizes,
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
	return run(op, out, self, sizes, p);
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
	return run(op, out, grad, input_size.data, p);
}

/* Where the missing dimensions of fewer than three have no scale. */
#define UPSAMPLE(NAME, N, MODE, ALIGN, DECL, SCALES)                                       \
	int op_upsample_##NAME(const struct tensor_op *op, tensor **out, tensor *self,     \
			       tensor_ints output_size, UNPACK DECL)                       \
	{                                                                                  \
		const struct upsample_params p = params_of(N, MODE, ALIGN, UNPACK SCALES); \
                                                                                           \
		return forward(op, out, self, output_size, &p);                            \
	}                                                                                  \
	int op_upsample_##NAME##_backward(const struct tensor_op *op, tensor **out,        \
					  tensor *grad_output, tensor_ints output_size,    \
					  tensor_ints input_size, UNPACK DECL)             \
	{                                                                                  \
		const struct upsample_params p = params_of(N, MODE, ALIGN, UNPACK SCALES); \
                                                                                           \
		return backward(op, out, grad_output, output_size, input_size, &p);        \
	}
#define UNPACK(...) __VA_ARGS__
#define DECL_1	    (double scales)
#define DECL_2	    (double scales_h, double scales_w)
#define DECL_3	    (double scales_d, double scales_h, double scales_w)
#define ALIGN_1	    (bool align_corners, double scales)
#define ALIGN_2	    (bool align_corners, double scales_h, double scales_w)
#define ALIGN_3	    (bool align_corners, double scales_d, double scales_h, double scales_w)
#define SCALES_1    (0, 0, scales)
#define SCALES_2    (0, scales_h, scales_w)
#define SCALES_3    (scales_d, scales_h, scales_w)
UPSAMPLE(nearest1d, 1, UPSAMPLE_NEAREST, false, DECL_1, SCALES_1)
UPSAMPLE(nearest2d, 2, UPSAMPLE_NEAREST, false, DECL_2, SCALES_2)
UPSAMPLE(nearest3d, 3, UPSAMPLE_NEAREST, false, DECL_3, SCALES_3)
UPSAMPLE(nearest_exact1d, 1, UPSAMPLE_NEAREST_EXACT, false, DECL_1, SCALES_1)
UPSAMPLE(nearest_exact2d, 2, UPSAMPLE_NEAREST_EXACT, false, DECL_2, SCALES_2)
UPSAMPLE(nearest_exact3d, 3, UPSAMPLE_NEAREST_EXACT, false, DECL_3, SCALES_3)
UPSAMPLE(linear1d, 1, UPSAMPLE_LINEAR, align_corners, ALIGN_1, SCALES_1)
UPSAMPLE(bilinear2d, 2, UPSAMPLE_LINEAR, align_corners, ALIGN_2, SCALES_2)
UPSAMPLE(trilinear3d, 3, UPSAMPLE_LINEAR, align_corners, ALIGN_3, SCALES_3)
UPSAMPLE(bicubic2d, 2, UPSAMPLE_CUBIC, align_corners, ALIGN_2, SCALES_2)

/* ---- by a factor ---- */

/* What a .vec overload's arguments come to. */
struct target {
	int64_t size[SPATIAL];
	double scale[SPATIAL];
	tensor_ints output_size;
};

static int get_target(const char *op, const tensor *input, tensor_ints output_size,
		      tensor_floats factors, int n, struct target *t)
{
	if ((output_size.len >= 0) == (factors.len >= 0))
		return tensor_fail(EINVAL,
				   "%s: exactly one of output_size and scale_factors must "
				   "be given",
				   op);
	if (input->ndim != n + 2)
		return tensor_fail(EINVAL, "%s: input must have %d dimensions, got %s", op, n + 2,
				   SHAPE_STR(input));
	for (int d = 0; d < SPATIAL; d++)
		t->scale[d] = TENSOR_NO_FLOAT;
	t->output_size = output_size;
	if (output_size.len >= 0)
		return 0;
	if (factors.len != n)
		return tensor_fail(EINVAL, "%s: scale_factors must have %d numbers, got %lld", op,
				   n, (long long)factors.len);
	for (int d = 0; d < n; d++) {
		double size = (double)input->sizes[d + 2] * factors.data[d];

		t->scale[d] = factors.data[d];
		t->size[d] = size >= 1 && size < INT32_MAX ? (int64_t)size : 0;
	}
	t->output_size = (tensor_ints){ t->size, n };
	return 0;
}

#define VEC(NAME, CALL, N, SCALES)                                                               \
	tensor *composite_upsample_##NAME##_vec(tensor *input, tensor_ints output_size,          \
						tensor_floats scale_factors)                     \
	{                                                                                        \
		struct target t;                                                                 \
                                                                                                 \
		if (get_target("upsample_" #NAME, input, output_size, scale_factors, N, &t) < 0) \
			return NULL;                                                             \
		return call_##CALL(input, t.output_size, UNPACK SCALES);                         \
	}
#define VEC_ALIGN(NAME, CALL, N, SCALES)                                                         \
	tensor *composite_upsample_##NAME##_vec(tensor *input, tensor_ints output_size,          \
						bool align_corners, tensor_floats scale_factors) \
	{                                                                                        \
		struct target t;                                                                 \
                                                                                                 \
		if (get_target("upsample_" #NAME, input, output_size, scale_factors, N, &t) < 0) \
			return NULL;                                                             \
		return call_##CALL(input, t.output_size, align_corners, UNPACK SCALES);          \
	}
#define TARGET_1 (t.scale[0])
#define TARGET_2 (t.scale[0], t.scale[1])
#define TARGET_3 (t.scale[0], t.scale[1], t.scale[2])
VEC(nearest1d, upsample_nearest1d, 1, TARGET_1)
VEC(nearest2d, upsample_nearest2d, 2, TARGET_2)
VEC(nearest3d, upsample_nearest3d, 3, TARGET_3)
VEC(nearest_exact1d, _upsample_nearest_exact1d, 1, TARGET_1)
VEC(nearest_exact2d, _upsample_nearest_exact2d, 2, TARGET_2)
VEC(nearest_exact3d, _upsample_nearest_exact3d, 3, TARGET_3)
VEC_ALIGN(linear1d, upsample_linear1d, 1, TARGET_1)
VEC_ALIGN(bilinear2d, upsample_bilinear2d, 2, TARGET_2)
VEC_ALIGN(trilinear3d, upsample_trilinear3d, 3, TARGET_3)
VEC_ALIGN(bicubic2d, upsample_bicubic2d, 2, TARGET_2)
