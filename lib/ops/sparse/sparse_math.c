// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Elementwise operators, and sums of sparse tensors: strided operators on the values,
 * and index arithmetic. */
#include "ops/sparse/sparse.h"

#include "family/cat.h"
#include "family/index.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/sparse.h"
#include "family/view.h"

#include <stdio.h>

/* Of one shape. Those of a device are compared by address alone, because the host would wait for more. */
static bool same_indices(const tensor *a, const tensor *b)
{
	return a->data == b->data ||
	       (!is_on_device(a) && !memcmp(a->data, b->data, a->numel * sizeof(int64_t)));
}

/* True if both have the same indices in the same order; false if that is not known. */
static bool same_pattern(const tensor *a, const tensor *b)
{
	const struct sparse *s = sparse_of(a), *t = sparse_of(b);

	if (a->layout != b->layout || s->nnz != t->nnz || s->sparse_dim != t->sparse_dim)
		return false;
	return is_csr(a) ? same_indices(s->crow, t->crow) && same_indices(s->col, t->col) :
			   same_indices(s->indices, t->indices);
}

/* Return a new result, or make self the result in place. Consumes t. */
static int return_result(const struct tensor_op *op, tensor **out, tensor *t)
{
	char text[SHAPE_TEXT];
	int err = 0;

	if (!t)
		return error_code();
	if (op->variant == VARIANT_FUNCTION) {
		*out = t;
		return 0;
	}
	if (op->variant == VARIANT_OUT)
		err = tensor_fail(EOPNOTSUPP,
				  "%s: the out form is not supported for sparse tensors",
				  op->schema.name);
	else if (t->layout != (*out)->layout)
		err = tensor_fail(EINVAL, "%s: the result has layout %s, self has %s",
				  op->schema.name, tensor_layout_name(t->layout),
				  tensor_layout_name((*out)->layout));
	else if (t->dtype != (*out)->dtype || !sizes_equal(t, *out))
		err = tensor_fail(EINVAL, "%s: the result is %s %s, self %s %s", op->schema.name,
				  tensor_dtype_name(t->dtype),
				  format_sizes(t->sizes, t->ndim, text, sizeof(text)),
				  tensor_dtype_name((*out)->dtype), SHAPE_STR(*out));
	else
		sparse_become(*out, t);
	tensor_put(t);
	return err;
}

/* ---- one operand ---- */

/* The operator's functional form, used on strided values: abs for abs_. */
static const struct tensor_op *functional(const struct tensor_op *op)
{
	char name[64];
	int len = (int)strlen(op->name) - (op->variant == VARIANT_INPLACE);

	if (op->variant == VARIANT_FUNCTION)
		return op;
	snprintf(name, sizeof(name), "%.*s", len, op->name);
	return tensor_op_find(name);
}

static tensor *apply(const struct tensor_op *op, const tensor *self, tensor *values)
{
	typedef tensor *(*unary)(tensor * self);
	const struct tensor_op *f = functional(op);
	tensor *result, *t;

	if (!f)
		return tensor_fail_null(EOPNOTSUPP,
					"%s: this form is not supported for sparse tensors",
					op->schema.name);
	result = ((unary)f->call[backend_key(values)])(values);
	t = result ? sparse_with_values(self, result) : NULL;
	tensor_put(result);
	return t;
}

/* f(a + b) = f(a) + f(b): duplicate indices need not be coalesced. */
int op_sparse_linear(const struct tensor_op *op, tensor **out, tensor *self)
{
	return return_result(op, out, apply(op, self, sparse_of(self)->values));
}

/* Requires f(0) = 0. */
int op_sparse_unary(const struct tensor_op *op, tensor **out, tensor *self)
{
	tensor *full = is_csr(self) ? tensor_get(self) : sparse_coalesced(self), *t;

	t = full ? apply(op, full, sparse_of(full)->values) : NULL;
	tensor_put(full);
	return return_result(op, out, t);
}

int op_sparse_scalar(const struct tensor_op *op, tensor **out, tensor *self, tensor_scalar other)
{
	typedef tensor *(*binary)(tensor * self, tensor_scalar other);
	const struct tensor_op *f = op->name[0] == 'm' ? &entry_mul_Scalar : &entry_div_Scalar;
	const unsigned key = backend_key(sparse_of(self)->values);
	tensor *values = ((binary)f->call[key])(sparse_of(self)->values, other), *t;

	t = values ? sparse_with_values(self, values) : NULL;
	tensor_put(values);
	return return_result(op, out, t);
}

/* ---- addition ---- */

