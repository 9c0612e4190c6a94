// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of Cholesky and QR factorization, and of triangular systems. */
#include "ops/linalg/linalg.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/linalg.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/ranges.h"
#include "family/reinterpret.h"
#include "family/shape.h"
#include "family/view.h"

/* ---- Cholesky ---- */

int op_cholesky_ex(const struct tensor_op *op, tensor **factor, tensor **info, tensor *self,
		   bool upper, bool check_errors)
{
	cholesky_kernel fn = (cholesky_kernel)op_kernel(op, op->kernels, self);
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *a = NULL, *failed = NULL;
	int err = fn ? linalg_check_square(op->schema.name, self) : error_code();

	if (!err) {
		a = linalg_columns(self);
		failed = a ? linalg_info_new(a) : NULL;
		err = !failed ? error_code() : a->numel ? fn(a, upper, failed) : 0;
	}
	if (!err)
		a = upper ? tensor_triu_(a, 0) : tensor_tril_(a, 0);
	if (!err && check_errors)
		err = linalg_check_info(op->schema.name, failed, "is not positive-definite");
	return linalg_leave(op, &guard, (struct op_result[]){ { factor, a }, { info, failed } }, 2,
			    err);
}

tensor *composite_linalg_cholesky(tensor *self, bool upper)
{
	tensor *factor, *info;

	if (call_linalg_cholesky_ex(self, upper, true, &factor, &info) < 0)
		return NULL;
	tensor_put(info);
	return factor;
}

int op_cholesky_solve(const struct tensor_op *op, tensor **out, tensor *self, tensor *input2,
		      bool upper)
{
	cholesky_solve_kernel fn = (cholesky_solve_kernel)op_kernel(op, op->kernels, self);
	struct tensor_scope_guard guard = tensor_scope_enter();
	int err = fn ? linalg_check_system(op->schema.name, input2, self, true) : error_code();

	if (!err)
		err = linalg_system(op->schema.name, &input2, &self);
	if (!err && self->numel)
		err = fn(input2, self, upper);
	return linalg_leave(op, &guard, (struct op_result[]){ { out, self } }, 1, err);
}

tensor *composite_cholesky_inverse(tensor *self, bool upper)
{
	struct tensor_scope_guard guard;
	tensor *one;

	if (linalg_check_square("cholesky_inverse", self) < 0)
		return NULL;
	guard = tensor_scope_enter();
	one = tensor_eye(self->sizes[self->ndim - 1],
			 TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device));
	return scope_leave_with(&guard, tensor_cholesky_solve(one, self, upper));
}

/* ---- triangular ---- */

int op_solve_triangular(const struct tensor_op *op, tensor **out, tensor *self, tensor *B,
			bool upper, bool left, bool unitriangular)
{
	triangular_kernel fn = (triangular_kernel)op_kernel(op, op->kernels, self);
	const struct triangle how = { .upper = upper, .left = left, .unit = unitriangular };
	struct tensor_scope_guard guard = tensor_scope_enter();
	int err = fn ? linalg_check_system(op->schema.name, self, B, left) : error_code();

	if (!err)
		err = linalg_system(op->schema.name, &self, &B);
	if (!err && B->numel)
		err = fn(self, B, &how);
	return linalg_leave(op, &guard, (struct op_result[]){ { out, B } }, 1, err);
}

int composite_triangular_solve(tensor *self, tensor *A, bool upper, bool transpose,
			       bool unitriangular, tensor **solution, tensor **cloned_coefficient)
{
	tensor *a = transpose ? call_mT(A) : tensor_get(A);

	*solution =
		a ? call_linalg_solve_triangular(a, self, upper != transpose, true, unitriangular) :
		    NULL;
	tensor_put(a);
	*cloned_coefficient = *solution ? call_clone(A, TENSOR_PRESERVE_FORMAT) : NULL;
	if (*cloned_coefficient)
		return 0;
	tensor_put(*solution);
	return error_code();
}

/* ---- QR ---- */

struct reflectors {
	tensor *a, *tau;
};

static int64_t least_of(const tensor *a)
{
	int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];

	return m < n ? m : n;
}

static int factor(const struct tensor_op *op, tensor *self, struct reflectors *f)
{
	qr_kernel fn = (qr_kernel)op_kernel(op, &kernels_geqrf, self);

	if (!fn || linalg_check_matrix(op->schema.name, self) < 0)
		return error_code();
	f->a = linalg_columns(self);
	f->tau = f->a ? linalg_vectors_new(f->a, f->a->dtype, least_of(f->a)) : NULL;
	if (!f->tau)
		return error_code();
	return f->a->numel ? fn(f->a, f->tau) : 0;
}

