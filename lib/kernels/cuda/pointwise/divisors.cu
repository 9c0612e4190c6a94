// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The check of the divisors of a division in place, before it. */
#include "kernels/cuda/report.cuh"

template <class T>
__global__ void divisors_kernel(walk<2, 0, mixed> w, const char *in, cuda_report bad)
{
	typedef mixed::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		mixed::offset off[2] = {};

		w.seek(i, off);
		if (!*(const T *)(in + off[1]))
			report_value(bad, CUDA_BAD_DIVISOR, 0, 0, 0);
	}
}

int cuda_launch_divisors(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	if (p->dims.numel > CUDA_POSITIONS_MAX)
		return CUDA_TOO_WIDE;
	switch (p->itemsize[1]) {
#define X(N, T)                                                                                  \
	case N:                                                                                  \
		return launch(divisors_kernel<T>, grid_for(p->dims.numel, BLOCK), BLOCK, stream, \
			      walk<2, 0, mixed>(p->dims), (const char *)p->data[1], p->bad);
		X(1, uint8_t)
		X(2, uint16_t)
		X(4, uint32_t)
		X(8, uint64_t)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
