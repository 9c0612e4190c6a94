// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Promotion of tensors. A tensor with dimensions ranks above a 0-d tensor, and that above a scalar.
 */
#include "core/tensor_impl.h"

TENSOR_EXPORT enum tensor_dtype tensor_result_type(const tensor *a, const tensor *b)
{
	if (!tensor_given(a) || !tensor_given(b))
		return TENSOR_DTYPE_NONE;
	if (a->dtype == b->dtype)
		return a->dtype;
	if (a->ndim && !b->ndim)
		return promote_lower_rank(a->dtype, b->dtype);
	if (b->ndim && !a->ndim)
		return promote_lower_rank(b->dtype, a->dtype);
	return tensor_promote_types(a->dtype, b->dtype);
}

enum tensor_dtype promote_scalar(const tensor *t, tensor_scalar s)
{
	return promote_lower_rank(t->dtype, scalar_dtype(s));
}