static tensor *scaled(tensor *values, tensor_scalar alpha, enum tensor_dtype dtype)
{
	tensor *t = operand_cast(values, dtype), *result;

	if (!t || (alpha.kind <= TENSOR_SCALAR_INT ? alpha.i == 1 : alpha.d == 1))
		return t;
	result = call_mul_Scalar(t, alpha);
	tensor_put(t);
	return result;
}

/* Concatenate the elements of both operands. */
static tensor *concatenate(const tensor *a, const tensor *b, tensor *va, tensor *vb)
{
	const struct sparse *s = sparse_of(a), *t = sparse_of(b);
	tensor *both[] = { s->indices, t->indices }, *values[] = { va, vb };
	tensor *indices = call_cat((tensor_list){ both, 2 }, 1);
	tensor *v = call_cat((tensor_list){ values, 2 }, 0);
	tensor *result = sparse_new_coo(sizes_of(a), indices, v, false);

	tensor_put(indices);
	tensor_put(v);
	return result;
}

/*
 * The sum of coalesced operands whose patterns differ, values va and vb of one dtype: their keys are merged, and the values of equal keys
 * are added as coalesce adds them.
 */
static tensor *add_merged(const tensor *a, const tensor *b, tensor *va, tensor *vb)
{
	int64_t n = sparse_of(a)->nnz + sparse_of(b)->nnz, runs;
	tensor *ka = sparse_new_keys(a), *kb = ka ? sparse_new_keys(b) : NULL, *both[] = { va, vb };
	tensor *keys = sparse_new_i64(n), *order = sparse_new_i64(n),
	       *starts = sparse_new_i64(n + 1);
	tensor *values = call_cat((tensor_list){ both, 2 }, 0), *sums = NULL, *like = NULL,
	       *t = NULL;

	if (kb && keys && order && starts && values)
		like = sparse_with_values(a, va);
	if (like) {
		runs = sparse_merge(i64_data(keys), i64_data(order), i64_data(starts), i64_data(ka),
				    ka->numel, i64_data(kb), kb->numel);
		sums = sparse_sum_values(values, order, starts, runs);
	}
	if (sums)
		t = sparse_from_keys(like, i64_data(keys), sums);
	tensor_put(ka);
	tensor_put(kb);
	tensor_put(keys);
	tensor_put(order);
	tensor_put(starts);
	tensor_put(values);
	tensor_put(sums);
	tensor_put(like);
	return t;
}

static tensor *add_values(const tensor *self, tensor *a, tensor *b)
{
	tensor *values = call_add_Tensor(a, b, tensor_scalar_int(1)), *t;

	t = values ? sparse_with_values(self, values) : NULL;
	tensor_put(values);
	return t;
}

/* self + alpha * other, both of one layout. */
static tensor *add_sparse(tensor *self, tensor *other, tensor_scalar alpha)
{
	enum tensor_dtype dtype = tensor_promote_types(self->dtype, other->dtype);
	const struct sparse *s = sparse_of(self), *t = sparse_of(other);
	tensor *a = dtype ? operand_cast(s->values, dtype) : NULL;
	tensor *b = dtype ? scaled(t->values, alpha, dtype) : NULL;
	tensor *result = NULL, *both, *csr;

	if (!a || !b)
		goto out;
	if (s->coalesced && t->coalesced && same_pattern(self, other)) {
		result = add_values(self, a, b);
	} else if (s->coalesced && t->coalesced && !is_on_device(self)) {
		result = add_merged(self, other, a, b);
	} else if (is_coo(self)) {
		both = concatenate(self, other, a, b);
		result = both && s->coalesced && t->coalesced ? sparse_coalesced(both) :
			 both				      ? tensor_get(both) :
								NULL;
		tensor_put(both);
	} else {
		tensor *x = sparse_coalesced(self), *y = sparse_coalesced(other);

		csr = x && y ? add_sparse(x, y, alpha) : NULL;
		result = csr ? sparse_to_csr(csr) : NULL;
		tensor_put(csr);
		tensor_put(x);
		tensor_put(y);
	}
out:
	tensor_put(a);
	tensor_put(b);
	return result;
}

/* dense + alpha * sparse; the result is strided. */
static int add_to_dense(const struct tensor_op *op, tensor **out, tensor *dense, tensor *sparse,
			tensor_scalar dense_factor, tensor_scalar sparse_factor)
{
	tensor *full = kernel_sparse_to_dense(sparse, TENSOR_DTYPE_NONE), *d = NULL, *t = NULL;

	if (*out && (*out)->ext) {
		tensor_put(full);
		return tensor_fail(EINVAL, "%s: the result is strided, %s is not", op->schema.name,
				   op->variant == VARIANT_OUT ? "out" : "self");
	}
	if (full)
		d = scaled(dense, dense_factor, dense->dtype);
	if (d && op->variant == VARIANT_FUNCTION)
		t = *out = call_add_Tensor(d, full, sparse_factor);
	else if (d && op->variant == VARIANT_INPLACE)
		t = call_add__Tensor(*out, full, sparse_factor);
	else if (d)
		t = call_add_out(*out, d, full, sparse_factor);
	tensor_put(d);
	tensor_put(full);
	return t ? 0 : error_code();
}

