// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formula of eigenvalues and eigenvectors of Hermitian matrices. */
#include "autograd/formulas/formulas.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/ternary.h"
#include "family/view.h"

/* bool [n, n], true on the diagonal. */
static tensor *on_diagonal(tensor *like, int64_t n)
{
	tensor *i = tensor_arange(tensor_scalar_int(n),
				  TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = like->device));

	return tensor_eq(tensor_unsqueeze(i, 0), tensor_unsqueeze(i, 1));
}

/*
 * A = V diag(w) V^H. dw = diag(V^H dA V), dV = V (E * V^H dA V) with E[i][j] = 1 / (w[j] - w[i]),
 * and 0 on the diagonal. So grad A = V (diag(grad w) + conj(E) * V^H grad V) V^H. As A stays
 * Hermitian, only the skew-Hermitian part of V^H grad V counts, and the gradient is Hermitian.
 */
tensor *eigh_backward(tensor *const *grads, tensor *w, tensor *v)
{
	tensor *vh = formula_adjoint(v), *inner, *gap, *middle, *diagonal;

	if (!grads[1])
		return tensor_matmul(tensor_mul(v, tensor_unsqueeze(grads[0], -2)), vh);
	diagonal = on_diagonal(v, w && w->ndim ? w->sizes[w->ndim - 1] : 0);
	gap = tensor_sub(tensor_unsqueeze(w, -2), tensor_unsqueeze(w, -1));
	gap = tensor_where(diagonal, tensor_ones_like(gap, TENSOR_OPTIONS(0)), gap);
	inner = tensor_matmul(vh, grads[1]);
	inner = tensor_mul_scalar(tensor_sub(inner, formula_adjoint(inner)),
				  tensor_scalar_float(0.5));
	inner = tensor_div(inner, gap);
	middle = grads[0] ? tensor_to(tensor_unsqueeze(grads[0], -2),
				      TENSOR_OPTIONS(.dtype = v->dtype)) :
			    formula_zeros_for(v, TENSOR_SCALAR_SHAPE);
	inner = tensor_where(diagonal, middle, inner);
	return tensor_matmul(v, tensor_matmul(inner, vh));
}
