// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tril and triu: the threads of a row copy its part on one side of the diagonal, the rest is 0. */
#include "kernels/cuda/launch_nn.h"
#include "kernels/cuda/index/index.cuh"

template <class T>
__global__ void triangle_kernel(seeker<2> rows, cuda_triangle t, T *out, const T *in)
{
	const uint64_t row = (uint64_t)blockIdx.x * blockDim.y + threadIdx.y;
	const int64_t diagonal = (int64_t)(row % (uint64_t)t.height) + t.k;
	int64_t at[2] = {};

	if (row >= rows.numel)
		return;
	rows.seek(row, at);
	for (int64_t i = threadIdx.x; i < t.width; i += blockDim.x) {
		const bool kept = t.upper ? i >= diagonal : i <= diagonal;
		T v = {};

		if (kept)
			v = in[at[1] + i * t.step[1]];
		out[at[0] + i * t.step[0]] = v;
	}
}

template <class T> static int triangle(const cuda_triangle *t, cudaStream_t stream)
{
	unsigned lanes = 1;

	while (lanes < BLOCK && (int64_t)lanes * 4 < t->width)
		lanes *= 2;
	const int64_t height = BLOCK / lanes;

	return launch(triangle_kernel<T>, (unsigned)((t->rows.numel + height - 1) / height),
		      dim3(lanes, (unsigned)height), stream, seeker<2>(t->rows), *t,
		      (T *)t->data[0], (const T *)t->data[1]);
}

int cuda_launch_triangle(const cuda_triangle *t, int itemsize, cudaStream_t stream)
{
	switch (itemsize) {
#define X(N, T) \
	case N: \
		return triangle<T>(t, stream);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
