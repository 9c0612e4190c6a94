// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of QR, singular values and eigenvalues. */
#include "autograd/formulas/formulas.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/cat.h"
#include "family/linalg.h"
#include "family/move.h"
#include "family/pad.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/ranges.h"
#include "family/reinterpret.h"
#include "family/scatter.h"
#include "family/shape.h"
#include "family/view.h"

#include <stdlib.h>

/* a + b, where either may be NULL; NULL if both are. */
static tensor *sum_of(tensor *a, tensor *b)
{
	return a && b ? tensor_add(a, b) : a ? a : b;
}

/* ---- QR ---- */

/* Hermitian matrix with t's upper triangle. */
static tensor *mirrored(tensor *t)
{
	tensor *diagonal = tensor_diagonal(t, 0, -2, -1);

	if (t && dtype_is_complex(t->dtype))
		diagonal = tensor_to(tensor_real(diagonal), TENSOR_OPTIONS(.dtype = t->dtype));
	t = tensor_triu(t, 1);
	return tensor_add(tensor_add(t, formula_adjoint(t)),
			  tensor_diag_embed(diagonal, 0, -2, -1));
}

/* A = Q R, m >= n: gA = [gQ + Q mirrored(gR R^H - Q^H gQ)] R^-H. At least one of gq and gr is not
 * NULL. */
static tensor *tall_qr_backward(tensor *gq, tensor *gr, tensor *q, tensor *r)
{
	tensor *m = gr ? tensor_matmul(gr, formula_adjoint(r)) : NULL, *ga;

	if (gq)
		m = sum_of(m, tensor_neg(tensor_matmul(formula_adjoint(q), gq)));
	ga = sum_of(tensor_matmul(q, mirrored(m)), gq);
	return tensor_linalg_solve_triangular_opt(formula_adjoint(r), ga, false, false, false);
}

/* Wide matrices: A = [A1 A2] with a square A1 = Q R1. R2 = Q^H A2, so gA2 = Q gR2, and gQ gets an
 * additional A2 gR2^H. */
tensor *qr_backward(tensor *const *grads, tensor *q, tensor *r, const char *mode)
{
	int64_t m = r->sizes[r->ndim - 2], n = r->sizes[r->ndim - 1];
	tensor *gq = grads[0], *gr = grads[1], *gr2;

	if (mode[0] == 'r' && !mode[1])
		return tensor_fail_null(EINVAL,
					"linalg_qr: there is no gradient in mode r: it needs Q");
	if (m > n)
		return tensor_fail_null(EINVAL,
					"linalg_qr: there is no gradient in mode complete for more "
					"rows than columns");
	if (m == n)
		return tall_qr_backward(gq, gr, q, r);
	gr2 = gr ? tensor_narrow(gr, -1, m, n - m) : NULL;
	if (gr2) {
		tensor *a2 = tensor_matmul(q, tensor_narrow(r, -1, m, n - m));

		gq = sum_of(gq, tensor_matmul(a2, formula_adjoint(gr2)));
	}
	gq = tall_qr_backward(gq, gr ? tensor_narrow(gr, -1, 0, m) : NULL, q,
			      tensor_narrow(r, -1, 0, m));
	gr2 = gr2 ? tensor_matmul(q, gr2) :
		    tensor_zeros_like(tensor_narrow(r, -1, m, n - m), TENSOR_OPTIONS(0));
	return tensor_cat(TENSOR_LIST(gq, gr2), -1);
}

/* v of H_i = 1 - tau_i v v^H: column i of input below the diagonal, with 1 on it; [.., m, 1]. */
static tensor *reflector(tensor *input, int64_t i)
{
	int64_t m = input->sizes[input->ndim - 2];
	tensor *v = tensor_narrow(tensor_narrow(input, -1, i, 1), -2, i + 1, m - i - 1);
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor_options o = TENSOR_OPTIONS(.dtype = input->dtype, .device = input->device);

	memcpy(sizes, input->sizes, input->ndim * sizeof(*sizes));
	sizes[input->ndim - 1] = 1;
	sizes[input->ndim - 2] = i + 1;
	v = tensor_cat(TENSOR_LIST(tensor_zeros((tensor_ints){ sizes, input->ndim }, o), v), -2);
	return tensor_add(v, tensor_narrow(tensor_eye_m(m, i + 1, o), -1, i, 1));
}

