// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of sparse operators. See formulas.h. */
#include "autograd/formulas/formulas.h"

#include "family/sparse.h"

tensor *formula_sparse_like(tensor *self, tensor *values)
{
	tensor_ints size = { self->sizes, self->ndim };

	if (self->layout == TENSOR_SPARSE_CSR)
		return tensor_sparse_csr_tensor(tensor_crow_indices(self), tensor_col_indices(self),
						values, size);
	return tensor_sparse_coo_tensor_opt(tensor__indices(self), values, size, true);
}

tensor *to_dense_backward(tensor *grad, tensor *self)
{
	if (self->layout == TENSOR_STRIDED || self->layout == TENSOR_BLOCKED)
		return grad;
	/* Coalesce: a duplicate index would count twice. */
	return tensor_sparse_mask(grad, tensor_coalesce(self));
}