int op_geqrf(const struct tensor_op *op, tensor **a, tensor **tau, tensor *self)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct reflectors f = { NULL };
	int err = factor(op, self, &f);

	return linalg_leave(op, &guard, (struct op_result[]){ { a, f.a }, { tau, f.tau } }, 2, err);
}

/* The first `columns` columns of the product of f's reflectors, column-major. */
static tensor *product(const struct tensor_op *op, const struct reflectors *f, int64_t columns)
{
	householder_kernel fn =
		(householder_kernel)op_kernel(op, &kernels_linalg_householder_product, f->a);
	int64_t m = f->a->sizes[f->a->ndim - 2], k = f->tau->sizes[f->tau->ndim - 1];
	tensor *q, *tau = scope_own(thread(), operand_contiguous(f->tau));

	q = fn && tau ? linalg_columns_new(f->a, f->a->dtype, m, columns) : NULL;
	if (!q)
		return NULL;
	if (!q->numel)
		return q;
	if (!k)
		return tensor_add_(
			tensor_zero_(q),
			tensor_eye_m(m, columns,
				     TENSOR_OPTIONS(.dtype = q->dtype, .device = q->device)));
	if (!tensor_copy_(tensor_narrow(q, -1, 0, k), tensor_narrow(f->a, -1, 0, k)))
		return NULL;
	return fn(q, tau) < 0 ? NULL : q;
}

int op_householder_product(const struct tensor_op *op, tensor **out, tensor *input, tensor *tau)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	const struct reflectors f = { input, tau };
	const char *name = op->schema.name;
	int err = linalg_check_matrix(name, input);
	int64_t n;
	tensor *q = NULL;

	if (!err)
		err = operand_check_device(name, input, tau);
	if (!err && tau->dtype != input->dtype)
		err = tensor_fail(EINVAL, "%s: both must have one dtype, got %s and %s", name,
				  tensor_dtype_name(input->dtype), tensor_dtype_name(tau->dtype));
	n = err ? 0 : input->sizes[input->ndim - 1];
	if (!err && (tau->ndim != input->ndim - 1 || input->sizes[input->ndim - 2] < n ||
		     tau->sizes[tau->ndim - 1] > n ||
		     memcmp(tau->sizes, input->sizes, (tau->ndim - 1) * sizeof(*tau->sizes)) != 0))
		err = tensor_fail(EINVAL, "%s: tau %s does not fit reflectors %s", name,
				  SHAPE_STR(tau), SHAPE_STR(input));
	if (!err)
		q = product(op, &f, n);
	return linalg_leave(op, &guard, (struct op_result[]){ { out, q } }, 1, err);
}

tensor *composite_orgqr(tensor *self, tensor *input2)
{
	return call_linalg_householder_product(self, input2);
}

static int check_mode(const char *op, const char *mode)
{
	if (mode && (!strcmp(mode, "reduced") || !strcmp(mode, "complete") || !strcmp(mode, "r")))
		return 0;
	return tensor_fail(EINVAL, "%s: mode must be reduced, complete or r, got %s", op,
			   QUOTED(mode));
}

int op_qr(const struct tensor_op *op, tensor **q, tensor **r, tensor *A, const char *mode)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct reflectors f = { NULL };
	tensor *left = NULL, *right = NULL;
	int64_t m, columns;
	int err = check_mode(op->schema.name, mode);

	if (!err)
		err = factor(op, A, &f);
	if (!err) {
		m = A->sizes[A->ndim - 2];
		columns = *mode == 'c' ? m : least_of(A);
		left = *mode == 'r' && !mode[1] ?
			       tensor_empty(TENSOR_INTS(0), TENSOR_OPTIONS(.dtype = A->dtype,
									   .device = A->device)) :
			       product(op, &f, columns);
		right = tensor_triu(tensor_narrow(f.a, -2, 0, columns), 0);
	}
	return linalg_leave(op, &guard, (struct op_result[]){ { q, left }, { r, right } }, 2, err);
}

int composite_qr(tensor *self, bool some, tensor **Q, tensor **R)
{
	return call_linalg_qr(self, some ? "reduced" : "complete", Q, R);
}
