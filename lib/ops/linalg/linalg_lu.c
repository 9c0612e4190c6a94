// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* LU factorization, and operators that use it: linear systems, inverses, determinants. */
#include "ops/linalg/linalg.h"

#include "family/activation.h"
#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/linalg.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/ranges.h"
#include "family/reduce.h"
#include "family/reinterpret.h"
#include "family/shape.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

#include <math.h>

/* ---- factorization ---- */

struct lu {
	tensor *lu, *pivots, *info;
};

/* Factor a column-major a [.., m, n]. check: a singular matrix is an error. */
static int factor(const struct tensor_op *op, tensor *a, bool pivot, bool check, struct lu *f)
{
	lu_factor_kernel fn = (lu_factor_kernel)op_kernel(op, &kernels_linalg_lu_factor, a);
	int64_t m, n;
	int err;

	if (!fn || linalg_check_matrix(op->schema.name, a) < 0)
		return error_code();
	if (!pivot)
		return tensor_fail(EOPNOTSUPP, "%s: LU without pivoting is not implemented",
				   op->schema.name);
	m = a->sizes[a->ndim - 2];
	n = a->sizes[a->ndim - 1];
	*f = (struct lu){ linalg_columns(a), linalg_vectors_new(a, TENSOR_I32, m < n ? m : n),
			  linalg_info_new(a) };
	if (!f->lu || !f->pivots || !f->info)
		return error_code();
	err = f->lu->numel ? fn(f->lu, f->pivots, f->info) : 0;
	return err || !check ? err : linalg_check_info(op->schema.name, f->info, "is singular");
}

static int factor_square(const struct tensor_op *op, tensor *a, bool check, struct lu *f)
{
	int err = linalg_check_square(op->schema.name, a);

	return err ? err : factor(op, a, true, check, f);
}

int op_lu_factor_ex(const struct tensor_op *op, tensor **lu, tensor **pivots, tensor **info,
		    tensor *A, bool pivot, bool check_errors)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct lu f = { NULL };
	int err = factor(op, A, pivot, check_errors, &f);

	return linalg_leave(
		op, &guard,
		(struct op_result[]){ { lu, f.lu }, { pivots, f.pivots }, { info, f.info } }, 3,
		err);
}

static int lu_factor(tensor *A, bool pivot, bool check, tensor **LU, tensor **pivots)
{
	tensor *info;
	int err = call_linalg_lu_factor_ex(A, pivot, check, LU, pivots, &info);

	if (!err)
		tensor_put(info);
	return err;
}

int composite_linalg_lu_factor(tensor *A, bool pivot, tensor **LU, tensor **pivots)
{
	return lu_factor(A, pivot, true, LU, pivots);
}

/* ---- unpacking ---- */

/* Apply one matrix's row exchanges to `order`, or EINVAL. Each pivot is read once: another process
 * may be able to write to them. */
static int exchange(const int32_t *pivots, int64_t k, int64_t *order, int64_t m)
{
	for (int64_t i = 0; i < m; i++)
		order[i] = i;
	for (int64_t i = 0; i < k; i++) {
		int64_t other = *(const volatile int32_t *)&pivots[i], row = order[i];

		if (other < 1 || other > m)
			return tensor_fail(EINVAL,
					   "lu_unpack: pivots must be in 1 .. %lld, got %lld",
					   (long long)m, (long long)other);
		order[i] = order[other - 1];
		order[other - 1] = row;
	}
	return 0;
}