/* (1 - t v v^H) x */
static tensor *reflected(tensor *x, tensor *v, tensor *t)
{
	return tensor_sub(x, tensor_mul(t, tensor_matmul(v, tensor_matmul(formula_adjoint(v), x))));
}

/* tau_i as [.., 1, 1] */
static tensor *tau_at(tensor *tau, int64_t i)
{
	return tensor_unsqueeze(tensor_narrow(tau, -1, i, 1), -1);
}

/* Gradients of step i of Q = H_1 .. H_k E: with P = (H_1 .. H_i-1)^H g and R = H_i+1 .. H_k E, g
 * tau_i = -v^H P R^H v and g v = -(conj(tau_i) P R^H + tau_i R P^H) v. */
static tensor *step_backward(tensor *p, tensor *r, tensor *v, tensor *t, bool of_tau)
{
	tensor *pr = tensor_matmul(p, tensor_matmul(formula_adjoint(r), v)), *rp;

	if (of_tau)
		return tensor_neg(tensor_squeeze_dim(tensor_matmul(formula_adjoint(v), pr), -1));
	rp = tensor_matmul(r, tensor_matmul(formula_adjoint(p), v));
	return tensor_neg(tensor_add(tensor_mul(formula_conj(t), pr), tensor_mul(t, rp)));
}

/* rest[i] = H_i+1 .. H_k E, computed from the last. False with the error set. */
static bool products_after(tensor *input, tensor *tau, int64_t k, tensor **rest)
{
	int64_t m = input->sizes[input->ndim - 2], n = input->sizes[input->ndim - 1];

	rest[k - 1] = tensor_expand(
		tensor_eye_m(m, n, TENSOR_OPTIONS(.dtype = input->dtype, .device = input->device)),
		(tensor_ints){ input->sizes, input->ndim });
	for (int64_t i = k - 1; i > 0 && rest[i]; i--)
		rest[i - 1] = reflected(rest[i], reflector(input, i), tau_at(tau, i));
	return rest[0];
}

tensor *householder_backward(tensor *grad, tensor *input, tensor *tau, bool of_tau)
{
	int64_t k = tau->sizes[tau->ndim - 1], n = input->sizes[input->ndim - 1];
	tensor **parts, **rest, *ga = NULL, *v;

	if (!k)
		return tensor_none;
	parts = calloc(2 * k, sizeof(*parts));
	rest = parts ? parts + k : NULL;
	if (!parts)
		return tensor_fail_null(ENOMEM,
					"linalg_householder_product: no memory for the gradient");
	for (int64_t i = 0; i < k && (i || products_after(input, tau, k, rest)); i++) {
		v = reflector(input, i);
		parts[i] = step_backward(grad, rest[i], v, tau_at(tau, i), of_tau);
		grad = reflected(grad, v, formula_conj(tau_at(tau, i)));
	}
	if (grad && parts[k - 1])
		ga = tensor_cat((tensor_list){ parts, k }, -1);
	free(parts);
	if (of_tau || !ga)
		return ga;
	return tensor_tril(tensor_constant_pad_nd(ga, TENSOR_INTS(0, n - k), tensor_scalar_int(0)),
			   -1);
}

/* ---- singular values ---- */

static tensor *skew(tensor *t)
{
	return tensor_sub(t, formula_adjoint(t));
}

/* x[j] - x[i], with 1 on the diagonal. */
static tensor *gaps(tensor *x)
{
	tensor *gap = tensor_sub(tensor_unsqueeze(x, -2), tensor_unsqueeze(x, -1));

	return tensor_diagonal_scatter(gap, tensor_ones_like(x, TENSOR_OPTIONS(0)), 0, -2, -1);
}

/* The matrix between U and V^H: (skew(U^H gU) S + S skew(V^H gV)) / E + gS, E[i][j] = S[j]^2 -
 * S[i]^2. */
