// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Shared functions of linear algebra: checks, column-major copies, return of results. */
#include "ops/linalg/linalg.h"
#include "ops/snapshot.h"

#include "family/copy.h"
#include "family/linalg.h"
#include "family/reduce.h"
#include "family/unary.h"
#include "family/view.h"

static int return_result(const struct tensor_op *op, const struct op_result *r)
{
	const tensor *inputs[] = { r->made };
	struct op_output o;
	int err;

	if (!*r->out) {
		*r->out = tensor_get(r->made);
		return 0;
	}
	err = output_begin(op, &o, *r->out, r->made->dtype, r->made->sizes, r->made->ndim, inputs,
			   1);
	return err ? err : output_end(op, &o, r->out, operand_copy(o.t, r->made));
}

/* The caller's results must not overlap: they are written one after another. */
static int check_results(const struct tensor_op *op, const struct op_result *results, int n)
{
	for (int i = 0; i < n; i++) {
		if (!results[i].made)
			return error_code();
		for (int j = 0; *results[i].out && j < i; j++)
			if (tensor_overlap(*results[i].out, *results[j].out) != OVERLAP_NONE)
				return tensor_fail(EINVAL, "%s: two results share memory",
						   op->schema.name);
	}
	return 0;
}

int linalg_leave(const struct tensor_op *op, struct tensor_scope_guard *guard,
		 const struct op_result *results, int n, int err)
{
	if (!err)
		err = check_results(op, results, n);
	for (int i = 0; i < n && !err; i++)
		err = return_result(op, &results[i]);
	scope_leave(guard);
	return err;
}

int linalg_check_matrix(const char *op, const tensor *a)
{
	if (!a)
		return error_code();
	if (a->ndim < 2)
		return tensor_fail(EINVAL, "%s: matrices [.., m, n] are needed, got %s", op,
				   SHAPE_STR(a));
	if (!dtype_is_full(a->dtype))
		return tensor_fail(EINVAL, "%s: f32, f64, c64 or c128 is needed, got %s", op,
				   tensor_dtype_name(a->dtype));
	return 0;
}

int linalg_check_square(const char *op, const tensor *a)
{
	int err = linalg_check_matrix(op, a);

	if (!err && a->sizes[a->ndim - 1] != a->sizes[a->ndim - 2])
		err = tensor_fail(EINVAL, "%s: square matrices [.., n, n] are needed, got %s", op,
				  SHAPE_STR(a));
	return err;
}

int linalg_check_system(const char *op, const tensor *a, const tensor *b, bool left)
{
	if (linalg_check_square(op, a) < 0 || linalg_check_matrix(op, b) < 0 ||
	    operand_check_device(op, a, b) < 0)
		return error_code();
	if (a->dtype != b->dtype)
		return tensor_fail(EINVAL, "%s: both must have one dtype, got %s and %s", op,
				   tensor_dtype_name(a->dtype), tensor_dtype_name(b->dtype));
	if (b->sizes[b->ndim - (left ? 2 : 1)] != a->sizes[a->ndim - 1])
		return tensor_fail(EINVAL, "%s: %s does not fit matrices %s", op, SHAPE_STR(b),
				   SHAPE_STR(a));
	return 0;
}

/* Compute strides for column-major matrices. Returns the number of elements. */
static void column_strides(const int64_t *sizes, int ndim, int64_t *strides)
{
	int64_t step = sizes[ndim - 2] * sizes[ndim - 1];

	strides[ndim - 2] = 1;
	strides[ndim - 1] = sizes[ndim - 2];
	for (int d = ndim - 3; d >= 0; d--) {
		strides[d] = step;
		step *= sizes[d];
	}
}

tensor *linalg_columns_new(const tensor *like, enum tensor_dtype dtype, int64_t m, int64_t n)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];

	memcpy(sizes, like->sizes, like->ndim * sizeof(*sizes));
	sizes[like->ndim - 2] = m;
	sizes[like->ndim - 1] = n;
	if (sizes_numel("linalg", sizes, like->ndim) < 0)
		return NULL;
	column_strides(sizes, like->ndim, strides);
	return scope_own(thread(),
			 tensor_new_strided(TENSOR_OPTIONS(.dtype = dtype, .device = like->device),
					    sizes, strides, like->ndim));
}

tensor *linalg_columns(tensor *a)
{
	tensor *t =
		a ? linalg_columns_new(a, a->dtype, a->sizes[a->ndim - 2], a->sizes[a->ndim - 1]) :
		    NULL;

	return t && operand_copy(t, a) == 0 ? t : NULL;
}

tensor *linalg_columns_of(tensor *a)
{
	int64_t strides[TENSOR_MAX_DIMS];

	if (!a)
		return NULL;
	column_strides(a->sizes, a->ndim, strides);
	if (changes_meanwhile(a) || memcmp(strides, a->strides, a->ndim * sizeof(*strides)) != 0)
		return linalg_columns(a);
	return a;
}

tensor *linalg_vectors_new(const tensor *like, enum tensor_dtype dtype, int64_t n)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = like->ndim - 1 - (n < 0);

	memcpy(sizes, like->sizes, ndim * sizeof(*sizes));
	if (n >= 0)
		sizes[ndim - 1] = n;
	return scope_own(thread(), tensor_new(like->device, dtype, sizes, ndim));
}

tensor *linalg_info_new(const tensor *like)
{
	tensor *info = linalg_vectors_new(like, TENSOR_I32, -1);

	return info ? tensor_zero_(info) : NULL;
}

tensor *linalg_expanded(const char *op, tensor *a, const tensor *b)
{
	int na = a->ndim - 2, nb = b->ndim - 2, n = na > nb ? na : nb;
	int64_t sizes[TENSOR_MAX_DIMS];

	for (int i = 1; i <= n; i++) {
		int64_t x = i <= na ? a->sizes[na - i] : 1, y = i <= nb ? b->sizes[nb - i] : 1;

		if (x != y && x != 1 && y != 1)
			return tensor_fail_null(EINVAL,
						"%s: the batches of %s and %s do not broadcast", op,
						SHAPE_STR(a), SHAPE_STR(b));
		sizes[n - i] = x == 1 ? y : x;
	}
	sizes[n] = a->sizes[na];
	sizes[n + 1] = a->sizes[na + 1];
	return tensor_expand(a, (tensor_ints){ sizes, n + 2 });
}

int linalg_system(const char *op, tensor **a, tensor **b)
{
	tensor *x = linalg_columns(linalg_expanded(op, *b, *a));

	*a = x ? linalg_columns_of(linalg_expanded(op, *a, *b)) : NULL;
	*b = x;
	return *a ? 0 : error_code();
}

int linalg_check_finite(const char *op, tensor *a)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *all = tensor_all(tensor_isfinite(a)), *here = all ? operand_on_host(all) : NULL;
	int err = !here			    ? error_code() :
		  *(const bool *)here->data ? 0 :
					      tensor_fail(EDOM,
							  "%s: there are NaN or infinities in the "
							  "matrix",
							  op);

	tensor_put(here);
	scope_leave(&guard);
	return err;
}

int linalg_check_info(const char *op, const tensor *info, const char *why)
{
	tensor *here = operand_on_host((tensor *)info);
	const int32_t *p = here ? (const int32_t *)here->data : NULL;
	int err = here ? 0 : error_code();

	for (int64_t i = 0; i < info->numel && !err; i++)
		if (p[i])
			err = tensor_fail(EDOM, "%s: matrix %lld %s (LAPACK's info %d)", op,
					  (long long)i, why, p[i]);
	tensor_put(here);
	return err;
}