/* bool [.., m, m]: the permutation matrix of pivots [.., k] of matrices with m rows. */
static tensor *permutation(tensor *pivots, int64_t m)
{
	int64_t sizes[TENSOR_MAX_DIMS], k;
	tensor *order, *rows;

	pivots = scope_own(thread(), operand_on_host(pivots));
	if (!pivots)
		return NULL;
	k = pivots->sizes[pivots->ndim - 1];
	memcpy(sizes, pivots->sizes, pivots->ndim * sizeof(*sizes));
	sizes[pivots->ndim - 1] = m;
	rows = tensor_arange(tensor_scalar_int(m), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	order = !rows ? NULL : scope_own(thread(), tensor_new_like(rows, sizes, pivots->ndim));
	if (!order)
		return NULL;
	for (int64_t i = 0; i < (m ? order->numel / m : 0); i++)
		if (exchange((const int32_t *)pivots->data + i * k, k,
			     (int64_t *)order->data + i * m, m) < 0)
			return NULL;
	return tensor_eq(tensor_unsqueeze(order, -2), tensor_unsqueeze(rows, -1));
}

static int check_packed(const char *op, const tensor *lu, const tensor *pivots)
{
	int64_t least;

	if (linalg_check_matrix(op, lu) < 0)
		return error_code();
	least = lu->sizes[lu->ndim - 2] < lu->sizes[lu->ndim - 1] ? lu->sizes[lu->ndim - 2] :
								    lu->sizes[lu->ndim - 1];
	if (pivots->dtype != TENSOR_I32)
		return tensor_fail(EINVAL, "%s: pivots must be i32, got %s", op,
				   tensor_dtype_name(pivots->dtype));
	if (pivots->ndim != lu->ndim - 1 || pivots->sizes[pivots->ndim - 1] != least ||
	    memcmp(pivots->sizes, lu->sizes, (lu->ndim - 2) * sizeof(*lu->sizes)) != 0)
		return tensor_fail(EINVAL, "%s: pivots %s do not fit the factors %s", op,
				   SHAPE_STR(pivots), SHAPE_STR(lu));
	return 0;
}

/* L [.., m, k] and U [.., k, n] of factors [.., m, n]. */
static void unpack(tensor *lu, tensor **l, tensor **u)
{
	int64_t m = lu->sizes[lu->ndim - 2], n = lu->sizes[lu->ndim - 1], k = m < n ? m : n;
	tensor *below = tensor_tril(tensor_narrow(lu, -1, 0, k), -1);

	*l = tensor_add(below,
			tensor_eye_m(m, k,
				     TENSOR_OPTIONS(.dtype = lu->dtype, .device = lu->device)));
	*u = tensor_triu(tensor_narrow(lu, -2, 0, k), 0);
}

int composite_lu_unpack(tensor *LU_data, tensor *LU_pivots, bool unpack_data, bool unpack_pivots,
			tensor **P, tensor **L, tensor **U)
{
	struct tensor_scope_guard guard;
	struct op_result results[] = { { P, NULL }, { L, NULL }, { U, NULL } };
	tensor_options o = TENSOR_OPTIONS(.dtype = LU_data->dtype, .device = LU_data->device);

	if (check_packed("lu_unpack", LU_data, LU_pivots) < 0)
		return error_code();
	guard = tensor_scope_enter();
	results[0].made =
		unpack_pivots ?
			tensor_to(permutation(LU_pivots, LU_data->sizes[LU_data->ndim - 2]), o) :
			tensor_empty(TENSOR_INTS(0), o);
	if (unpack_data) {
		unpack(LU_data, &results[1].made, &results[2].made);
	} else {
		results[1].made = tensor_empty(TENSOR_INTS(0), o);
		results[2].made = tensor_empty(TENSOR_INTS(0), o);
	}
	return results_leave(&guard, results, 3, 0);
}

int composite_linalg_lu(tensor *A, bool pivot, tensor **P, tensor **L, tensor **U)
{
	tensor *lu, *pivots;
	int err = lu_factor(A, pivot, false, &lu, &pivots);

	if (err)
		return err;
	err = composite_lu_unpack(lu, pivots, true, true, P, L, U);
	tensor_put(lu);
	tensor_put(pivots);
	return err;
}

/* ---- linear systems ---- */

/* EINVAL for a pivot that is not a row. Waits for a device. */
static int check_pivots(const char *op, tensor *pivots, int64_t n)
{
	tensor *here = operand_on_host(pivots);
	const int32_t *p = here ? here->data : NULL;
	int err = here ? 0 : error_code();

	for (int64_t i = 0; !err && i < here->numel; i++)
		if (p[i] < 1 || p[i] > n)
			err = tensor_fail(EINVAL, "%s: pivots must be in 1 .. %lld, got %d", op,
					  (long long)n, p[i]);
	tensor_put(here);
	return err;
}

/* Private copy of the pivots of lu. */
static tensor *private_pivots(tensor *pivots, const tensor *lu)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *t;

	memcpy(sizes, lu->sizes, (lu->ndim - 1) * sizeof(*sizes));
	t = scope_own(thread(), tensor_new_like(pivots, sizes, lu->ndim - 1));
	return t && operand_copy(t, pivots) == 0 ? t : NULL;
}