int op_sparse_add(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		  tensor_scalar alpha)
{
	if (operand_check_device(op->schema.name, self, other) < 0)
		return error_code();
	if (!is_sparse(self))
		return add_to_dense(op, out, self, other, tensor_scalar_int(1), alpha);
	if (!is_sparse(other))
		return add_to_dense(op, out, other, self, alpha, tensor_scalar_int(1));
	if (!sizes_equal(self, other) || self->layout != other->layout ||
	    sparse_of(self)->sparse_dim != sparse_of(other)->sparse_dim)
		return tensor_fail(EINVAL,
				   "%s: sparse operands must have one shape, layout and number "
				   "of sparse dimensions, got %s and %s",
				   op->schema.name, SHAPE_STR(self), SHAPE_STR(other));
	return return_result(op, out, add_sparse(self, other, alpha));
}

int op_sparse_sub(const struct tensor_op *op, tensor **out, tensor *self, tensor *other,
		  tensor_scalar alpha)
{
	if (alpha.kind >= TENSOR_SCALAR_FLOAT) {
		alpha.d = -alpha.d;
		alpha.imag = -alpha.imag;
	} else {
		alpha = tensor_scalar_int(-alpha.i);
	}
	if (!is_sparse(self) && op->variant != VARIANT_INPLACE && self->dtype == TENSOR_BOOL)
		return tensor_fail(EOPNOTSUPP, "%s: bool", op->schema.name);
	return op_sparse_add(op, out, self, other, alpha);
}

/* ---- multiplication ---- */

static bool is_scalar(const tensor *t)
{
	return !t->ext && t->numel == 1 && !t->ndim;
}

/* Multiply by a 0-d tensor, with the promotion rules of scalars. */
static tensor *scale_by(const struct tensor_op *op, tensor *self, tensor *number)
{
	bool product = op->name[0] == 'm';
	tensor *values = product ? call_mul_Tensor(sparse_of(self)->values, number) :
				   call_div_Tensor(sparse_of(self)->values, number);
	tensor *t = values ? sparse_with_values(self, values) : NULL;

	tensor_put(values);
	return t;
}

/* Product at the indices that both operands have. */
static tensor *intersect(tensor *a, tensor *b)
{
	tensor *x = sparse_coalesced(a), *y = sparse_coalesced(b), *vb = NULL, *at = NULL;
	tensor *kx = NULL, *ky = NULL, *ix = NULL, *va = NULL, *v = NULL, *result = NULL,
	       *keep = NULL, *where = NULL;
	int64_t n = 0;

	if (x && y && is_on_device(a)) {
		result = sparse_intersect_on_device(x, y);
		goto out;
	}
	kx = x ? sparse_new_keys(x) : NULL;
	ky = y ? sparse_new_keys(y) : NULL;
	if (!kx || !ky || !(at = sparse_new_i64(kx->numel)) || !(keep = sparse_new_i64(kx->numel)))
		goto out;
	sparse_find(i64_data(at), i64_data(kx), kx->numel, i64_data(ky), ky->numel);
	for (int64_t i = 0; i < kx->numel; i++)
		if (i64_data(at)[i] >= 0) {
			i64_data(at)[n] = i64_data(at)[i];
			i64_data(keep)[n++] = i;
		}
	where = call_slice_Tensor(keep, 0, 0, n, 1);
	ix = where ? call_index_select(sparse_of(x)->indices, 1, where) : NULL;
	va = ix ? call_index_select(sparse_of(x)->values, 0, where) : NULL;
	tensor_put(where);
	where = va ? call_slice_Tensor(at, 0, 0, n, 1) : NULL;
	vb = where ? call_index_select(sparse_of(y)->values, 0, where) : NULL;
	v = vb ? call_mul_Tensor(va, vb) : NULL;
	result = v ? sparse_new_coo(sizes_of(a), ix, v, true) : NULL;
out:
	tensor_put(x);
	tensor_put(y);
	tensor_put(kx);
	tensor_put(ky);
	tensor_put(at);
	tensor_put(keep);
	tensor_put(where);
	tensor_put(ix);
	tensor_put(va);
	tensor_put(vb);
	tensor_put(v);
	return result;
}

