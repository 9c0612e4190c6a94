/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions of the formulas of linear algebra. See formulas.h. In comments, X^H is the adjoint of X
 * and gX its gradient. */
#ifndef TENSOR_AUTOGRAD_LINALG_FORMULAS_H
#define TENSOR_AUTOGRAD_LINALG_FORMULAS_H

#include "autograd/graph/record.h"

/* linalg_solve.c */
tensor *lu_factor_backward(tensor *grad, tensor *lu, tensor *pivots);
tensor *lu_solve_lu_backward(tensor *grad, tensor *lu, tensor *pivots, tensor *x, bool left,
			     bool adj);
tensor *solve_a_backward(tensor *grad, tensor *a, tensor *lu, tensor *pivots, tensor *x, bool left);
tensor *solve_b_backward(tensor *grad, tensor *a, tensor *lu, tensor *pivots, tensor *x, bool left);
tensor *inv_backward(tensor *grad, tensor *inverse);
tensor *det_backward(tensor *grad, tensor *a, tensor *det, tensor *lu, tensor *pivots);
/* grads: of sign and logabsdet. Each may be NULL, as in all functions with grads. */
tensor *slogdet_backward(tensor *const *grads, tensor *a, tensor *sign, tensor *lu, tensor *pivots);
tensor *cholesky_backward(tensor *grad, tensor *factor, bool upper);
tensor *cholesky_solve_backward(tensor *grad, tensor *factor, tensor *x, bool upper);
tensor *solve_triangular_a_backward(tensor *grad, tensor *a, tensor *x, bool upper, bool left,
				    bool unit);

/* linalg_factor.c */
tensor *qr_backward(tensor *const *grads, tensor *q, tensor *r, const char *mode);
/* of tau if `of_tau`, else of input */
tensor *householder_backward(tensor *grad, tensor *input, tensor *tau, bool of_tau);
tensor *svd_backward(tensor *const *grads, tensor *u, tensor *s, tensor *vh, bool full,
		     bool vectors);
tensor *eig_backward(tensor *const *grads, tensor *w, tensor *v, tensor_options self);

/* matrix.c */
tensor *pinv_backward(tensor *grad, tensor *a, tensor *p);
tensor *matrix_exp_backward(tensor *grad, tensor *a);

#endif
