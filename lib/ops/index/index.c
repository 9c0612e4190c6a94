// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operator functions of index_select, index_add, gather and scatter_add. Shapes are checked here,
 * index values by the kernel that reads them. 0-d tensors are passed to kernels as vectors of one
 * element.
 */
#include "ops/index/indexing.h"

#include "family/index.h"
#include "family/pointwise.h"

tensor *index_at_least_1d(const tensor *t)
{
	const int64_t one = 1;

	return t->ndim ? tensor_get((tensor *)t) :
			 tensor_new_view((tensor *)t, &one, &one, 1, t->offset);
}

int index_check(const struct tensor_op *op, const tensor *index)
{
	if (likely(index->dtype == TENSOR_I64 || index->dtype == TENSOR_I32) || !index->numel)
		return 0;
	return tensor_fail(EINVAL, "%s: index must be i32 or i64, got %s", op->schema.name,
			   tensor_dtype_name(index->dtype));
}

int index_check_vector(const struct tensor_op *op, const tensor *index)
{
	if (likely(index->ndim <= 1))
		return index_check(op, index);
	return tensor_fail(EINVAL, "%s: index must have one dimension, got shape %s",
			   op->schema.name, SHAPE_STR(index));
}

int index_check_same_dtype(const struct tensor_op *op, const char *name, const tensor *self,
			   const tensor *t)
{
	if (likely(self->dtype == t->dtype))
		return 0;
	return tensor_fail(EINVAL, "%s: self and %s must have one dtype, got %s and %s",
			   op->schema.name, name, tensor_dtype_name(self->dtype),
			   tensor_dtype_name(t->dtype));
}

/* Run the kernel of index_select or gather: out[i] = self[index[i]] along dim. */
static int run_gather_kernel(const struct tensor_op *op, const tensor *out, const tensor *self,
			     int dim, const tensor *index)
{
	gather_kernel fn = (gather_kernel)op_kernel(op, op->kernels, out);
	tensor *to = NULL, *from = NULL, *at = NULL;
	int err = 0;

	if (!fn)
		return error_code();
	if (out->numel)
		err = (to = index_at_least_1d(out)) && (from = index_at_least_1d(self)) &&
				      (at = index_at_least_1d(index)) ?
			      fn(to, from, dim, at) :
			      error_code();
	tensor_put(to);
	tensor_put(from);
	tensor_put(at);
	return err;
}

/* ---- index_select ---- */

int op_index_select(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		    tensor *index)
{
	const tensor *inputs[] = { self, index };
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	int64_t sizes[TENSOR_MAX_DIMS];
	struct op_output o;

	if (d < 0 || index_check_vector(op, index) < 0)
		return error_code();
	if (!self->ndim && index->numel != 1)
		return tensor_fail(EINVAL, "%s: index must have one element for a 0-d self, got %s",
				   op->schema.name, SHAPE_STR(index));
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	sizes[d] = index->numel;
	if (output_begin_apart(op, &o, *out, self->dtype, sizes, self->ndim, inputs, 2) < 0)
		return error_code();
	return output_end(op, &o, out, run_gather_kernel(op, o.t, self, d, index));
}

/* ---- gather ---- */

int index_check_within(const struct tensor_op *op, const tensor *index, const char *name,
		       const tensor *t, int free_dim)
{
	int rank = t->ndim ? t->ndim : 1;
	bool fits = rank == (index->ndim ? index->ndim : 1);

	for (int i = 0; fits && i < index->ndim; i++)
		fits = i == free_dim || index->sizes[i] <= (t->ndim ? t->sizes[i] : 1);
	if (likely(fits))
		return 0;
	if (free_dim < 0)
		return tensor_fail(EINVAL,
				   "%s: index %s must have the rank of %s %s and be no "
				   "larger",
				   op->schema.name, SHAPE_STR(index), name, SHAPE_STR(t));
	return tensor_fail(EINVAL,
			   "%s: index %s must have the rank of %s %s and be no larger "
			   "outside dimension %d",
			   op->schema.name, SHAPE_STR(index), name, SHAPE_STR(t), free_dim);
}

int op_gather(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim, tensor *index)
{
	const tensor *inputs[] = { self, index };
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	struct op_output o;

	if (d < 0 || index_check(op, index) < 0 ||
	    (index->numel && index_check_within(op, index, "self", self, d) < 0))
		return error_code();
	if (*out && (*out)->dtype != self->dtype)
		return tensor_fail(EINVAL, "%s: out must be %s like self, got %s", op->schema.name,
				   tensor_dtype_name(self->dtype),
				   tensor_dtype_name((*out)->dtype));
	if (output_begin_apart(op, &o, *out, self->dtype, index->sizes, index->ndim, inputs, 2) < 0)
		return error_code();
	return output_end(op, &o, out, run_gather_kernel(op, o.t, self, d, index));
}

