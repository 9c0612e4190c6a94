// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator function of eigenvalues and eigenvectors of symmetric and Hermitian matrices. */
#include "ops/linalg/linalg.h"

#include "family/eigh.h"
#include "family/move.h"

#include <tensor/autograd.h>

static int check_matrices(const struct tensor_op *op, const tensor *a, const char *uplo)
{
	if (a->ndim < 2 || a->sizes[a->ndim - 1] != a->sizes[a->ndim - 2])
		return tensor_fail(EINVAL, "%s: square matrices [.., n, n] are needed, got %s",
				   op->schema.name, SHAPE_STR(a));
	if (!dtype_is_full(a->dtype))
		return tensor_fail(EINVAL, "%s: f32, f64, c64 or c128 is needed, got %s",
				   op->schema.name, tensor_dtype_name(a->dtype));
	if (!uplo || !strchr("LlUu", uplo[0]) || !uplo[0] || uplo[1])
		return tensor_fail(EINVAL, "%s: UPLO must be L or U, got %s", op->schema.name,
				   uplo ? uplo : "nothing");
	return 0;
}

/* Copy with contiguous columns, as LAPACK requires. */
static tensor *by_columns(const tensor *a)
{
	int64_t strides[TENSOR_MAX_DIMS], n = a->sizes[a->ndim - 1], step = n * n;
	tensor *t;

	strides[a->ndim - 2] = 1;
	strides[a->ndim - 1] = n;
	for (int d = a->ndim - 3; d >= 0; d--) {
		strides[d] = step;
		step *= a->sizes[d];
	}
	t = tensor_new_strided(TENSOR_OPTIONS(.dtype = a->dtype, .device = a->device), a->sizes,
			       strides, a->ndim);
	if (t && operand_copy(t, a) < 0) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

/*
 * EDOM for NaN and infinities in the triangle that is read. LAPACK and the libraries of devices need not notice: they give NaN,
 * or numbers that have nothing to do with the matrix. The other triangle is looked at with it first, because that is cheaper.
 */
static int check_triangle(const struct tensor_op *op, tensor *a, const char *uplo)
{
	struct tensor_scope_guard guard;
	int err = linalg_check_finite(op->schema.name, a);
	tensor *t;

	if (err != -EDOM)
		return err;
	guard = tensor_scope_enter();
	t = strchr("Uu", uplo[0]) ? tensor_triu(a, 0) : tensor_tril(a, 0);
	err = t ? linalg_check_finite(op->schema.name, t) : error_code();
	if (!err)
		tensor_clear_error();
	scope_leave(&guard);
	return err;
}

/* Set *vectors to the copy that holds the eigenvectors, copy it to the caller's tensor, or drop it.
 */
static int give_vectors(const struct tensor_op *op, tensor **vectors, tensor *a, bool compute_v)
{
	const int64_t nothing = 0, *sizes = compute_v ? a->sizes : &nothing;
	const tensor *inputs[] = { a };
	struct op_output o;

	if (compute_v && !*vectors) {
		*vectors = tensor_get(a);
		return 0;
	}
	if (output_begin(op, &o, *vectors, a->dtype, sizes, compute_v ? a->ndim : 1, inputs, 1) < 0)
		return error_code();
	return output_end(op, &o, vectors, compute_v ? operand_copy(o.t, a) : 0);
}

int op_eigh(const struct tensor_op *op, tensor **values, tensor **vectors, tensor *A,
	    const char *UPLO, bool compute_v)
{
	eigh_kernel fn = (eigh_kernel)op_kernel(op, op->kernels, A);
	bool given = *values;
	tensor *a, *w;
	int err;

	if (!fn || check_matrices(op, A, UPLO) < 0)
		return error_code();
	if (given && tensor_overlap(*values, *vectors) != OVERLAP_NONE)
		return tensor_fail(EINVAL, "%s: eigenvalues and eigenvectors share memory",
				   op->schema.name);
	a = by_columns(A);
	w = a ? tensor_new(A->device, dtype_real(A->dtype), A->sizes, A->ndim - 1) : NULL;
	err = w ? 0 : error_code();
	if (!err)
		err = check_triangle(op, a, UPLO);
	if (!err)
		err = fn(w, a, UPLO[0] == 'U' || UPLO[0] == 'u', compute_v);
	if (!err)
		err = give_vectors(op, vectors, a, compute_v);
	if (!err && given) {
		const tensor *inputs[] = { w };
		struct op_output o;

		err = output_begin(op, &o, *values, w->dtype, w->sizes, w->ndim, inputs, 1);
		if (!err)
			err = output_end(op, &o, values, operand_copy(o.t, w));
	} else if (!err) {
		*values = tensor_get(w);
	}
	tensor_put(w);
	tensor_put(a);
	return err;
}

int composite_linalg_eigh(tensor *self, const char *UPLO, tensor **eigenvalues,
			  tensor **eigenvectors)
{
	return call__linalg_eigh(self, UPLO, true, eigenvalues, eigenvectors);
}

/* Compute the vectors too: the gradient needs them. */
tensor *composite_linalg_eigvalsh(tensor *self, const char *UPLO)
{
	bool vectors = operand_is_recorded(self);
	tensor *eigenvalues, *eigenvectors;

	if (call__linalg_eigh(self, UPLO, vectors, &eigenvalues, &eigenvectors) < 0)
		return NULL;
	tensor_put(eigenvectors);
	return eigenvalues;
}
