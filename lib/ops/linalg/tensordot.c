// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products along chosen dimensions: tensordot, inner, kron, cross, and chains of matrices. */
#include "ops/op.h"

#include "family/cat.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/reduce.h"
#include "family/view.h"

/* ---- tensordot ---- */

/* The dimensions of one operand, divided into kept and contracted ones. */
struct sides {
	int64_t dims[TENSOR_MAX_DIMS], kept_sizes[TENSOR_MAX_DIMS];
	int kept, summed;
	int64_t rows;
};

static int sort_dims(struct sides *s, const tensor *t, const int *dims, int n, bool summed_first)
{
	uint32_t mask = 0;
	int at = summed_first ? n : 0;

	*s = (struct sides){ .summed = n, .rows = 1 };
	for (int i = 0; i < n; i++) {
		if (mask >> dims[i] & 1)
			return tensor_fail(EINVAL, "tensordot: dimension %d of %s is named twice",
					   dims[i], SHAPE_STR(t));
		mask |= 1u << dims[i];
		s->dims[(summed_first ? 0 : t->ndim - n) + i] = dims[i];
	}
	for (int d = 0; d < t->ndim; d++) {
		if (mask >> d & 1)
			continue;
		s->dims[at++] = d;
		s->kept_sizes[s->kept++] = t->sizes[d];
		s->rows *= t->sizes[d];
	}
	return 0;
}

/* Check the contracted dimensions. Where one has size 1, the other is summed first, because the
 * first broadcasts. */
static int pair_dims(tensor **a, tensor **b, tensor_ints dims_a, tensor_ints dims_b, int *da,
		     int *db, int64_t *size)
{
	*size = 1;
	for (int64_t i = 0; i < dims_a.len; i++) {
		da[i] = wrap_dim("tensordot", dims_a.data[i], (*a)->ndim);
		db[i] = wrap_dim("tensordot", dims_b.data[i], (*b)->ndim);
		if (da[i] < 0 || db[i] < 0)
			return error_code();
		if ((*a)->sizes[da[i]] == 1 && (*b)->sizes[db[i]] != 1)
			*b = tensor_sum_dim_opt(*b, TENSOR_INTS(db[i]), true, (*b)->dtype);
		else if ((*b)->sizes[db[i]] == 1 && (*a)->sizes[da[i]] != 1)
			*a = tensor_sum_dim_opt(*a, TENSOR_INTS(da[i]), true, (*a)->dtype);
		if (!*a || !*b)
			return error_code();
		if ((*a)->sizes[da[i]] != (*b)->sizes[db[i]])
			return tensor_fail(EINVAL,
					   "tensordot: dimension %d of self %s and %d of "
					   "other %s have different sizes",
					   da[i], SHAPE_STR(*a), db[i], SHAPE_STR(*b));
		*size *= (*a)->sizes[da[i]];
	}
	return 0;
}

static tensor *tensordot(tensor *self, tensor *other, tensor_ints dims_self, tensor_ints dims_other)
{
	int da[TENSOR_MAX_DIMS], db[TENSOR_MAX_DIMS];
	int64_t sizes[2 * TENSOR_MAX_DIMS], k;
	struct sides a, b;
	tensor *left, *right;

	if (dims_self.len != dims_other.len || dims_self.len > self->ndim ||
	    dims_other.len > other->ndim)
		return tensor_fail_null(EINVAL,
					"tensordot: pairs of dimensions are needed, got %lld "
					"of self %s and %lld of other %s",
					(long long)dims_self.len, SHAPE_STR(self),
					(long long)dims_other.len, SHAPE_STR(other));
	if (pair_dims(&self, &other, dims_self, dims_other, da, db, &k) < 0 ||
	    sort_dims(&a, self, da, (int)dims_self.len, false) < 0 ||
	    sort_dims(&b, other, db, (int)dims_self.len, true) < 0)
		return NULL;
	if (a.kept + b.kept > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL,
					"tensordot: the result has %d dimensions, more than "
					"%d",
					a.kept + b.kept, TENSOR_MAX_DIMS);
	left = tensor_reshape(tensor_permute(self, (tensor_ints){ a.dims, self->ndim }),
			      TENSOR_INTS(a.rows, k));
	right = tensor_reshape(tensor_permute(other, (tensor_ints){ b.dims, other->ndim }),
			       TENSOR_INTS(k, b.rows));
	memcpy(sizes, a.kept_sizes, a.kept * sizeof(*sizes));
	memcpy(sizes + a.kept, b.kept_sizes, b.kept * sizeof(*sizes));
	return tensor_reshape(tensor_mm(left, right), (tensor_ints){ sizes, a.kept + b.kept });
}

