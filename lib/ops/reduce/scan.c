// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of scans: cumsum, cumprod, logcumsumexp, cummax, cummin; diff. */
#include "ops/reduce/reduce.h"

#include "family/binary.h"
#include "family/copy.h"
#include "family/cat.h"
#include "family/pointwise.h"
#include "family/scan.h"
#include "family/view.h"

static int scan(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		enum tensor_dtype result)
{
	scan_kernel fn = (scan_kernel)op_kernel(op, op->kernels, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	const tensor *inputs[] = { self };
	struct op_output o;
	tensor lines[2];

	if (!fn || d < 0 ||
	    output_begin(op, &o, *out, result, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	return output_end(op, &o, out,
			  fn(operand_as_vector(&lines[0], o.t), operand_as_vector(&lines[1], self),
			     d));
}

int op_cumsum(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
	      enum tensor_dtype dtype)
{
	enum tensor_dtype result = dtype;

	if (!dtype)
		result = dtype_is_integral(self->dtype) ? TENSOR_I64 : self->dtype;
	/* In place, the result has self's dtype. */
	if (op->variant == VARIANT_INPLACE && !dtype)
		result = self->dtype;
	return scan(op, out, self, dim, result);
}

int op_logcumsumexp(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim)
{
	if (dtype_is_integral(self->dtype))
		return tensor_kernel_no_dtype(op->name, self->dtype, "cpu");
	return scan(op, out, self, dim, self->dtype);
}

int op_cummax(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
	      int64_t dim)
{
	scan_index_kernel fn = (scan_index_kernel)op_kernel(op, op->kernels, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	const tensor *inputs[] = { self };
	bool given = *indices;
	struct op_output v, i;
	tensor lines[3];

	if (!fn || d < 0 || reduce_check_apart(op, *values, *indices) < 0)
		return error_code();
	if (output_begin(op, &v, *values, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	if (output_begin(op, &i, *indices, TENSOR_I64, self->sizes, self->ndim, inputs, 1) < 0)
		return output_end(op, &v, values, error_code());
	err = fn(operand_as_vector(&lines[0], v.t), operand_as_vector(&lines[1], i.t),
		 operand_as_vector(&lines[2], self), d);
	err = output_end(op, &i, indices, err);
	err = output_end(op, &v, values, err);
	return reduce_drop_result(indices, given, err);
}

/* ---- differences ---- */

/* Concatenate before, self and after along d; before and after may be NULL. */
static tensor *joined(tensor *before, tensor *self, tensor *after, int d)
{
	tensor *parts[3];
	int n = 0;

	if (before)
		parts[n++] = before;
	parts[n++] = self;
	if (after)
		parts[n++] = after;
	return n == 1 ? self : tensor_cat((tensor_list){ parts, n }, d);
}

/* diff requires prepend and append to fit self: cat alone would skip empty vectors. */
static int check_joined(const tensor *self, const tensor *more, int d)
{
	bool fits = !more || more->ndim == self->ndim;

	for (int i = 0; more && fits && i < self->ndim; i++)
		fits = i == d || more->sizes[i] == self->sizes[i];
	return fits ? 0 :
		      tensor_fail(EINVAL, "diff: %s does not fit %s outside dimension %d",
				  SHAPE_STR(more), SHAPE_STR(self), d);
}

static tensor *difference(tensor *t, int d)
{
	int64_t n = t->sizes[d] - 1;
	tensor *after = tensor_narrow(t, d, 1, n), *before = tensor_narrow(t, d, 0, n);

	return t->dtype == TENSOR_BOOL ? tensor_logical_xor(after, before) :
					 tensor_sub(after, before);
}

tensor *composite_diff(tensor *self, int64_t n, int64_t dim, tensor *prepend, tensor *append)
{
	int d = wrap_dim("diff", dim, self->ndim);
	struct tensor_scope_guard guard;
	tensor *t;

	if (d < 0)
		return NULL;
	if (!self->ndim || n < 0)
		return tensor_fail_null(
			EINVAL, "diff: a dimension and n of at least 0 are needed, got %s and %lld",
			SHAPE_STR(self), (long long)n);
	if (check_joined(self, prepend, d) < 0 || check_joined(self, append, d) < 0)
		return NULL;
	if (!n)
		return call_clone(self, TENSOR_PRESERVE_FORMAT);
	guard = tensor_scope_enter();
	t = joined(prepend, self, append, d);
	for (; t && n > 0 && t->sizes[d]; n--)
		t = difference(t, d);
	return scope_leave_with(&guard, t);
}
