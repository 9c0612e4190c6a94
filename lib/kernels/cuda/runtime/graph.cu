// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* What a graph needs on the device besides the captured work. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_graph.h"

__global__ void keep_flag_kernel(unsigned long long *flag)
{
	if (flag[0] != ~0ull && flag[1] == ~0ull)
		flag[1] = flag[0];
}

int cuda_launch_keep_flag(unsigned long long *flag, cudaStream_t stream)
{
	return launch(keep_flag_kernel, 1, 1, stream, flag);
}