tensor *composite_tensordot(tensor *self, tensor *other, tensor_ints dims_self,
			    tensor_ints dims_other)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, tensordot(self, other, dims_self, dims_other));
}

tensor *composite_inner(tensor *self, tensor *other)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *result;

	if (!self->ndim || !other->ndim)
		result = tensor_mul(self, other);
	else if (self->sizes[self->ndim - 1] != other->sizes[other->ndim - 1])
		result = tensor_fail_null(EINVAL,
					  "inner: the last dimensions must have one size, "
					  "got shapes %s and %s",
					  SHAPE_STR(self), SHAPE_STR(other));
	else
		result = tensordot(self, other, TENSOR_INTS(-1), TENSOR_INTS(-1));
	return scope_leave_with(&guard, result);
}

/* ---- kron ---- */

tensor *composite_kron(tensor *self, tensor *other)
{
	int n = self->ndim > other->ndim ? self->ndim : other->ndim;
	int64_t a[TENSOR_MAX_DIMS], b[TENSOR_MAX_DIMS], sizes[TENSOR_MAX_DIMS];
	struct tensor_scope_guard guard;
	tensor *product;

	if (2 * n > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "kron: at most %d dimensions, got shapes %s and %s",
					TENSOR_MAX_DIMS / 2, SHAPE_STR(self), SHAPE_STR(other));
	for (int i = 0; i < n; i++) {
		int da = i - (n - self->ndim), db = i - (n - other->ndim);

		a[2 * i] = da < 0 ? 1 : self->sizes[da];
		b[2 * i + 1] = db < 0 ? 1 : other->sizes[db];
		a[2 * i + 1] = b[2 * i] = 1;
		sizes[i] = a[2 * i] * b[2 * i + 1];
	}
	guard = tensor_scope_enter();
	product = tensor_mul(tensor_reshape(self, (tensor_ints){ a, 2 * n }),
			     tensor_reshape(other, (tensor_ints){ b, 2 * n }));
	return scope_leave_with(&guard, tensor_reshape(product, (tensor_ints){ sizes, n }));
}

/* ---- cross ---- */

/* Roll the vectors along a dimension by k positions. */
static tensor *rolled(tensor *t, int64_t dim, int64_t k)
{
	return tensor_cat(TENSOR_LIST(tensor_narrow(t, dim, k, 3 - k), tensor_narrow(t, dim, 0, k)),
			  dim);
}

static tensor *cross(const char *op, tensor *self, tensor *other, int64_t dim)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor_ints shape = { sizes, self->ndim };
	int d;

	if (self->ndim != other->ndim)
		return tensor_fail_null(EINVAL,
					"%s: self and other must have one rank, got shapes "
					"%s and %s",
					op, SHAPE_STR(self), SHAPE_STR(other));
	d = wrap_dim(op, dim, self->ndim);
	if (d < 0)
		return NULL;
	if (!self->ndim || self->sizes[d] != 3 || other->sizes[d] != 3)
		return tensor_fail_null(EINVAL,
					"%s: dimension %d must have size 3, got shapes %s and "
					"%s",
					op, d, SHAPE_STR(self), SHAPE_STR(other));
	if (iter_broadcast_sizes(op, self, other, sizes) < 0)
		return NULL;
	self = tensor_expand(self, shape);
	other = tensor_expand(other, shape);
	return tensor_sub(tensor_mul(rolled(self, d, 1), rolled(other, d, 2)),
			  tensor_mul(rolled(self, d, 2), rolled(other, d, 1)));
}

