// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* What a graph needs on the device besides the captured work. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_graph.h"

struct words {
	uint64_t value[CUDA_WORDS];
};

__global__ void words_kernel(uint64_t *to, words from, int n)
{
	if ((int)threadIdx.x < n)
		to[threadIdx.x] = from.value[threadIdx.x];
}

int cuda_launch_words(void *to, const uint64_t *values, int n, cudaStream_t stream)
{
	words from = {};

	for (int i = 0; i < n; i++)
		from.value[i] = values[i];
	return launch(words_kernel, 1, CUDA_WORDS, stream, (uint64_t *)to, from, n);
}

__global__ void keep_flag_kernel(unsigned long long *flag)
{
	if (flag[0] != ~0ull && flag[1] == ~0ull)
		flag[1] = flag[0];
}

int cuda_launch_keep_flag(unsigned long long *flag, cudaStream_t stream)
{
	return launch(keep_flag_kernel, 1, 1, stream, flag);
}