/* ---- index_add, scatter_add: on self, or on a copy of it ---- */

static int call_index_add_kernel(const struct tensor_op *op, tensor_kernel fn, tensor *out, int d,
				 const tensor *index, const tensor *source, const void *alpha)
{
	return ((index_add_kernel)fn)(op->schema.name, out, d, index, source,
				      *(const double *)alpha);
}

static int call_scatter_add_kernel(const struct tensor_op *op, tensor_kernel fn, tensor *out, int d,
				   const tensor *index, const tensor *source, const void *unused)
{
	return ((scatter_add_kernel)fn)(op->schema.name, out, d, index, source);
}

/* like: the functional result keeps self's order of dimensions. */
static int put_on_copy(const struct tensor_op *op, tensor **out, tensor *self, int d,
		       const tensor *index, const tensor *source, put_call call, const void *ctx,
		       bool like)
{
	const tensor *inputs[] = { index, source, self };
	tensor *to = NULL, *at = NULL, *from = NULL;
	int n = op->variant == VARIANT_INPLACE ? 2 : 3, err = 0;
	struct op_output o;
	tensor_kernel fn;

	err = like ? output_begin_like(op, &o, *out, self->dtype, self, inputs, n) :
		     output_begin_apart(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs,
					n);
	if (err)
		return err;
	fn = op_kernel(op, op->kernels, o.t);
	if (!fn)
		err = error_code();
	if (!err && o.t != self)
		err = operand_copy(o.t, self);
	if (!err && source->numel && index->numel)
		err = (to = index_at_least_1d(o.t)) && (at = index_at_least_1d(index)) &&
				      (from = index_at_least_1d(source)) ?
			      call(op, fn, to, d, at, from, ctx) :
			      error_code();
	tensor_put(to);
	tensor_put(at);
	tensor_put(from);
	return output_end(op, &o, out, err);
}

int index_put_into(const struct tensor_op *op, tensor **out, tensor *self, int d,
		   const tensor *index, const tensor *source, put_call call, const void *ctx)
{
	return put_on_copy(op, out, self, d, index, source, call, ctx, false);
}

int index_put_into_like(const struct tensor_op *op, tensor **out, tensor *self, int d,
			const tensor *index, const tensor *source, put_call call, const void *ctx)
{
	return put_on_copy(op, out, self, d, index, source, call, ctx, true);
}

int index_check_source(const struct tensor_op *op, const tensor *self, int d, const tensor *index,
		       const tensor *source)
{
	bool fits = source->ndim == self->ndim || (self->ndim <= 1 && source->ndim <= 1);

	for (int i = 0; fits && i < self->ndim; i++)
		fits = i == d || source->sizes[i] == self->sizes[i];
	if (fits)
		fits = (source->ndim ? source->sizes[d] : 1) == index->numel;
	if (likely(fits))
		return 0;
	return tensor_fail(EINVAL,
			   "%s: source must have self's shape %s with %lld positions, the "
			   "length of index, in dimension %d, got %s",
			   op->schema.name, SHAPE_STR(self), (long long)index->numel, d,
			   SHAPE_STR(source));
}

/* Multiply beforehand: the kernel's alpha is real. */
static int index_add_complex(const struct tensor_op *op, tensor **out, tensor *self, int d,
			     const tensor *index, tensor *source, tensor_scalar alpha)
{
	tensor *scaled = call_mul_Scalar(source, alpha);
	const double one = 1;
	int err;

	if (!scaled)
		return error_code();
	err = index_put_into(op, out, self, d, index, scaled, call_index_add_kernel, &one);
	tensor_put(scaled);
	return err;
}

int op_index_add(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim, tensor *index,
		 tensor *source, tensor_scalar alpha)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	double a;

	if (d < 0 || index_check_vector(op, index) < 0 ||
	    index_check_same_dtype(op, "source", self, source) < 0 ||
	    index_check_source(op, self, d, index, source) < 0 ||
	    scalar_factor(op, "alpha", alpha, self->dtype, &a) < 0)
		return error_code();
	if (alpha.kind == TENSOR_SCALAR_COMPLEX && alpha.imag != 0)
		return index_add_complex(op, out, self, d, index, source, alpha);
	return index_put_into(op, out, self, d, index, source, call_index_add_kernel, &a);
}

int op_scatter_add(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		   tensor *index, tensor *src)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);

	if (d < 0 || index_check(op, index) < 0 || index_check_same_dtype(op, "src", self, src) < 0)
		return error_code();
	if (index->numel && (index_check_within(op, index, "self", self, d) < 0 ||
			     index_check_within(op, index, "src", src, -1) < 0))
		return error_code();
	return index_put_into(op, out, self, d, index, src, call_scatter_add_kernel, NULL);
}
