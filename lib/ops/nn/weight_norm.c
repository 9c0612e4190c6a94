// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Weight normalization: a weight as a direction v and norms g. Composed of other operators, which
 * differentiate it. */
#include "ops/op.h"

#include "family/binary.h"
#include "family/norm.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/stat.h"
#include "family/unary.h"

/* All dimensions but `dim`. */
static tensor_ints others(const tensor *t, int dim, int64_t *dims)
{
	int n = 0;

	for (int i = 0; i < t->ndim; i++)
		if (i != dim)
			dims[n++] = i;
	return (tensor_ints){ dims, n };
}

tensor *composite_norm_except_dim(tensor *v, int64_t pow, int64_t dim)
{
	int64_t dims[TENSOR_MAX_DIMS];

	if (dim == -1)
		return call_linalg_vector_norm(v, tensor_scalar_int(pow), TENSOR_NO_INTS, false,
					       TENSOR_DTYPE_NONE);
	if (dim < -1)
		dim += v->ndim;
	if (dim < 0 || dim >= v->ndim)
		return tensor_fail_null(EINVAL, "norm_except_dim: dim %lld of shape %s",
					(long long)dim, SHAPE_STR(v));
	/* Each element of a vector is its own norm: no dimension is left to reduce. */
	if (v->ndim == 1)
		return pow ? call_abs(v) :
			     tensor_fail_null(EINVAL,
					      "norm_except_dim: pow must not be 0 for a vector");
	return call_linalg_vector_norm(v, tensor_scalar_int(pow), others(v, (int)dim, dims), true,
				       TENSOR_DTYPE_NONE);
}

tensor *composite_weight_norm(tensor *v, tensor *g, int64_t dim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard,
				tensor_mul(v, tensor_div(g, tensor_norm_except_dim(v, 2, dim))));
}

static int check_ends(const char *op, const tensor *v, int64_t dim)
{
	if (v->ndim && (dim == 0 || dim == v->ndim - 1))
		return 0;
	return tensor_fail(EINVAL, "%s: dim must be the first or the last of shape %s, got %lld",
			   op, SHAPE_STR(v), (long long)dim);
}

/* Close the scope and pass both results to the caller. */
static int return_pair(struct tensor_scope_guard *guard, tensor *a, tensor *b, tensor **first,
		       tensor **second)
{
	int err = a && b ? 0 : error_code();

	*first = err ? NULL : tensor_get(a);
	*second = err ? NULL : tensor_get(b);
	scope_leave(guard);
	return err;
}

int composite_weight_norm_interface(tensor *v, tensor *g, int64_t dim, tensor **weight,
				    tensor **norms)
{
	struct tensor_scope_guard guard;
	tensor *norm;

	*weight = *norms = NULL;
	if (check_ends("_weight_norm_interface", v, dim) < 0)
		return error_code();
	guard = tensor_scope_enter();
	norm = tensor_norm_except_dim(v, 2, dim);
	return return_pair(&guard, tensor_mul(v, tensor_div(g, norm)), norm, weight, norms);
}

int composite_weight_norm_interface_backward(tensor *grad_w, tensor *saved_v, tensor *saved_g,
					     tensor *saved_norms, int64_t dim, tensor **grad_v,
					     tensor **grad_g)
{
	int64_t dims[TENSOR_MAX_DIMS];
	struct tensor_scope_guard guard;
	tensor *along, *v;

	*grad_v = *grad_g = NULL;
	if (check_ends("_weight_norm_interface_backward", saved_v, dim) < 0)
		return error_code();
	guard = tensor_scope_enter();
	/* The component of the gradient along each vector changes g, the rest changes v. */
	along = tensor_mul(grad_w, saved_v);
	if (saved_v->ndim > 1)
		along = tensor_sum_dim(along, others(saved_v, (int)dim, dims), true);
	along = tensor_div(along, saved_norms);
	v = tensor_sub(grad_w, tensor_mul(saved_v, tensor_div(along, saved_norms)));
	return return_pair(&guard, tensor_mul(tensor_div(saved_g, saved_norms), v), along, grad_v,
			   grad_g);
}
