// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of operators that move or repeat elements. */
#include "autograd/formulas/formulas.h"

#include "family/factory.h"
#include "family/index.h"
#include "family/move.h"
#include "family/pad.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/shape.h"
#include "family/view.h"

tensor *roll_backward(tensor *grad, tensor_ints shifts, tensor_ints dims)
{
	int64_t back[TENSOR_MAX_DIMS];

	/* A dimension may occur more than once; this limit is arbitrary. */
	if (shifts.len > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "roll: at most %d shifts", TENSOR_MAX_DIMS);
	for (int64_t i = 0; i < shifts.len; i++)
		back[i] = -shifts.data[i];
	return tensor_roll(grad, (tensor_ints){ back, shifts.len }, dims);
}

/* Reshape the repetitions to dimensions of their own and sum them, one at a time: all at once may
 * exceed TENSOR_MAX_DIMS. */
tensor *repeat_backward(tensor *grad, tensor_ints sizes, tensor_ints repeats)
{
	int lead = (int)(repeats.len - sizes.len);

	for (int64_t i = 0; grad && i < repeats.len; i++) {
		int64_t shape[2] = { repeats.data[i], i < lead ? 1 : sizes.data[i - lead] };

		if (shape[0] == 1)
			continue;
		if (!shape[0] || !grad->numel)
			return formula_zeros_for(grad, sizes);
		if (grad->ndim < TENSOR_MAX_DIMS) {
			grad = tensor_sum_dim(tensor_unflatten(grad, i, (tensor_ints){ shape, 2 }),
					      TENSOR_INTS(i), false);
			continue;
		}
		tensor *sum = tensor_narrow(grad, i, 0, shape[1]);

		for (int64_t k = 1; k < shape[0]; k++)
			sum = tensor_add(sum, tensor_narrow(grad, i, k * shape[1], shape[1]));
		grad = sum;
	}
	return grad ? tensor_reshape(grad, sizes) : NULL;
}

tensor *constant_pad_backward(tensor *grad, tensor_ints pad)
{
	int64_t back[2 * TENSOR_MAX_DIMS];

	for (int64_t i = 0; i < pad.len; i++)
		back[i] = -pad.data[i];
	return tensor_constant_pad_nd(grad, (tensor_ints){ back, pad.len }, formula_scalar(0));
}

/* The gradients of overlapping windows add up. */
tensor *unfold_view_backward(tensor *grad, tensor_ints sizes, int64_t dim, int64_t size,
			     int64_t step)
{
	int d = (int)(dim < 0 ? dim + (int64_t)sizes.len : dim);
	const tensor_options i64 = TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = grad->device);
	tensor *start, *index;

	if (!sizes.len)
		return tensor_reshape(grad, sizes);
	start = tensor_mul_scalar(tensor_arange(tensor_scalar_int(grad->sizes[d]), i64),
				  tensor_scalar_int(step));
	index = tensor_add(tensor_unsqueeze(start, 1), tensor_arange(tensor_scalar_int(size), i64));
	grad = tensor_flatten(tensor_movedim_int(grad, -1, d + 1), d, d + 1);
	return tensor_index_add(formula_zeros_for(grad, sizes), d,
				tensor_reshape(index, TENSOR_INTS(-1)), grad);
}
