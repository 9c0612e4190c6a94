// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas: second derivatives of embeddings. */
#include "autograd/formulas/formulas.h"

#include "family/compare.h"
#include "family/embedding.h"
#include "family/view.h"

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
