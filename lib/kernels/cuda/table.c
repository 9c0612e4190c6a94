// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The kernels that are not elementwise, by name. */
#include "kernels/cuda/kernels.h"

#define K(NAME)                                                      \
	{                                                            \
#NAME, KERNEL_OF_TYPE(pointwise_kernel, cuda_##NAME) \
	}
#define KERNEL(NAME)                                                           \
	{                                                                      \
#NAME, KERNEL_OF_TYPE(__typeof__(type_of_##NAME), cuda_##NAME) \
	}
/* clang-format off */
const struct cuda_kernel cuda_kernels[] = {
	KERNEL(copy),
	K(fill),
	KERNEL(sum),
	KERNEL(softmax),
	KERNEL(log_softmax),
	KERNEL(softmax_backward),
	KERNEL(log_softmax_backward),
	KERNEL(mm),
	KERNEL(index_select),
	KERNEL(gather),
	KERNEL(index_take),
	KERNEL(index_add),
	KERNEL(scatter_add),
	KERNEL(scatter),
	KERNEL(index_put),
	KERNEL(embedding_backward),
	KERNEL(layer_norm),
	KERNEL(layer_norm_backward),
	KERNEL(nll_loss),
	KERNEL(nll_loss_backward),
	KERNEL(optimizer),
	KERNEL(bmm),
	KERNEL(prod),
	KERNEL(max_all),
	KERNEL(min_all),
	KERNEL(any),
	KERNEL(all),
	KERNEL(count_nonzero),
	KERNEL(var),
	KERNEL(std),
	KERNEL(norm),
	KERNEL(logsumexp),
	KERNEL(argmax),
	KERNEL(argmin),
	KERNEL(max_dim),
	KERNEL(min_dim),
	KERNEL(bernoulli),
	KERNEL(native_dropout),
	KERNEL(triangle),
	KERNEL(convolution),
	KERNEL(convolution_input),
	KERNEL(convolution_weight),
	KERNEL(convolution_takes_bf16),
	KERNEL(im2col),
	KERNEL(col2im),
	KERNEL(max_pool),
	KERNEL(max_pool_backward),
	KERNEL(avg_pool),
	KERNEL(avg_pool_backward),
	KERNEL(adaptive_avg_pool),
	KERNEL(adaptive_avg_pool_backward),
	KERNEL(adaptive_max_pool),
	KERNEL(batch_stats),
	KERNEL(batch_apply),
	KERNEL(batch_norm_backward),
	KERNEL(group_norm),
	KERNEL(group_norm_backward),
	KERNEL(cumsum),
	KERNEL(cumprod),
	KERNEL(logcumsumexp),
	KERNEL(cummax),
	KERNEL(cummin),
	KERNEL(uniform),
	KERNEL(normal),
	KERNEL(exponential),
	KERNEL(randint),
	KERNEL(randperm),
	KERNEL(bernoulli_each),
	KERNEL(arange),
	KERNEL(linspace),
};
/* clang-format on */
const size_t cuda_kernels_count = ARRAY_SIZE(cuda_kernels);
