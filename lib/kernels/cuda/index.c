// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather, index_add, scatter_add. A separate kernel checks the index first, and its
 * result is copied to the host: an index out of range is an error of this call, at the cost of
 * waiting for the stream (docs/decisions/0004-cuda-plugin.md).
 */
#include "kernels/cuda/cuda.h"

/* Size and stride of dimension d; a 0-d tensor counts as one dimension of size 1. */
static int64_t size_of(const tensor *t, int d)
{
	return t->ndim ? t->sizes[d] : 1;
}

static int64_t stride_of(const tensor *t, int d)
{
	return t->ndim ? t->strides[d] : 0;
}

/* Reads the index at `position`, in the order of x->dims. */
static int index_at(struct cuda_call *c, const struct cuda_index *x, uint64_t position, int64_t *at)
{
	size_t size = x->wide_index ? 8 : 4;
	int64_t offset = 0;
	int32_t narrow;
	int err;

	for (int d = 0; d < x->dims.ndim; d++) {
		offset += (int64_t)(position % (uint64_t)x->dims.size[d]) * x->dims.stride[2][d];
		position /= (uint64_t)x->dims.size[d];
	}
	err = cuda_check(c->op, cudaMemcpyAsync(x->wide_index ? (void *)at : (void *)&narrow,
						(char *)x->data[2] + offset * (int64_t)size, size,
						cudaMemcpyDeviceToHost, c->stream));
	if (!err)
		err = cuda_wait(c);
	if (!err && !x->wide_index)
		*at = narrow;
	return err;
}

/* Checks every element of the index, which x->dims covers. flag: device memory. */
static int check_with(struct cuda_call *c, const struct cuda_index *x, unsigned long long *flag)
{
	unsigned long long bad = 0;
	int64_t at = 0;
	int err;

	err = cuda_check(c->op, cudaMemsetAsync(flag, 0xff, sizeof(*flag), c->stream));
	if (!err)
		err = cuda_launched(c, cuda_launch_check_index(x, flag, c->stream), TENSOR_I64);
	if (!err)
		err = cuda_check(c->op, cudaMemcpyAsync(&bad, flag, sizeof(bad),
							cudaMemcpyDeviceToHost, c->stream));
	if (!err)
		err = cuda_wait(c);
	if (err || bad == ~0ull)
		return err;
	err = index_at(c, x, bad, &at);
	return err ? err :
		     tensor_fail(ERANGE,
				 "%s: index %lld is out of range for a dimension of size "
				 "%lld",
				 c->op, (long long)at, (long long)x->limit);
}

static int check_index(struct cuda_call *c, const tensor *index, int64_t limit)
{
	struct cuda_index x = { .limit = limit, .wide_index = index->dtype == TENSOR_I64 };
	void *flag;
	int err;

	if (index->dtype != TENSOR_I64 && index->dtype != TENSOR_I32)
		return tensor_kernel_no_dtype(c->op, index->dtype, "cuda");
	cuda_dims_init(&x.dims);
	for (int d = index->ndim - 1; d >= 0; d--)
		cuda_dims_add(&x.dims, 3, index->sizes[d],
			      (const int64_t[]){ 0, 0, index->strides[d] });
	cuda_dims_done(&x.dims, 3);
	x.data[2] = index->data;
	err = cuda_scratch(c, sizeof(unsigned long long), &flag);
	if (err)
		return err;
	err = check_with(c, &x, flag);
	cuda_scratch_free(c, flag);
	return err;
}

/* ---- index_select, gather ---- */

/* Strides of the operands in dimension d. select: index_select, whose index is a vector. */
static void take_strides(int64_t *stride, const tensor *out, const tensor *self, int dim,
			 const tensor *index, bool select, int d)
{
	stride[0] = out->strides[d];
	stride[1] = d == dim ? 0 : self->strides[d];
	stride[2] = !select ? index->strides[d] : d == dim ? stride_of(index, 0) : 0;
}

/*
 * Makes elements of 16 bytes of `size` where the innermost dimension is contiguous in the output and the source, has one index,
 * and everything is a multiple of them. Returns the size of an element.
 */
