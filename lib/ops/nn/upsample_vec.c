// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Interpolation by a scale factor or to a size: the .vec overloads. */
#include "ops/nn/spatial.h"

#include "family/upsample.h"

/* Output size and scales computed from a .vec overload's arguments. */
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

tensor *composite_upsample_nearest1d_vec(tensor *input, tensor_ints output_size,
					 tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_nearest1d", input, output_size, scale_factors, 1, &t) < 0)
		return NULL;
	return call_upsample_nearest1d(input, t.output_size, t.scale[0]);
}

tensor *composite_upsample_nearest2d_vec(tensor *input, tensor_ints output_size,
					 tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_nearest2d", input, output_size, scale_factors, 2, &t) < 0)
		return NULL;
	return call_upsample_nearest2d(input, t.output_size, t.scale[0], t.scale[1]);
}

tensor *composite_upsample_nearest3d_vec(tensor *input, tensor_ints output_size,
					 tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_nearest3d", input, output_size, scale_factors, 3, &t) < 0)
		return NULL;
	return call_upsample_nearest3d(input, t.output_size, t.scale[0], t.scale[1], t.scale[2]);
}

tensor *composite_upsample_nearest_exact1d_vec(tensor *input, tensor_ints output_size,
					       tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_nearest_exact1d", input, output_size, scale_factors, 1, &t) < 0)
		return NULL;
	return call__upsample_nearest_exact1d(input, t.output_size, t.scale[0]);
}

tensor *composite_upsample_nearest_exact2d_vec(tensor *input, tensor_ints output_size,
					       tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_nearest_exact2d", input, output_size, scale_factors, 2, &t) < 0)
		return NULL;
	return call__upsample_nearest_exact2d(input, t.output_size, t.scale[0], t.scale[1]);
}

tensor *composite_upsample_nearest_exact3d_vec(tensor *input, tensor_ints output_size,
					       tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_nearest_exact3d", input, output_size, scale_factors, 3, &t) < 0)
		return NULL;
	return call__upsample_nearest_exact3d(input, t.output_size, t.scale[0], t.scale[1],
					      t.scale[2]);
}

tensor *composite_upsample_linear1d_vec(tensor *input, tensor_ints output_size, bool align_corners,
					tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_linear1d", input, output_size, scale_factors, 1, &t) < 0)
		return NULL;
	return call_upsample_linear1d(input, t.output_size, align_corners, t.scale[0]);
}

tensor *composite_upsample_bilinear2d_vec(tensor *input, tensor_ints output_size,
					  bool align_corners, tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_bilinear2d", input, output_size, scale_factors, 2, &t) < 0)
		return NULL;
	return call_upsample_bilinear2d(input, t.output_size, align_corners, t.scale[0],
					t.scale[1]);
}

tensor *composite_upsample_trilinear3d_vec(tensor *input, tensor_ints output_size,
					   bool align_corners, tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_trilinear3d", input, output_size, scale_factors, 3, &t) < 0)
		return NULL;
	return call_upsample_trilinear3d(input, t.output_size, align_corners, t.scale[0],
					 t.scale[1], t.scale[2]);
}

tensor *composite_upsample_bicubic2d_vec(tensor *input, tensor_ints output_size, bool align_corners,
					 tensor_floats scale_factors)
{
	struct target t;

	if (get_target("upsample_bicubic2d", input, output_size, scale_factors, 2, &t) < 0)
		return NULL;
	return call_upsample_bicubic2d(input, t.output_size, align_corners, t.scale[0], t.scale[1]);
}
