// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Arrays of pointers to the matrices of a batch. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_linalg.h"

__global__ void pointers_kernel(void **to, char *first, int64_t step, int64_t n)
{
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>())
		to[i] = first + i * step;
}

int cuda_launch_pointers(void **to, void *first, int64_t step, int64_t n, cudaStream_t stream)
{
	return launch(pointers_kernel, grid_for(n, BLOCK), BLOCK, stream, to, (char *)first, step,
		      n);
}
