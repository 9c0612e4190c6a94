// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of order along a dimension: sort, topk, kthvalue, median. */
#include "ops/reduce/reduce.h"

#include "family/copy.h"
#include "family/sort.h"

#include <math.h>

/* Begin both outputs in this shape; the caller has called reduce_check_apart(). */
static int begin_pair(const struct tensor_op *op, struct op_output *v, struct op_output *i,
		      tensor **values, tensor **indices, const tensor *self, const int64_t *sizes,
		      int ndim)
{
	const tensor *inputs[] = { self };

	if (reduce_check_apart(op, *values, *indices) < 0 ||
	    output_begin_apart(op, v, *values, self->dtype, sizes, ndim, inputs, 1) < 0)
		return error_code();
	if (output_begin_apart(op, i, *indices, TENSOR_I64, sizes, ndim, inputs, 1) < 0)
		return output_end(op, v, values, error_code());
	return 0;
}

/* Begin both outputs with self's sizes and order of dimensions. */
static int begin_sorted(const struct tensor_op *op, struct op_output *v, struct op_output *i,
			tensor **values, tensor **indices, const tensor *self)
{
	const tensor *inputs[] = { self };

	if (reduce_check_apart(op, *values, *indices) < 0 ||
	    output_begin_like(op, v, *values, self->dtype, self, inputs, 1) < 0)
		return error_code();
	if (output_begin_like(op, i, *indices, TENSOR_I64, self, inputs, 1) < 0)
		return output_end(op, v, values, error_code());
	return 0;
}

static int end_pair(const struct tensor_op *op, struct op_output *v, struct op_output *i,
		    tensor **values, tensor **indices, int err)
{
	bool given = *indices;

	err = output_end(op, i, indices, err);
	err = output_end(op, v, values, err);
	return reduce_drop_result(indices, given, err);
}

int op_sort(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
	    int64_t dim, bool descending)
{
	sort_kernel fn = (sort_kernel)op_kernel(op, op->kernels, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	struct op_output v, i;
	tensor lines[3];

	if (!fn || d < 0 || begin_sorted(op, &v, &i, values, indices, self) < 0)
		return error_code();
	err = fn(operand_as_vector(&lines[0], v.t), operand_as_vector(&lines[1], i.t),
		 operand_as_vector(&lines[2], self), d, descending);
	return end_pair(op, &v, &i, values, indices, err);
}

int op_sort_stable(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
		   int64_t stable, int64_t dim, bool descending)
{
	return op_sort(op, values, indices, self, dim, descending);
}

tensor *composite_argsort(tensor *self, int64_t dim, bool descending)
{
	tensor *values, *indices;

	if (call_sort(self, dim, descending, &values, &indices) < 0)
		return NULL;
	tensor_put(values);
	return indices;
}

tensor *composite_argsort_stable(tensor *self, bool stable, int64_t dim, bool descending)
{
	return composite_argsort(self, dim, descending);
}

tensor *composite_msort(tensor *self)
{
	tensor *values, *indices;

	if (call_sort(self, 0, false, &values, &indices) < 0)
		return NULL;
	tensor_put(indices);
	return values;
}

int op_topk(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self, int64_t k,
	    int64_t dim, bool largest, bool sorted)
{
	topk_kernel fn = (topk_kernel)op_kernel(op, op->kernels, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	int64_t sizes[TENSOR_MAX_DIMS], n;
	struct op_output v, i;
	tensor lines[3];

	if (!fn || d < 0)
		return error_code();
	n = self->ndim ? self->sizes[d] : 1;
	if (k < 0 || k > n)
		return tensor_fail(EINVAL,
				   "%s: k must be from 0 to %lld, the size of dimension %d "
				   "of self, got %lld",
				   op->schema.name, (long long)n, d, (long long)k);
	memcpy(sizes, self->sizes, sizeof(sizes));
	if (self->ndim)
		sizes[d] = k;
	if (begin_pair(op, &v, &i, values, indices, self, sizes, self->ndim) < 0)
		return error_code();
	err = fn(operand_as_vector(&lines[0], v.t), operand_as_vector(&lines[1], i.t),
		 operand_as_vector(&lines[2], self), d, k, largest, sorted);
	return end_pair(op, &v, &i, values, indices, err);
}

/* ---- one element of each vector ---- */

static int pick(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
		int64_t dim, bool keepdim, int64_t k)
{
	select_kernel fn = (select_kernel)op_kernel(op, op->kernels, self);
	int d = wrap_dim(op->schema.name, dim, self->ndim), err;
	tensor header, views[2], *line;
	int64_t sizes[TENSOR_MAX_DIMS];
	struct op_output v, i;
	uint32_t dims;
	int ndim;

	if (!fn || d < 0 || reduce_dim_mask(op, self, dim, &dims) < 0)
		return error_code();
	if (self->ndim && !self->sizes[d])
		return reduce_check_elements(op, self, dims);
	ndim = reduce_sizes(self, dims, keepdim, sizes);
	if (begin_pair(op, &v, &i, values, indices, self, sizes, ndim) < 0)
		return error_code();
	line = operand_as_vector(&header, self);
	err = fn(reduce_view(&views[0], v.t, line, 1u << d),
		 reduce_view(&views[1], i.t, line, 1u << d), line, d, k);
	return end_pair(op, &v, &i, values, indices, err);
}

int op_kthvalue(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
		int64_t k, int64_t dim, bool keepdim)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);
	int64_t n;

	if (d < 0)
		return error_code();
	n = self->ndim ? self->sizes[d] : 1;
	if (k < 1 || k > n)
		return tensor_fail(EINVAL,
				   "%s: k must be from 1 to %lld, the size of dimension %d "
				   "of self, got %lld",
				   op->schema.name, (long long)n, d, (long long)k);
	return pick(op, values, indices, self, dim, keepdim, k - 1);
}