static tensor *svd_middle(tensor *uu, tensor *vv, tensor *gs, tensor *s)
{
	tensor *middle = NULL;

	if (uu)
		middle = tensor_mul(uu, tensor_unsqueeze(s, -2));
	if (vv)
		middle = sum_of(middle, tensor_mul(tensor_unsqueeze(s, -1), vv));
	if (middle)
		middle = tensor_div(middle, gaps(tensor_mul(s, s)));
	if (gs)
		middle = sum_of(middle, tensor_diag_embed(gs, 0, -2, -1));
	if (uu && vv && dtype_is_complex(uu->dtype))
		middle = sum_of(middle,
				tensor_diag_embed(tensor_div(tensor_diagonal(uu, 0, -2, -1),
							     formula_scale(s, formula_scalar(2))),
						  0, -2, -1));
	return middle;
}

/* t minus its projection on the columns of q. */
static tensor *outside(tensor *t, tensor *q)
{
	return tensor_sub(t, tensor_matmul(q, tensor_matmul(formula_adjoint(q), t)));
}

/* A = U diag(S) V^H with k columns: gA = U middle V^H, plus (1 - U U^H) gU S^-1 V^H and U S^-1 gV^H
 * (1 - V V^H) for the components outside the columns of U and V. */
static tensor *thin_svd_backward(tensor *gu, tensor *gs, tensor *gvh, tensor *u, tensor *s,
				 tensor *vh)
{
	int64_t m = u->sizes[u->ndim - 2], k = s->sizes[s->ndim - 1], n = vh->sizes[vh->ndim - 1];
	tensor *v = formula_adjoint(vh), *uu, *vv, *ga;

	uu = gu ? skew(tensor_matmul(formula_adjoint(u), gu)) : NULL;
	vv = gvh ? skew(tensor_matmul(vh, formula_adjoint(gvh))) : NULL;
	ga = tensor_to(svd_middle(uu, vv, gs, s), TENSOR_OPTIONS(.dtype = u->dtype));
	ga = tensor_matmul(tensor_matmul(u, ga), vh);
	if (gu && m > k)
		ga = tensor_add(
			ga, tensor_matmul(outside(tensor_div(gu, tensor_unsqueeze(s, -2)), u), vh));
	if (gvh && n > k)
		ga = tensor_add(ga, tensor_matmul(u, formula_adjoint(outside(
							     tensor_div(formula_adjoint(gvh),
									tensor_unsqueeze(s, -2)),
							     v))));
	return ga;
}

tensor *svd_backward(tensor *const *grads, tensor *u, tensor *s, tensor *vh, bool full,
		     bool vectors)
{
	int64_t k = s->sizes[s->ndim - 1];
	tensor *gu = grads[0], *gvh = grads[2];

	if (!vectors)
		return tensor_fail_null(EINVAL,
					"linalg_svd: the gradient needs the singular vectors: "
					"compute_uv must be true");
	if (full) {
		u = tensor_narrow(u, -1, 0, k);
		vh = tensor_narrow(vh, -2, 0, k);
		gu = gu ? tensor_narrow(gu, -1, 0, k) : NULL;
		gvh = gvh ? tensor_narrow(gvh, -2, 0, k) : NULL;
	}
	return u && vh ? thin_svd_backward(gu, grads[1], gvh, u, s, vh) : NULL;
}

/* ---- eigenvalues ---- */

/* A V = V diag(w) with columns of V of norm 1: gA = V^-H [diag(gw) + (V^H gV - V^H V Re(diag(V^H
 * gV))) / E] V^H, where the division applies off the diagonal and E[i][j] = conj(w[j] - w[i]). */
tensor *eig_backward(tensor *const *grads, tensor *w, tensor *v, tensor_options self)
{
	tensor *vh = formula_adjoint(v), *middle, *m, *ga;

	if (!grads[1]) {
		ga = tensor_linalg_solve(vh, tensor_mul(tensor_unsqueeze(grads[0], -1), vh));
	} else {
		m = tensor_matmul(vh, grads[1]);
		middle = tensor_mul(tensor_matmul(vh, v),
				    tensor_unsqueeze(tensor_real(tensor_diagonal(m, 0, -2, -1)),
						     -2));
		middle = tensor_div(tensor_sub(m, middle), gaps(formula_conj(w)));
		middle = tensor_diagonal_scatter(
			middle, grads[0] ? grads[0] : tensor_zeros_like(w, TENSOR_OPTIONS(0)), 0,
			-2, -1);
		ga = tensor_linalg_solve(vh, tensor_matmul(middle, vh));
	}
	return dtype_is_complex(self.dtype) ? ga : tensor_real(ga);
}
