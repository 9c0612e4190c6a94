// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of pseudo-inverses and exponentials of matrices. */
#include "autograd/formulas/formulas.h"

#include "family/factory.h"
#include "family/cat.h"
#include "family/matrix.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/view.h"

/*
 * dP = -P dA P + (1 - P A) dA^H P^H P + P P^H dA^H (1 - A P), so
 * gA = -P^H g P^H + P^H P g^H (1 - P A) + (1 - A P) g^H P P^H.
 */
tensor *pinv_backward(tensor *grad, tensor *a, tensor *p)
{
	tensor *ph = formula_adjoint(p), *gh = formula_adjoint(grad), *t, *ga;

	ga = tensor_neg(tensor_matmul(tensor_matmul(ph, grad), ph));
	t = tensor_matmul(tensor_matmul(ph, p), gh);
	ga = tensor_add(ga, tensor_sub(t, tensor_matmul(tensor_matmul(t, p), a)));
	t = tensor_matmul(gh, tensor_matmul(p, ph));
	return tensor_add(ga, tensor_sub(t, tensor_matmul(a, tensor_matmul(p, t))));
}

/* The gradient is the upper right block of exp([A^H g; 0 A^H]). */
tensor *matrix_exp_backward(tensor *grad, tensor *a)
{
	int64_t n = a ? a->sizes[a->ndim - 1] : 0;
	tensor *h = formula_adjoint(a), *top, *bottom;

	top = tensor_cat(TENSOR_LIST(h, grad), -1);
	bottom = tensor_cat(TENSOR_LIST(tensor_zeros_like(grad, TENSOR_OPTIONS(0)), h), -1);
	top = tensor_linalg_matrix_exp(tensor_cat(TENSOR_LIST(top, bottom), -2));
	return tensor_narrow(tensor_narrow(top, -2, 0, n), -1, n, n);
}
