/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of attention and its gradients. See launch.h and kernels/abi/attention.h. */
#ifndef TENSOR_CUDA_LAUNCH_ATTENTION_H
#define TENSOR_CUDA_LAUNCH_ATTENTION_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of each head; strides are elements. data is NULL for an operand that is not given. */
struct cuda_heads {
	void *data;
	int64_t row, column, batch[TENSOR_MAX_DIMS];
};

struct cuda_attention {
	int batch; /* dimensions that select a head */
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t heads, queries, keys, features, values;
	bool causal;
	int mask_dtype;
	double scale;
	struct cuda_heads query, key, value, mask, output, sums; /* sums: logsumexp, a column */
	struct cuda_heads grad, grad_query, grad_key, grad_value;
	/* Scratch memory of the backward: three values of sums' dtype for each query of each head. */
	void *saved;
};

/* Tiles of rows or, in the backward, of keys that a launch has for each head. */
#define CUDA_ATTENTION_TILES(n) (((n) + 31) / 32)

int cuda_launch_attention(const struct cuda_attention *a, int dtype, cudaStream_t stream);
/* Writes saved, then the gradients. */
int cuda_launch_attention_backward(const struct cuda_attention *a, int dtype, cudaStream_t stream);

/* The same for f16 and bf16 by matrix instructions: CUDA_NO_DTYPE for other dtypes and for more than
 * 128 features or values. */
int cuda_launch_attention_mma(const struct cuda_attention *a, int dtype, cudaStream_t stream);
int cuda_launch_attention_mma_backward(const struct cuda_attention *a, int dtype,
				       cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
