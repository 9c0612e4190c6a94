// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operator functions of scatter with a reduction, scatter_reduce and index_reduce. With
 * include_self = false, the positions written to start with the reduction's identity; a mean is a
 * sum divided by the count.
 */
#include "ops/index/indexing.h"

#include "family/copy.h"
#include "family/scatter.h"

#include <math.h>

enum reduction { REDUCE_SUM, REDUCE_PROD, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_UNKNOWN };

static enum reduction parse_reduction(const char *text)
{
	static const char *const names[] = { "sum", "prod", "mean", "amax", "amin" };
	int r = 0;

	while (r < REDUCE_UNKNOWN && strcmp(text, names[r]))
		r++;
	return r;
}

static enum scatter_mode mode_of(enum reduction r)
{
	static const uint8_t modes[] = { SCATTER_ADD, SCATTER_MUL, SCATTER_ADD, SCATTER_MAX,
					 SCATTER_MIN };

	return modes[r];
}

/* The identity element of the reduction. */
static tensor_scalar neutral(enum reduction r, enum tensor_dtype dtype)
{
	bool max = r == REDUCE_MAX, real = dtype_is_float(dtype);
	int64_t high = dtype == TENSOR_U64 ? -1 : dtype_greatest(dtype), low = dtype_least(dtype);

	if (r == REDUCE_PROD)
		return tensor_scalar_int(1);
	if (r != REDUCE_MAX && r != REDUCE_MIN)
		return tensor_scalar_int(0);
	if (real)
		return tensor_scalar_float(max ? -INFINITY : INFINITY);
	return tensor_scalar_int(max ? low : high);
}

struct reducing {
	const struct tensor_op *op;
	enum reduction r;
	bool include_self;
};

static int divide(const struct reducing *g, scatter_kernel scatter, tensor *out, int d,
		  const tensor *index, const tensor *source)
{
	pointwise_kernel fn = (pointwise_kernel)op_kernel(g->op, &kernels_divide_counts, out);
	tensor *count = tensor_new_like(out, out->sizes, out->ndim);
	tensor *ones = index_repeated(out, tensor_scalar_int(1), source->sizes, source->ndim);
	const tensor *ops[] = { out, out, count };
	struct tensor_iter it;
	int err = fn && count && ones ? 0 : error_code();

	if (!err && !call_fill__Scalar(count, tensor_scalar_int(g->include_self)))
		err = error_code();
	if (!err)
		err = scatter(g->op->schema.name, count, d, index, ones, SCATTER_ADD);
	if (!err) {
		it.dtype = out->dtype;
		iter_build(&it, ops, 3);
		err = fn(&it, NULL);
	}
	tensor_put(ones);
	tensor_put(count);
	return err;
}

static int call_reduce(const struct tensor_op *op, tensor_kernel fn, tensor *out, int d,
		       const tensor *index, const tensor *source, const void *ctx)
{
	scatter_kernel scatter = (scatter_kernel)fn;
	const struct reducing *g = ctx;
	int err = 0;

	if (!g->include_self) {
		tensor *begin =
			index_repeated(out, neutral(g->r, out->dtype), source->sizes, source->ndim);

		err = begin ? scatter(op->schema.name, out, d, index, begin, SCATTER_SET) :
			      error_code();
		tensor_put(begin);
	}
	if (!err)
		err = scatter(op->schema.name, out, d, index, source, mode_of(g->r));
	if (!err && g->r == REDUCE_MEAN)
		err = divide(g, scatter, out, d, index, source);
	return err;
}

static int reduce(const struct tensor_op *op, tensor **out, tensor *self, int d, tensor *index,
		  tensor *source, enum reduction r, bool include_self)
{
	const struct reducing g = { op, r, include_self };

	if (dtype_is_complex(self->dtype) && (r == REDUCE_MAX || r == REDUCE_MIN))
		return tensor_kernel_no_dtype(op->schema.name, self->dtype, "cpu");
	/* An in-place form must not have changed self when a device turns out to lack the kernel. */
	if (r == REDUCE_MEAN && !op_kernel(op, &kernels_divide_counts, self))
		return error_code();
	return index_put_into(op, out, self, d, index, source, call_reduce, &g);
}

int op_scatter_reduce(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		      tensor *index, tensor *src, const char *reduction, bool include_self)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	enum reduction r = parse_reduction(reduction);

	if (d < 0)
		return error_code();
	if (r == REDUCE_UNKNOWN)
		return tensor_fail(EINVAL,
				   "%s: reduce must be sum, prod, mean, amax or amin, got %s",
				   op->schema.name, QUOTED(reduction));
	if (index_check_scatter(op, self, d, index, src) < 0)
		return error_code();
	return reduce(op, out, self, d, index, src, r, include_self);
}

int op_index_reduce(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		    tensor *index, tensor *source, const char *reduction, bool include_self)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	enum reduction r = parse_reduction(reduction);

	if (r == REDUCE_UNKNOWN || r == REDUCE_SUM)
		return tensor_fail(EINVAL, "%s: reduce must be prod, mean, amax or amin, got %s",
				   op->schema.name, QUOTED(reduction));
	if (d < 0 || index_check_vector(op, index) < 0 ||
	    index_check_same_dtype(op, "source", self, source) < 0 ||
	    index_check_source(op, self, d, index, source) < 0)
		return error_code();
	return reduce(op, out, self, d, index, source, r, include_self);
}

/* ---- scatter with add or multiply: the older interface ---- */

static int parse_old(const struct tensor_op *op, const char *text, enum reduction *r)
{
	*r = !strcmp(text, "add") ? REDUCE_SUM : REDUCE_PROD;
	if (*r == REDUCE_SUM || !strcmp(text, "multiply"))
		return 0;
	return tensor_fail(EINVAL, "%s: reduce must be add or multiply, got %s", op->schema.name,
			   QUOTED(text));
}

int op_scatter_with(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
		    tensor *index, tensor *src, const char *reduction)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	enum reduction r;

	if (d < 0 || parse_old(op, reduction, &r) < 0 ||
	    index_check_scatter(op, self, d, index, src) < 0)
		return error_code();
	return reduce(op, out, self, d, index, src, r, true);
}

int op_scatter_value_with(const struct tensor_op *op, tensor **out, tensor *self, int64_t dim,
			  tensor *index, tensor_scalar value, const char *reduction)
{
	tensor *src = index_repeated(self, value, index->sizes, index->ndim);
	int err = src ? op_scatter_with(op, out, self, dim, index, src, reduction) : error_code();

	tensor_put(src);
	return err;
}
