// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of distances between rows; cdist, pdist, pairwise_distance and
 * cosine_similarity. */
#include "ops/nn/norm.h"

#include "kernels/abi/distance.h"

#include "family/copy.h"
#include "family/distance.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/stat.h"
#include "family/ternary.h"
#include "family/view.h"

#include <math.h>

static int check_p(const char *op, double p)
{
	return p >= 0 ? 0 : tensor_fail(EINVAL, "%s: p must not be negative, got %g", op, p);
}

/* ---- cdist ---- */

/* Store the broadcast batch sizes, then n and m. Returns the rank of the batch, or -1. */
static int batch_sizes(const struct tensor_op *op, const tensor *x1, const tensor *x2,
		       int64_t *sizes)
{
	tensor a, b;
	int n;

	if (x1->ndim < 2 || x2->ndim < 2 || x1->sizes[x1->ndim - 1] != x2->sizes[x2->ndim - 1] ||
	    x1->dtype != x2->dtype) {
		tensor_fail(
			EINVAL,
			"%s: x1 [.., n, d] and x2 [.., m, d] of one dtype are needed, got %s %s "
			"and %s %s",
			op->schema.name, tensor_dtype_name(x1->dtype), SHAPE_STR(x1),
			tensor_dtype_name(x2->dtype), SHAPE_STR(x2));
		return -1;
	}
	a = *x1;
	b = *x2;
	a.ndim -= 2;
	b.ndim -= 2;
	n = iter_broadcast_sizes(op->schema.name, &a, &b, sizes);
	if (n < 0)
		return -1;
	sizes[n] = x1->sizes[x1->ndim - 2];
	sizes[n + 1] = x2->sizes[x2->ndim - 2];
	return n;
}

/* x with its batch expanded, contiguous. Owned. */
static tensor *expanded(tensor *x, const int64_t *batch, int n)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *view, *result;

	memcpy(sizes, batch, n * sizeof(*sizes));
	sizes[n] = x->sizes[x->ndim - 2];
	sizes[n + 1] = x->sizes[x->ndim - 1];
	view = call_expand(x, (tensor_ints){ sizes, n + 2 });
	result = view ? operand_contiguous(view) : NULL;
	tensor_put(view);
	return result;
}

static int64_t product(const int64_t *sizes, int n)
{
	int64_t count = 1;

	for (int i = 0; i < n; i++)
		count *= sizes[i];
	return count;
}

int op_cdist_forward(const struct tensor_op *op, tensor **out, tensor *x1, tensor *x2, double p,
		     int64_t compute_mode)
{
	cdist_kernel fn = (cdist_kernel)op_kernel(op, op->kernels, x1);
	const tensor *inputs[] = { x1, x2 };
	int64_t sizes[TENSOR_MAX_DIMS + 2], count, d;
	tensor *a, *b, header[2];
	struct op_output o;
	int n, err;

	if (!fn || check_p(op->schema.name, p) < 0)
		return error_code();
	n = batch_sizes(op, x1, x2, sizes);
	if (n < 0 || output_begin_apart(op, &o, *out, x1->dtype, sizes, n + 2, inputs, 2) < 0)
		return error_code();
	count = product(sizes, n);
	d = x1->sizes[x1->ndim - 1];
	a = expanded(x1, sizes, n);
	b = expanded(x2, sizes, n);
	err = a && b ? fn(o.t, norm_shape(&header[0], a, TENSOR_INTS(count, sizes[n], d)),
			  norm_shape(&header[1], b, TENSOR_INTS(count, sizes[n + 1], d)), p) :
		       error_code();
	tensor_put(a);
	tensor_put(b);
	return output_end(op, &o, out, err);
}

int op_cdist_backward(const struct tensor_op *op, tensor **out, tensor *grad_output, tensor *x1,
		      tensor *x2, double p, tensor *cdist)
{
	cdist_backward_kernel fn = (cdist_backward_kernel)op_kernel(op, op->kernels, x1);
	const tensor *inputs[] = { x1, x2, grad_output, cdist };
	int64_t sizes[TENSOR_MAX_DIMS + 2], shape[TENSOR_MAX_DIMS], count, d;
	tensor *a, *b, *g, *r, header[2];
	struct op_output o;
	int n, err;

	if (!fn || check_p(op->schema.name, p) < 0)
		return error_code();
	n = batch_sizes(op, x1, x2, sizes);
	if (n < 0)
		return error_code();
	if (!sizes_equal(grad_output, cdist) || grad_output->dtype != x1->dtype ||
	    cdist->dtype != x1->dtype || cdist->ndim != n + 2 ||
	    memcmp(cdist->sizes, sizes, (n + 2) * sizeof(*sizes)))
		return tensor_fail(EINVAL,
				   "%s: grad_output and cdist must be like the distances of x1 and "
				   "x2, got %s and %s",
				   op->schema.name, SHAPE_STR(grad_output), SHAPE_STR(cdist));
	count = product(sizes, n);
	d = x1->sizes[x1->ndim - 1];
	memcpy(shape, sizes, (n + 1) * sizeof(*shape));
	shape[n + 1] = d;
	if (output_begin_apart(op, &o, *out, x1->dtype, shape, n + 2, inputs, 4) < 0)
		return error_code();
	a = expanded(x1, sizes, n);
	b = expanded(x2, sizes, n);
	g = operand_contiguous(grad_output);
	r = operand_contiguous(cdist);
	err = a && b && g && r ?
		      fn(o.t, g, norm_shape(&header[0], a, TENSOR_INTS(count, sizes[n], d)),
			 norm_shape(&header[1], b, TENSOR_INTS(count, sizes[n + 1], d)), p, r) :
		      error_code();
	tensor_put(a);
	tensor_put(b);
	tensor_put(g);
	tensor_put(r);
	return output_end(op, &o, out, err);
}

