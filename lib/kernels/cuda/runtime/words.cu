// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Words of the host to the device (launch_words.h). */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_words.h"

#include <string.h>

struct words {
	uint32_t word[CUDA_WORDS_MOST];
};

__global__ void words_kernel(uint32_t *to, const words from, int n)
{
	for (int i = threadIdx.x; i < n; i += BLOCK)
		to[i] = from.word[i];
}

int cuda_launch_words(void *to, const void *from, int n, cudaStream_t stream)
{
	words w;

	memset(&w, 0, sizeof(w));
	memcpy(w.word, from, sizeof(w.word[0]) * (size_t)n);
	return launch(words_kernel, 1, BLOCK, stream, (uint32_t *)to, w, n);
}