static int64_t join_elements(struct cuda_index *x, int64_t size)
{
	struct cuda_dims *d = &x->dims;
	int64_t n = 16 / size;
	bool fits = d->ndim && d->stride[0][0] == 1 && d->stride[1][0] == 1 && !d->stride[2][0] &&
		    !(d->size[0] % n) && !(x->step % n) && !((uintptr_t)x->data[0] % 16) &&
		    !((uintptr_t)x->data[1] % 16);

	for (int k = 1; fits && k < d->ndim; k++)
		fits = !(d->stride[0][k] % n) && !(d->stride[1][k] % n);
	if (!fits || n == 1)
		return size;
	d->numel /= n;
	d->size[0] /= n;
	for (int k = 1; k < d->ndim; k++) {
		d->stride[0][k] /= n;
		d->stride[1][k] /= n;
	}
	x->step /= n;
	return 16;
}

static int take(struct cuda_call *c, tensor *out, const tensor *self, int dim, const tensor *index,
		bool select)
{
	struct cuda_index x = { .wide_index = index->dtype == TENSOR_I64 };
	int64_t stride[CUDA_OPERANDS];
	int64_t size = (int64_t)tensor_itemsize(self->dtype);
	int err = check_index(c, index, size_of(self, dim));

	if (err)
		return err;
	cuda_dims_init(&x.dims);
	for (int d = out->ndim - 1; d >= 0; d--) {
		take_strides(stride, out, self, dim, index, select, d);
		cuda_dims_add(&x.dims, 3, out->sizes[d], stride);
	}
	cuda_dims_done(&x.dims, 3);
	x.data[0] = out->data;
	x.data[1] = self->data;
	x.data[2] = index->data;
	x.step = stride_of(self, dim);
	size = join_elements(&x, size);
	err = cuda_launch_take(&x, (int)size, c->stream);
	return cuda_launched(c, err, self->dtype);
}

static int take_op(const char *op, tensor *out, const tensor *self, int dim, const tensor *index,
		   bool select)
{
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin(&c, op, out->device.index);
	if (err)
		return err;
	cuda_use(&c, out);
	cuda_use(&c, self);
	cuda_use(&c, index);
	return cuda_end(&c, take(&c, out, self, dim, index, select));
}

int cuda_index_select(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take_op("index_select", out, self, dim, index, true);
}

int cuda_gather(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take_op("gather", out, self, dim, index, false);
}

/* ---- index_add, scatter_add ---- */

/* x.dims has all dimensions of `shape` but dim. */
static int put(struct cuda_call *c, tensor *out, int dim, const tensor *index, const tensor *source,
	       tensor_scalar alpha, bool select)
{
	const tensor *shape = select ? source : index;
	struct cuda_index x = { .wide_index = index->dtype == TENSOR_I64, .alpha = alpha };
	int err = check_index(c, index, size_of(out, dim));

	if (err)
		return err;
	cuda_dims_init(&x.dims);
	for (int d = shape->ndim - 1; d >= 0; d--)
		if (d != dim)
			cuda_dims_add(&x.dims, 3, shape->sizes[d],
				      (const int64_t[]){ out->strides[d], source->strides[d],
							 select ? 0 : index->strides[d] });
	cuda_dims_done(&x.dims, 3);
	x.data[0] = out->data;
	x.data[1] = source->data;
	x.data[2] = index->data;
	x.step = stride_of(out, dim);
	x.count = size_of(shape, dim);
	x.along[1] = stride_of(source, dim);
	x.along[2] = stride_of(index, select ? 0 : dim);
	err = cuda_launch_put(&x, out->dtype, c->stream);
	return cuda_launched(c, err, out->dtype);
}

static int put_op(const char *op, tensor *out, int dim, const tensor *index, const tensor *source,
		  tensor_scalar alpha, bool select)
{
	struct cuda_call c;
	int err;

	if (!index->numel || !source->numel)
		return 0;
	err = cuda_begin(&c, op, out->device.index);
	if (err)
		return err;
	cuda_use(&c, out);
	cuda_use(&c, source);
	cuda_use(&c, index);
	return cuda_end(&c, put(&c, out, dim, index, source, alpha, select));
}

int cuda_index_add(tensor *out, int dim, const tensor *index, const tensor *source, double alpha)
{
	return put_op("index_add", out, dim, index, source, tensor_scalar_float(alpha), true);
}

int cuda_scatter_add(tensor *out, int dim, const tensor *index, const tensor *source)
{
	return put_op("scatter_add", out, dim, index, source, tensor_scalar_int(1), false);
}