tensor *composite_cdist(tensor *x1, tensor *x2, double p, int64_t compute_mode)
{
	if (compute_mode != TENSOR_NONE && (compute_mode < 0 || compute_mode > 2))
		return tensor_fail_null(EINVAL, "cdist: compute_mode must be 0, 1 or 2, got %lld",
					(long long)compute_mode);
	return call__cdist_forward(x1, x2, p, compute_mode);
}

/* ---- pdist ---- */

static int check_rows(const struct tensor_op *op, const tensor *self, double p)
{
	if (self->ndim != 2)
		return tensor_fail(EINVAL, "%s: self must be a matrix, got shape %s",
				   op->schema.name, SHAPE_STR(self));
	return check_p(op->schema.name, p);
}

int op_pdist_forward(const struct tensor_op *op, tensor **out, tensor *self, double p)
{
	pdist_kernel fn = (pdist_kernel)op_kernel(op, op->kernels, self);
	const tensor *inputs[] = { self };
	struct op_output o;
	int64_t n, pairs;
	tensor *x;
	int err;

	if (!fn || check_rows(op, self, p) < 0)
		return error_code();
	n = self->sizes[0];
	pairs = n * (n - 1) / 2;
	if (output_begin_apart(op, &o, *out, self->dtype, &pairs, 1, inputs, 1) < 0)
		return error_code();
	x = operand_contiguous(self);
	err = x ? fn(o.t, x, p) : error_code();
	tensor_put(x);
	return output_end(op, &o, out, err);
}

int op_pdist_backward(const struct tensor_op *op, tensor **out, tensor *grad_output, tensor *self,
		      double p, tensor *pdist)
{
	pdist_backward_kernel fn = (pdist_backward_kernel)op_kernel(op, op->kernels, self);
	const tensor *inputs[] = { self, grad_output, pdist };
	tensor *x, *g, *r;
	struct op_output o;
	int64_t pairs;
	int err;

	if (!fn || check_rows(op, self, p) < 0)
		return error_code();
	pairs = self->sizes[0] * (self->sizes[0] - 1) / 2;
	if (grad_output->numel != pairs || pdist->numel != pairs ||
	    grad_output->dtype != self->dtype || pdist->dtype != self->dtype)
		return tensor_fail(EINVAL,
				   "%s: grad_output and pdist must have %lld elements, got %s and "
				   "%s",
				   op->schema.name, (long long)pairs, SHAPE_STR(grad_output),
				   SHAPE_STR(pdist));
	if (output_begin_apart(op, &o, *out, self->dtype, self->sizes, 2, inputs, 3) < 0)
		return error_code();
	x = operand_contiguous(self);
	g = operand_contiguous(grad_output);
	r = operand_contiguous(pdist);
	err = x && g && r ? fn(o.t, g, x, p, r) : error_code();
	tensor_put(x);
	tensor_put(g);
	tensor_put(r);
	return output_end(op, &o, out, err);
}

tensor *composite_pdist(tensor *self, double p)
{
	return call__pdist_forward(self, p);
}

/* ---- along one dimension ---- */

tensor *composite_pairwise_distance(tensor *x1, tensor *x2, double p, double eps, bool keepdim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int64_t dim = (x1->ndim > x2->ndim ? x1->ndim : x2->ndim) - 1;
	tensor *d = tensor_add_scalar(tensor_sub(x1, x2), tensor_scalar_float(eps));

	return scope_leave_with(&guard, tensor_norm_dim(d, tensor_scalar_float(p), TENSOR_INTS(dim),
							keepdim));
}

static tensor *unit(tensor *x, int64_t dim, double eps)
{
	tensor *length = tensor_norm_dim(x, tensor_scalar_float(2), TENSOR_INTS(dim), true);

	return tensor_div(x, tensor_clamp_min(length, tensor_scalar_float(eps)));
}

tensor *composite_cosine_similarity(tensor *x1, tensor *x2, int64_t dim, double eps)
{
	enum tensor_dtype dtype = tensor_result_type(x1, x2);
	struct tensor_scope_guard guard;
	int64_t sizes[TENSOR_MAX_DIMS];
	int n = iter_broadcast_sizes("cosine_similarity", x1, x2, sizes);
	tensor *a, *b;

	if (n < 0)
		return NULL;
	if (!dtype_is_float(dtype))
		return tensor_fail_null(EINVAL,
					"cosine_similarity: a floating dtype is needed, got %s",
					tensor_dtype_name(dtype));
	guard = tensor_scope_enter();
	a = tensor_expand(tensor_to(x1, TENSOR_OPTIONS(.dtype = dtype)), (tensor_ints){ sizes, n });
	b = tensor_expand(tensor_to(x2, TENSOR_OPTIONS(.dtype = dtype)), (tensor_ints){ sizes, n });
	return scope_leave_with(&guard,
				tensor_sum_dim(tensor_mul(unit(a, dim, eps), unit(b, dim, eps)),
					       TENSOR_INTS(dim), false));
}
