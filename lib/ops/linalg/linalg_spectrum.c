// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of singular values, and of eigenvalues of general square matrices. */
#include "ops/linalg/linalg.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/linalg.h"
#include "family/ranges.h"
#include "family/reduce.h"
#include "family/reinterpret.h"
#include "family/shape.h"
#include "family/unary.h"
#include "family/view.h"

#include <tensor/autograd.h>

/* ---- singular values ---- */

struct singular {
	tensor *u, *s, *vh;
};

/* LAPACK is not called for empty matrices: any unitary vectors are valid. */
static int unit_vectors(struct singular *f)
{
	tensor *const sides[] = { f->u, f->vh };

	for (int i = 0; i < 2; i++) {
		int64_t m = sides[i]->sizes[sides[i]->ndim - 2],
			n = sides[i]->sizes[sides[i]->ndim - 1];

		if (sides[i]->numel &&
		    !tensor_copy_(sides[i],
				  tensor_eye_m(m, n,
					       TENSOR_OPTIONS(.dtype = sides[i]->dtype,
							      .device = sides[i]->device))))
			return error_code();
	}
	return 0;
}

static int decompose(const struct tensor_op *op, tensor *a, bool full, bool vectors,
		     enum svd_driver driver, struct singular *f)
{
	svd_kernel fn = (svd_kernel)op_kernel(op, op->kernels, a);
	int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1], k = m < n ? m : n;
	tensor *work = linalg_columns(a), *info = linalg_info_new(a);
	int err;

	f->s = linalg_vectors_new(a, dtype_real(a->dtype), k);
	f->u = vectors ? linalg_columns_new(a, a->dtype, m, full ? m : k) :
			 tensor_empty(TENSOR_INTS(0),
				      TENSOR_OPTIONS(.dtype = a->dtype, .device = a->device));
	f->vh = vectors ? linalg_columns_new(a, a->dtype, full ? n : k, n) :
			  tensor_empty(TENSOR_INTS(0),
				       TENSOR_OPTIONS(.dtype = a->dtype, .device = a->device));
	if (!fn || !work || !info || !f->s || !f->u || !f->vh)
		return error_code();
	if (!a->numel)
		return vectors ? unit_vectors(f) : 0;
	err = linalg_check_finite("linalg_svd", work);
	if (!err)
		err = fn(vectors ? f->u : NULL, f->s, vectors ? f->vh : NULL, work, info, driver);
	return err ? err : linalg_check_info("linalg_svd", info, "did not converge");
}

/* By PyTorch's names. NULL: the driver that needs no check of its accuracy. */
static int find_driver(const char *op, const tensor *A, bool full, const char *name,
		       enum svd_driver *driver)
{
	static const char *const names[] = { "gesvd", "gesvdj", "gesvda" };
	const int64_t *sizes = A->sizes + A->ndim - 2;

	*driver = SVD_GESVD;
	if (!name)
		return 0;
	if (A->device.type == TENSOR_CPU)
		return tensor_fail(EINVAL, "%s: a driver can be chosen on CUDA only", op);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]))
			continue;
		*driver = (enum svd_driver)i;
		if (*driver == SVD_GESVDA && full && sizes[0] != sizes[1])
			return tensor_fail(EINVAL,
					   "%s: driver gesvda gives no full matrices for shape %s",
					   op, SHAPE_STR(A));
		return 0;
	}
	return tensor_fail(EINVAL, "%s: the driver must be gesvd, gesvdj or gesvda, got %s", op,
			   QUOTED(name));
}

int op_svd(const struct tensor_op *op, tensor **u, tensor **s, tensor **vh, tensor *A,
	   bool full_matrices, bool compute_uv, const char *driver)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct singular f = { NULL };
	enum svd_driver with;
	int err = linalg_check_matrix(op->schema.name, A);

	if (!err)
		err = find_driver(op->schema.name, A, full_matrices && compute_uv, driver, &with);
	if (!err)
		err = decompose(op, A, full_matrices, compute_uv, with, &f);
	return linalg_leave(op, &guard,
			    (struct op_result[]){ { u, f.u }, { s, f.s }, { vh, f.vh } }, 3, err);
}

