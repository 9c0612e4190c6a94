// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of operators on blocked tensors: the formulas of strided tensors on dense copies. */
#include "autograd/formulas/formulas.h"

#include "family/mm.h"
#include "family/pool.h"
#include "family/matmul.h"
#include "family/reduce.h"
#include "family/sparse.h"
#include "family/view.h"

tensor *formula_to_strided(tensor *t)
{
	return !t || t->layout == TENSOR_STRIDED ? t : tensor_to_dense(t);
}

/* t with all dimensions but the last merged into one. */
static tensor *rows(tensor *t)
{
	if (!t || t->ndim == 2)
		return t;
	return tensor_reshape(t,
			      TENSOR_INTS(t->sizes[t->ndim - 1] ? -1 : 0, t->sizes[t->ndim - 1]));
}

tensor *blocked_linear_input(tensor *grad, tensor *weight)
{
	return weight ? tensor_matmul(formula_to_strided(grad), formula_to_strided(weight)) :
			tensor_none;
}

tensor *blocked_linear_weight(tensor *grad, tensor *self)
{
	if (!self)
		return tensor_none;
	return tensor_mm(tensor_t(rows(formula_to_strided(grad))), rows(formula_to_strided(self)));
}

tensor *blocked_linear_bias(tensor *grad)
{
	return tensor_sum_dim(rows(formula_to_strided(grad)), TENSOR_INTS(0), false);
}

tensor *blocked_max_pool_backward(tensor *grad, tensor *self, tensor_ints kernel_size,
				  tensor_ints stride, tensor_ints padding, tensor_ints dilation,
				  bool ceil_mode, int spatial)
{
	tensor *x = formula_to_strided(self), *output, *indices;
	int err = spatial == 2 ?
			  tensor_max_pool2d_with_indices(x, kernel_size, stride, padding, dilation,
							 ceil_mode, &output, &indices) :
			  tensor_max_pool3d_with_indices(x, kernel_size, stride, padding, dilation,
							 ceil_mode, &output, &indices);

	if (err < 0)
		return NULL;
	return spatial == 2 ?
		       tensor_max_pool2d_with_indices_backward(formula_to_strided(grad), x,
							       kernel_size, stride, padding,
							       dilation, ceil_mode, indices) :
		       tensor_max_pool3d_with_indices_backward(formula_to_strided(grad), x,
							       kernel_size, stride, padding,
							       dilation, ceil_mode, indices);
}
