// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The factor of a Fourier transform, which cuFFT leaves out. */
#include "kernels/cuda/launch_fft.h"
#include "kernels/cuda/device.cuh"

template <class T> __global__ void scale_kernel(T *data, int64_t n, T scale)
{
	const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] *= scale;
}

template <class T> static int scale(T *data, int64_t n, double factor, cudaStream_t stream)
{
	return launch(scale_kernel<T>, (unsigned)((n + BLOCK - 1) / BLOCK), BLOCK, stream, data, n,
		      (T)factor);
}

int cuda_launch_fft_scale(void *data, int64_t n, double factor, bool is_double, cudaStream_t stream)
{
	return is_double ? scale((double *)data, n, factor, stream) :
			   scale((float *)data, n, factor, stream);
}
