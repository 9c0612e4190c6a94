// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of embeddings. */
#include "autograd/formulas/formulas.h"

#include "family/compare.h"
#include "family/embedding.h"
#include "family/reinterpret.h"
#include "family/shape.h"
#include "family/copy.h"
#include "family/view.h"

/* A table of complex numbers is one of twice as many real ones. */
tensor *embedding_weight_backward(tensor *grad, tensor *indices, tensor_ints sizes,
				  int64_t padding_idx, bool by_frequency)
{
	tensor *real;

	if (!grad || !dtype_is_complex(grad->dtype))
		return tensor_embedding_dense_backward(grad, indices, sizes.data[0], padding_idx,
						       by_frequency);
	real = tensor_flatten(tensor_view_as_real(tensor_contiguous(grad)), -2, -1);
	real = tensor_embedding_dense_backward(real, indices, sizes.data[0], padding_idx,
					       by_frequency);
	return tensor_view_as_complex(
		tensor_view(real, TENSOR_INTS(sizes.data[0], sizes.data[1], 2)));
}

/* Derivative of the table's gradient with respect to the rows that it sums: those rows of grad,
 * zero for the padding. */
tensor *embedding_double_backward(tensor *grad, tensor *indices, int64_t padding_idx,
				  bool by_frequency)
{
	tensor *rows = tensor_embedding(grad, indices, -1, false, false), *counted;

	if (by_frequency)
		return tensor_fail_null(EOPNOTSUPP,
					"embedding_dense_backward: has no derivative with "
					"scale_grad_by_freq");
	if (padding_idx < 0)
		return rows;
	counted = tensor_ne_scalar(tensor_unsqueeze(indices, -1), tensor_scalar_int(padding_idx));
	return where_backward(rows, counted, true);
}
