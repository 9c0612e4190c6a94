// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of pooling. */
#include "autograd/formulas/formulas.h"

#include "family/factory.h"
#include "family/index.h"
#include "family/view.h"

tensor *formula_shape_only(tensor *like, tensor_ints sizes)
{
	if (!like)
		return NULL;
	return tensor_expand(
		tensor_empty(TENSOR_SCALAR_SHAPE,
			     TENSOR_OPTIONS(.dtype = like->dtype, .device = like->device)),
		sizes);
}

tensor_ints formula_last_sizes(tensor_ints sizes, int64_t n)
{
	return (tensor_ints){ sizes.data + sizes.len - n, n };
}

/* max_pool_backward scatters by indices, so its derivative gathers by them. */
tensor *max_pool_double_backward(tensor *grad, tensor *indices, int64_t n)
{
	int64_t flat[TENSOR_MAX_DIMS], planes = grad->ndim - n;

	memcpy(flat, grad->sizes, planes * sizeof(*flat));
	flat[planes] = -1;
	if (!indices->numel)
		return formula_zeros_for(grad, (tensor_ints){ indices->sizes, indices->ndim });
	grad = tensor_gather(tensor_reshape(grad, (tensor_ints){ flat, planes + 1 }), planes,
			     tensor_reshape(indices, (tensor_ints){ flat, planes + 1 }));
	return tensor_view(grad, (tensor_ints){ indices->sizes, indices->ndim });
}