/* sparse * dense; the result has the indices of the sparse operand. */
static tensor *by_dense(tensor *sparse, tensor *dense)
{
	tensor *same = call_expand(dense, sizes_of(sparse)), *there, *values = NULL, *t = NULL;

	there = same ? kernel_sparse_mask(same, sparse) : NULL;
	if (there)
		values = call_mul_Tensor(sparse_of(sparse)->values, sparse_of(there)->values);
	if (values)
		t = sparse_with_values(sparse, values);
	tensor_put(same);
	tensor_put(there);
	tensor_put(values);
	return t;
}

static tensor *multiply(tensor *self, tensor *other)
{
	tensor *coo, *t;

	if (!is_sparse(self))
		return by_dense(other, self);
	if (!is_sparse(other))
		return by_dense(self, other);
	if (!sizes_equal(self, other) || self->layout != other->layout ||
	    sparse_of(self)->sparse_dim != sparse_of(other)->sparse_dim)
		return tensor_fail_null(EINVAL,
					"mul: sparse operands must have one shape, layout and "
					"number of sparse dimensions, got %s and %s",
					SHAPE_STR(self), SHAPE_STR(other));
	coo = intersect(self, other);
	if (is_coo(self) || !coo)
		return coo;
	t = sparse_to_csr(coo);
	tensor_put(coo);
	return t;
}

int op_sparse_mul(const struct tensor_op *op, tensor **out, tensor *self, tensor *other)
{
	if (is_scalar(other))
		return return_result(op, out, scale_by(op, self, other));
	if (is_scalar(self))
		return return_result(op, out, scale_by(op, other, self));
	if (operand_check_device(op->schema.name, self, other) < 0)
		return error_code();
	return return_result(op, out, multiply(self, other));
}

int op_sparse_div(const struct tensor_op *op, tensor **out, tensor *self, tensor *other)
{
	if (!is_sparse(self) || !is_scalar(other))
		return tensor_fail(EOPNOTSUPP,
				   "%s: a sparse tensor can be divided by a number, got %s",
				   op->schema.name, SHAPE_STR(other));
	return return_result(op, out, scale_by(op, self, other));
}

/* ---- sums ---- */

int op_sparse_sum(const struct tensor_op *op, tensor **out, tensor *self, enum tensor_dtype dtype)
{
	*out = call_sum(sparse_of(self)->values, dtype);
	return *out ? 0 : error_code();
}

/* Remove the dimensions in the mask from the indices (or set them to 0); duplicates then add up. */
static tensor *without_dims(const tensor *self, uint32_t dims, bool keepdim,
			    enum tensor_dtype dtype)
{
	const struct sparse *s = sparse_of(self);
	int64_t sizes[TENSOR_MAX_DIMS], dense[TENSOR_MAX_DIMS];
	int n = 0, ndense = 0, nsparse = 0, from[TENSOR_MAX_DIMS];
	tensor *indices, *values, *t = NULL;

	for (int d = 0; d < self->ndim; d++) {
		bool sum = dims >> d & 1;

		if (sum && d >= s->sparse_dim)
			dense[ndense++] = d - s->sparse_dim + 1;
		if (!sum || keepdim)
			sizes[n++] = sum ? 1 : self->sizes[d];
		if (d < s->sparse_dim && (!sum || keepdim))
			from[nsparse++] = sum ? -1 : d;
	}
	values = ndense ? call_sum_dim_IntList(s->values, (tensor_ints){ dense, ndense }, keepdim,
					       dtype) :
			  operand_cast(s->values, dtype);
	indices = sparse_rows_of_indices(s->indices, from, nsparse);
	t = sparse_new_coo((tensor_ints){ sizes, n }, indices, values, false);
	tensor_put(values);
	tensor_put(indices);
	return t;
}

int op_sparse_sum_dim(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints dim,
		      bool keepdim, enum tensor_dtype dtype)
{
	enum tensor_dtype common = dtype ? dtype : self->dtype;
	uint32_t dims = 0, all = (1u << self->ndim) - 1;
	tensor *t, *full;

	if (sparse_need_coo(op->schema.name, self) < 0)
		return error_code();
	if (!dtype)
		common = op_result_dtype(op, &common);
	for (int64_t i = 0; i < dim.len; i++) {
		int d = wrap_dim(op->schema.name, dim.data[i], self->ndim);

		if (d < 0)
			return error_code();
		dims |= 1u << d;
	}
	if (dim.len <= 0)
		dims = all;
	t = without_dims(self, dims & all, keepdim, common);
	full = t ? sparse_coalesced(t) : NULL;
	tensor_put(t);
	/* A 0-d result is strided. */
	if (full && !full->ndim) {
		t = full;
		full = kernel_sparse_to_dense(t, TENSOR_DTYPE_NONE);
		tensor_put(t);
		*out = full;
		return full ? 0 : error_code();
	}
	return return_result(op, out, full);
}