int composite_linalg_svd(tensor *A, bool full_matrices, const char *driver, tensor **U, tensor **S,
			 tensor **Vh)
{
	return call__linalg_svd(A, full_matrices, true, driver, U, S, Vh);
}

/* Compute the vectors too: the gradient needs them. */
tensor *composite_linalg_svdvals(tensor *A, const char *driver)
{
	bool vectors = operand_is_recorded(A);
	tensor *u, *s, *vh;

	if (call__linalg_svd(A, false, vectors, driver, &u, &s, &vh) < 0)
		return NULL;
	tensor_put(u);
	tensor_put(vh);
	return s;
}

/* Returns V instead of its adjoint, and zeros instead of empty tensors without compute_uv. */
int composite_svd(tensor *self, bool some, bool compute_uv, tensor **U, tensor **S, tensor **V)
{
	tensor_options o = TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device);
	int64_t sizes[TENSOR_MAX_DIMS], m, n;
	tensor *vh;

	if (linalg_check_matrix("svd", self) < 0)
		return error_code();
	if (compute_uv) {
		if (call__linalg_svd(self, !some, true, NULL, U, S, &vh) < 0)
			return error_code();
		*V = call_adjoint(vh);
		tensor_put(vh);
	} else {
		m = self->sizes[self->ndim - 2];
		n = self->sizes[self->ndim - 1];
		*S = composite_linalg_svdvals(self, NULL);
		if (!*S)
			return error_code();
		memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
		sizes[self->ndim - 1] = m;
		*U = call_zeros((tensor_ints){ sizes, self->ndim }, o);
		sizes[self->ndim - 2] = n;
		sizes[self->ndim - 1] = n;
		*V = call_zeros((tensor_ints){ sizes, self->ndim }, o);
	}
	if (*U && *V)
		return 0;
	tensor_put(*U);
	tensor_put(*S);
	tensor_put(*V);
	return error_code();
}

/* ---- eigenvalues ---- */

static enum tensor_dtype complex_of(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F32 ? TENSOR_C64 : dtype == TENSOR_F64 ? TENSOR_C128 : dtype;
}

static int eigen(const struct tensor_op *op, tensor *self, bool want_vectors, tensor **values,
		 tensor **vectors)
{
	eig_kernel fn = (eig_kernel)op_kernel(op, &kernels_linalg_eig, self);
	tensor *a, *info;
	int64_t n;
	int err = fn ? linalg_check_square(op->schema.name, self) : error_code();

	if (err)
		return err;
	n = self->sizes[self->ndim - 1];
	a = linalg_columns(self);
	info = linalg_info_new(self);
	*values = linalg_vectors_new(self, complex_of(self->dtype), n);
	*vectors = want_vectors ? linalg_columns_new(self, complex_of(self->dtype), n, n) : NULL;
	if (!a || !info || !*values || (want_vectors && !*vectors))
		return error_code();
	if (!a->numel)
		return 0;
	err = linalg_check_finite(op->schema.name, a);
	if (!err)
		err = fn(*values, *vectors, a, info);
	return err ? err : linalg_check_info(op->schema.name, info, "did not converge");
}

int op_eig(const struct tensor_op *op, tensor **values, tensor **vectors, tensor *self)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *w = NULL, *v = NULL;
	int err = eigen(op, self, true, &w, &v);

	return linalg_leave(op, &guard, (struct op_result[]){ { values, w }, { vectors, v } }, 2,
			    err);
}

int op_eigvals(const struct tensor_op *op, tensor **values, tensor *self)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *w = NULL, *v = NULL;
	int err = eigen(op, self, false, &w, &v);

	return linalg_leave(op, &guard, (struct op_result[]){ { values, w } }, 1, err);
}

/* Compute the vectors too: the gradient needs them. */
tensor *composite_linalg_eigvals(tensor *self)
{
	tensor *values, *vectors;

	if (!operand_is_recorded(self))
		return call__linalg_eigvals(self);
	if (call_linalg_eig(self, &values, &vectors) < 0)
		return NULL;
	tensor_put(vectors);
	return values;
}
