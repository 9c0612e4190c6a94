// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Index tensors: their description for kernels, and the error for an index out of range. */
#include "kernels/cuda/cuda.h"

static int check_dtype(const struct cuda_call *c, const tensor *index)
{
	if (index->dtype == TENSOR_I64 || index->dtype == TENSOR_I32)
		return 0;
	return tensor_kernel_refuse_dtype(c->op, index->dtype, "cuda");
}

int cuda_index_of(const struct cuda_call *c, struct cuda_indices *x, const tensor *index,
		  int64_t limit, int64_t step)
{
	*x = (struct cuda_indices){
		.n = 1, .wide = index->dtype == TENSOR_I64, .limit = { limit }, .step = { step }
	};
	return check_dtype(c, index);
}

int cuda_indices_of(const struct cuda_call *c, struct cuda_indices *x, const tensor *self,
		    const tensor *at, const int *dims, int n)
{
	*x = (struct cuda_indices){
		.n = n, .wide = at->dtype == TENSOR_I64, .wrap = true, .slab = at->strides[0]
	};
	for (int k = 0; k < n; k++) {
		x->limit[k] = self->sizes[dims[k]];
		x->step[k] = self->strides[dims[k]];
	}
	return check_dtype(c, at);
}

int cuda_index_refuse(const struct cuda_call *c, const struct cuda_indices *x,
		      const struct cuda_dims *d, const void *data, uint64_t bad)
{
	const size_t size = x->wide ? 8 : 4;
	const int k = (int)(bad % (uint64_t)x->n);
	uint64_t position = bad / (uint64_t)x->n;
	int64_t offset = k * x->slab, wide_index = 0;
	int32_t index = 0;
	int err;

	if (bad == UINT64_MAX)
		return 0;
	for (int i = 0; i < d->ndim; i++) {
		offset += (int64_t)(position % (uint64_t)d->size[i]) * d->stride[2][i];
		position /= (uint64_t)d->size[i];
	}
	err = cuda_check(c->op, cudaMemcpyAsync(x->wide ? (void *)&wide_index : (void *)&index,
						(const char *)data + offset * (int64_t)size, size,
						cudaMemcpyDeviceToHost, c->stream));
	if (!err)
		err = cuda_wait(c);
	if (err)
		return err;
	return tensor_fail(ERANGE, "%s: index %lld is out of range for a dimension of size %lld",
			   c->op, (long long)(x->wide ? wide_index : index),
			   (long long)x->limit[k]);
}