/* A system X A = B is solved as A^T X^T = B^T. given: the factors are the caller's, whose pivots are checked. */
static tensor *solved(const struct tensor_op *op, tensor *lu, tensor *pivots, tensor *b, bool left,
		      bool adjoint, bool given)
{
	const char *name = op->schema.name;
	lu_solve_kernel fn = (lu_solve_kernel)op_kernel(op, &kernels_linalg_lu_solve, lu);
	bool conjugate = !left && adjoint;

	if (!fn || linalg_check_system(name, lu, b, left) < 0 || check_packed(name, lu, pivots) < 0)
		return NULL;
	b = left ? b : conjugate ? tensor_adjoint(b) : tensor_mT(b);
	if (!b || linalg_system(name, &lu, &b) < 0)
		return NULL;
	pivots = private_pivots(pivots, lu);
	if (!pivots || (given && check_pivots(name, pivots, lu->sizes[lu->ndim - 1]) < 0))
		return NULL;
	if (b->numel && fn(lu, pivots, b, left == adjoint ? (left ? 'C' : 'T') : 'N') < 0)
		return NULL;
	return left ? b : conjugate ? tensor_adjoint(b) : tensor_mT(b);
}

int op_lu_solve(const struct tensor_op *op, tensor **out, tensor *LU, tensor *pivots, tensor *B,
		bool left, bool adjoint)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	const struct op_result results[] = { { out,
					       solved(op, LU, pivots, B, left, adjoint, true) } };

	return linalg_leave(op, &guard, results, 1, 0);
}

tensor *composite_lu_solve(tensor *self, tensor *LU_data, tensor *LU_pivots)
{
	return call_linalg_lu_solve(LU_data, LU_pivots, self, true, false);
}

/* True if b is [n], or [.., n] with the batch of a: one vector per matrix. */
static bool is_vectors(const tensor *a, const tensor *b)
{
	return b->ndim == 1 || (a->ndim == b->ndim + 1 &&
				memcmp(a->sizes, b->sizes, b->ndim * sizeof(*b->sizes)) == 0);
}

int op_solve_ex(const struct tensor_op *op, tensor **result, tensor **lu, tensor **pivots,
		tensor **info, tensor *A, tensor *B, bool left, bool check_errors)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	bool vectors = is_vectors(A, B);
	struct lu f = { NULL };
	tensor *x = NULL;
	int err = linalg_check_square(op->schema.name, A);

	if (!err && vectors && !left)
		err = tensor_fail(EINVAL, "%s: vectors %s are solved from the left only",
				  op->schema.name, SHAPE_STR(B));
	if (!err)
		err = factor(op, A, true, check_errors, &f);
	if (!err)
		x = solved(op, f.lu, f.pivots, vectors ? tensor_unsqueeze(B, -1) : B, left, false,
			   false);
	if (x && vectors)
		x = tensor_squeeze_dim(x, -1);
	return linalg_leave(
		op, &guard,
		(struct op_result[]){
			{ result, x }, { lu, f.lu }, { pivots, f.pivots }, { info, f.info } },
		4, err);
}

int composite_linalg_solve_ex(tensor *A, tensor *B, bool left, bool check_errors, tensor **result,
			      tensor **info)
{
	tensor *lu, *pivots;
	int err = call__linalg_solve_ex(A, B, left, check_errors, result, &lu, &pivots, info);

	if (err)
		return err;
	tensor_put(lu);
	tensor_put(pivots);
	return 0;
}

tensor *composite_linalg_solve(tensor *A, tensor *B, bool left)
{
	tensor *result, *info;

	if (composite_linalg_solve_ex(A, B, left, true, &result, &info) < 0)
		return NULL;
	tensor_put(info);
	return result;
}

int op_inv_ex(const struct tensor_op *op, tensor **inverse, tensor **info, tensor *A,
	      bool check_errors)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct lu f = { NULL };
	tensor *x = NULL;
	int err = factor_square(op, A, check_errors, &f);

	if (!err)
		x = solved(op, f.lu, f.pivots,
			   tensor_eye(A->sizes[A->ndim - 1],
				      TENSOR_OPTIONS(.dtype = A->dtype, .device = A->device)),
			   true, false, false);
	return linalg_leave(op, &guard, (struct op_result[]){ { inverse, x }, { info, f.info } }, 2,
			    err);
}

