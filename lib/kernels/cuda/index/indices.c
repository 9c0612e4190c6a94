// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Index tensors: their description for kernels. */
#include "kernels/cuda/cuda.h"

static int check_dtype(const struct cuda_call *c, const tensor *index)
{
	if (index->dtype == TENSOR_I64 || index->dtype == TENSOR_I32)
		return 0;
	return tensor_kernel_no_dtype(c->op, index->dtype, "cuda");
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
