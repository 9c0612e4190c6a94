// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of convolutions, which are convolutions themselves. */
#include "autograd/formulas/formulas.h"

#include "family/conv.h"
#include "family/copy.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/view.h"

tensor *conv_input_backward(tensor *grad, tensor_ints input_sizes, tensor *weight,
			    tensor_ints stride, tensor_ints padding, tensor_ints dilation,
			    bool transposed, tensor_ints output_padding, int64_t groups)
{
	tensor *result, *none[2];

	if (!weight)
		return tensor_none;
	if (tensor_convolution_backward(grad, formula_shape_only(grad, input_sizes), weight,
					TENSOR_NO_INTS, stride, padding, dilation, transposed,
					output_padding, groups, 1, &result, &none[0], &none[1]) < 0)
		return NULL;
	return result;
}

tensor *conv_weight_backward(tensor *grad, tensor *input, tensor_ints weight_sizes,
			     tensor_ints stride, tensor_ints padding, tensor_ints dilation,
			     bool transposed, tensor_ints output_padding, int64_t groups)
{
	tensor *result, *none[2];

	if (!input)
		return tensor_none;
	if (tensor_convolution_backward(grad, input, formula_shape_only(grad, weight_sizes),
					TENSOR_NO_INTS, stride, padding, dilation, transposed,
					output_padding, groups, 2, &none[0], &result, &none[1]) < 0)
		return NULL;
	return result;
}

tensor *conv_bias_backward(tensor *grad)
{
	const int64_t dims[] = { 0, 2, 3, 4 };

	return tensor_sum_dim(grad, (tensor_ints){ dims, grad->ndim - 1 }, false);
}

static tensor *add_parts(tensor *a, tensor *b)
{
	return a == tensor_none ? b : tensor_add(a, b);
}

tensor *conv_double_backward(tensor *const *grads, tensor_ints sizes, tensor *input, tensor *weight,
			     tensor_ints stride, tensor_ints padding, tensor_ints dilation,
			     bool transposed, tensor_ints output_padding, int64_t groups)
{
	tensor *sum = tensor_none, *bias;
	const int64_t shape[] = { 1, -1, 1, 1, 1 };

	if (grads[0])
		sum = tensor_convolution(grads[0], formula_conj(weight), tensor_none, stride,
					 padding, dilation, transposed, output_padding, groups);
	if (grads[1])
		sum = add_parts(sum, tensor_convolution(formula_conj(input), grads[1], tensor_none,
							stride, padding, dilation, transposed,
							output_padding, groups));
	if (grads[2]) {
		bias = tensor_view(tensor_contiguous(grads[2]), (tensor_ints){ shape, sizes.len });
		sum = add_parts(sum, tensor_expand(bias, sizes));
	}
	return sum;
}