tensor *composite_linalg_inv(tensor *A)
{
	tensor *inverse, *info;

	if (call_linalg_inv_ex(A, true, &inverse, &info) < 0)
		return NULL;
	tensor_put(info);
	return inverse;
}

/* ---- determinants ---- */

/* Sign of the row permutation, [..] of a real or complex dtype. */
static tensor *exchange_sign(tensor *pivots, enum tensor_dtype dtype)
{
	int64_t n = pivots->sizes[pivots->ndim - 1];
	tensor *rows = tensor_arange(tensor_scalar_int(n),
				     TENSOR_OPTIONS(.dtype = TENSOR_I32, .device = pivots->device));
	tensor *moved = tensor_ne(pivots, tensor_add_scalar(rows, tensor_scalar_int(1)));
	tensor *count = tensor_sum_dim(moved, TENSOR_INTS(-1), false);
	/* Not a remainder, for whose divisor the host waits. */
	tensor *odd = tensor_bitwise_and_scalar(count, tensor_scalar_int(1));
	tensor *sign = tensor_rsub_scalar(odd, tensor_scalar_int(1), tensor_scalar_int(2));

	return tensor_to(sign, TENSOR_OPTIONS(.dtype = dtype));
}

int op_det(const struct tensor_op *op, tensor **result, tensor **lu, tensor **pivots, tensor *A)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct lu f = { NULL };
	tensor *det = NULL;
	int err = factor_square(op, A, false, &f);

	if (!err)
		det = tensor_mul(tensor_prod_dim(tensor_diagonal(f.lu, 0, -2, -1), -1, false),
				 exchange_sign(f.pivots, A->dtype));
	return linalg_leave(
		op, &guard,
		(struct op_result[]){ { result, det }, { lu, f.lu }, { pivots, f.pivots } }, 3,
		err);
}

tensor *composite_linalg_det(tensor *A)
{
	tensor *result, *lu, *pivots;

	if (call__linalg_det(A, &result, &lu, &pivots) < 0)
		return NULL;
	tensor_put(lu);
	tensor_put(pivots);
	return result;
}

int op_slogdet(const struct tensor_op *op, tensor **sign, tensor **logabsdet, tensor **lu,
	       tensor **pivots, tensor *A)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *diagonal, *s = NULL, *l = NULL;
	struct lu f = { NULL };
	int err = factor_square(op, A, false, &f);

	if (!err) {
		diagonal = tensor_diagonal(f.lu, 0, -2, -1);
		s = tensor_mul(tensor_prod_dim(tensor_sgn(diagonal), -1, false),
			       exchange_sign(f.pivots, A->dtype));
		l = tensor_sum_dim(tensor_log(tensor_abs(diagonal)), TENSOR_INTS(-1), false);
	}
	return linalg_leave(
		op, &guard,
		(struct op_result[]){
			{ sign, s }, { logabsdet, l }, { lu, f.lu }, { pivots, f.pivots } },
		4, err);
}

int composite_linalg_slogdet(tensor *A, tensor **sign, tensor **logabsdet)
{
	tensor *lu, *pivots;
	int err = call__linalg_slogdet(A, sign, logabsdet, &lu, &pivots);

	if (err)
		return err;
	tensor_put(lu);
	tensor_put(pivots);
	return 0;
}

/* NaN where the determinant is negative, -inf where it is 0. */
tensor *composite_logdet(tensor *self)
{
	tensor *sign, *logabsdet, *result = NULL;
	struct tensor_scope_guard guard;

	if (composite_linalg_slogdet(self, &sign, &logabsdet) < 0)
		return NULL;
	guard = tensor_scope_enter();
	if (dtype_is_complex(self->dtype))
		result = tensor_add(tensor_log(sign), logabsdet);
	else
		result = tensor_where_scalarself(tensor_eq_scalar(sign, tensor_scalar_int(-1)),
						 tensor_scalar_float((double)NAN), logabsdet);
	result = scope_leave_with(&guard, result);
	tensor_put(sign);
	tensor_put(logabsdet);
	return result;
}
