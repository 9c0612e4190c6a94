// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Scans: lines, pieces of long ones, and the conversion of an input of another dtype. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_scan.h"

/* Pieces of each line if there are too few lines to fill the device, by the shape alone. */
static int pieces(const struct cuda_rows *r)
{
	const int64_t piece = 8192, blocks = 1024, most = CUDA_SCAN_PIECES;
	int64_t n = blocks / r->kept.numel, fit = r->reduced.numel / piece;

	n = n < fit ? n : fit;
	return (int)(n < 1 ? 1 : n < most ? n : most);
}

/* indices: NULL, or the positions. self has out's dtype, and `data` its elements. */
static int scan(const struct cuda_call *c, enum cuda_scan which, const tensor *out,
		const tensor *indices, const tensor *self, int dim)
{
	const tensor *places = indices ? indices : out;
	struct cuda_rows r = { .data = { out->data, self->data, indices ? indices->data : NULL } };
	void *partial = NULL;
	int split, err = 0;

	cuda_dims_init(&r.kept);
	cuda_dims_init(&r.reduced);
	for (int d = self->ndim - 1; d >= 0; d--)
		cuda_dims_add(d == dim ? &r.reduced : &r.kept, 3, self->sizes[d],
			      (const int64_t[]){ out->strides[d], self->strides[d],
						 places->strides[d] });
	cuda_dims_done_together(&r.kept, &r.reduced, 3);
	r.across = r.kept.ndim && r.kept.size[0] >= 32 && r.kept.stride[1][0] == 1 &&
		   r.reduced.ndim && r.reduced.stride[1][0] != 1;
	if (r.kept.numel > INT32_MAX && r.reduced.numel > 1)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld lines, at most 2^31 - 1", c->op,
				   (long long)r.kept.numel);
	split = pieces(&r);
	if (split > 1)
		err = cuda_scratch(c, (size_t)(r.kept.numel * split) * CUDA_SCAN_PARTIAL, &partial);
	if (!err)
		err = cuda_launched(
			c, cuda_launch_scan(which, &r, out->dtype, split, partial, c->stream),
			out->dtype);
	cuda_scratch_free(c, partial);
	return err;
}

/* self in out's dtype, contiguous, in scratch memory. */
static int convert(const struct cuda_call *c, tensor *to, const tensor *self,
		   enum tensor_dtype dtype)
{
	const int64_t size = (int64_t)tensor_itemsize(dtype);
	const int64_t from = (int64_t)tensor_itemsize(self->dtype);
	struct cuda_pointwise p = { .data = { NULL, self->data } };
	int64_t step = 1;
	int err = cuda_scratch(c, (size_t)(self->numel * size), &to->data);

	if (err)
		return err;
	p.data[0] = to->data;
	to->dtype = (uint8_t)dtype;
	cuda_dims_init(&p.dims);
	for (int d = self->ndim - 1; d >= 0; d--) {
		to->strides[d] = step;
		cuda_dims_add(&p.dims, 2, self->sizes[d],
			      (const int64_t[]){ step * size, self->strides[d] * from });
		step *= self->sizes[d];
	}
	return cuda_copy_within(c, &p, dtype, (enum tensor_dtype)self->dtype);
}

static int scan_of(const char *op, enum cuda_scan which, tensor *out, tensor *indices,
		   const tensor *self, int dim)
{
	tensor converted = *self;
	struct cuda_call c;
	int err;

	if (!self->numel)
		return 0;
	err = cuda_begin_with(&c, op, out->device.index, out, self, indices);
	if (err)
		return err;
	if (self->dtype == out->dtype)
		return cuda_end(&c, scan(&c, which, out, indices, self, dim));
	converted.data = NULL;
	err = convert(&c, &converted, self, (enum tensor_dtype)out->dtype);
	if (!err)
		err = scan(&c, which, out, indices, &converted, dim);
	cuda_scratch_free(&c, converted.data);
	return cuda_end(&c, err);
}

int cuda_cumsum(tensor *out, const tensor *self, int dim)
{
	return scan_of("cumsum", CUDA_CUMSUM, out, NULL, self, dim);
}

int cuda_cumprod(tensor *out, const tensor *self, int dim)
{
	return scan_of("cumprod", CUDA_CUMPROD, out, NULL, self, dim);
}

int cuda_logcumsumexp(tensor *out, const tensor *self, int dim)
{
	return scan_of("logcumsumexp", CUDA_LOGCUMSUMEXP, out, NULL, self, dim);
}

int cuda_cummax(tensor *values, tensor *indices, const tensor *self, int dim)
{
	return scan_of("cummax", CUDA_CUMMAX, values, indices, self, dim);
}

int cuda_cummin(tensor *values, tensor *indices, const tensor *self, int dim)
{
	return scan_of("cummin", CUDA_CUMMIN, values, indices, self, dim);
}