int op_median_dim(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
		  int64_t dim, bool keepdim)
{
	return pick(op, values, indices, self, dim, keepdim, SELECT_MEDIAN);
}

int op_nanmedian_dim(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
		     int64_t dim, bool keepdim)
{
	return pick(op, values, indices, self, dim, keepdim, SELECT_NANMEDIAN);
}

int op_mode(const struct tensor_op *op, tensor **values, tensor **indices, tensor *self,
	    int64_t dim, bool keepdim)
{
	return pick(op, values, indices, self, dim, keepdim, 0);
}

/* A 0-d tensor like self with NaN, or what its dtype has for it. The element is stored on the host. */
static int nan_like(tensor **out, const tensor *self)
{
	tensor *host = tensor_new(TENSOR_DEVICE_CPU, self->dtype, NULL, 0);
	int err = 0;

	if (!host)
		return error_code();
	if (tensor_element_store(host->data, self->dtype, tensor_scalar_float(NAN)) < 0) {
		err = error_code();
	} else if (self->device.type == TENSOR_CPU) {
		*out = host;
		return 0;
	} else {
		*out = tensor_new_like(self, NULL, 0);
		if (!*out || !call_copy_(*out, host))
			err = reduce_drop_result(out, false, error_code());
	}
	tensor_put(host);
	return err;
}

/* Median of all elements; NaN if there are none. */
static int median_all(const struct tensor_op *op, tensor **out, tensor *self, int64_t k)
{
	tensor *dense, *indices = NULL, line;
	int err;

	if (!self->numel)
		return nan_like(out, self);
	dense = operand_contiguous(self);
	if (!dense)
		return error_code();
	line = *dense;
	line.ndim = 1;
	line.sizes[0] = dense->numel;
	line.strides[0] = 1;
	err = pick(op, out, &indices, &line, 0, false, k);
	tensor_put(indices);
	tensor_put(dense);
	return err;
}

int op_median(const struct tensor_op *op, tensor **out, tensor *self)
{
	return median_all(op, out, self, SELECT_MEDIAN);
}

int op_nanmedian(const struct tensor_op *op, tensor **out, tensor *self)
{
	return median_all(op, out, self, SELECT_NANMEDIAN);
}