tensor *composite_linalg_cross(tensor *self, tensor *other, int64_t dim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, cross("linalg_cross", self, other, dim));
}

/* Without a dimension, the first one of size 3. */
tensor *composite_cross(tensor *self, tensor *other, int64_t dim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	for (int i = 0; dim == TENSOR_NONE && i < self->ndim; i++)
		if (self->sizes[i] == 3)
			dim = i;
	if (dim == TENSOR_NONE)
		return scope_leave_with(&guard, tensor_fail_null(EINVAL,
								 "cross: no dimension of self "
								 "%s has size 3",
								 SHAPE_STR(self)));
	return scope_leave_with(&guard, cross("cross", self, other, dim));
}

/* ---- chains ---- */

#define CHAIN 32

struct chain {
	tensor *t[CHAIN];
	/* split of the product of matrices i to j: the last matrix of its left part */
	int split[CHAIN][CHAIN];
};

/* Dynamic program for the cheapest order of products. Matrix i is sizes[i] by sizes[i + 1]. */
static void order(struct chain *c, const int64_t *sizes, int n)
{
	double cost[CHAIN][CHAIN] = { { 0 } };

	for (int length = 1; length < n; length++)
		for (int i = 0, j = length; j < n; i++, j++)
			for (int k = i; k < j; k++) {
				double sum = cost[i][k] + cost[k + 1][j] +
					     (double)sizes[i] * (double)sizes[k + 1] *
						     (double)sizes[j + 1];

				if (k == i || sum < cost[i][j]) {
					cost[i][j] = sum;
					c->split[i][j] = k;
				}
			}
}

static tensor *chain_product(const struct chain *c, int i, int j)
{
	int k = c->split[i][j];

	return i == j ? c->t[i] : tensor_mm(chain_product(c, i, k), chain_product(c, k + 1, j));
}

static tensor *multi_dot(tensor_list tensors)
{
	int n = (int)tensors.len;
	bool row = tensors.data[0]->ndim == 1, column = tensors.data[n - 1]->ndim == 1;
	int64_t sizes[CHAIN + 1];
	struct chain c;
	tensor *result;

	for (int i = 0; i < n; i++) {
		c.t[i] = tensors.data[i];
		if ((!i && row) || (i == n - 1 && column))
			c.t[i] = tensor_unsqueeze(c.t[i], i ? 1 : 0);
		if (!c.t[i])
			return NULL;
		if (c.t[i]->ndim != 2 || (i && c.t[i]->sizes[0] != sizes[i]))
			return tensor_fail_null(EINVAL,
						"multi_dot: tensor %d does not continue the "
						"chain, got shape %s",
						i, SHAPE_STR(tensors.data[i]));
		sizes[i] = c.t[i]->sizes[0];
		sizes[i + 1] = c.t[i]->sizes[1];
	}
	order(&c, sizes, n);
	result = chain_product(&c, 0, n - 1);
	if (column)
		result = tensor_squeeze_dim(result, 1);
	return row ? tensor_squeeze_dim(result, 0) : result;
}

tensor *composite_multi_dot(tensor_list tensors)
{
	struct tensor_scope_guard guard;

	if (!tensors.len || tensors.len > CHAIN)
		return tensor_fail_null(EINVAL, "multi_dot: 1 to %d tensors, got %lld", CHAIN,
					(long long)tensors.len);
	if (tensors.len == 1)
		return call_alias(tensors.data[0]);
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, multi_dot(tensors));
}
