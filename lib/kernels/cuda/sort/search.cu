// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* searchsorted: a thread has a value. mode: a block has a sorted line, and compares its runs. */
#include "kernels/cuda/index/index.cuh"
#include "kernels/cuda/launch_search.h"
#include "kernels/cuda/reduce/rows.cuh"

template <class T> __global__ void searchsorted_kernel(cuda_search s)
{
	for (int64_t i = first_element<int64_t>(); i < s.numel; i += element_step<int64_t>()) {
		const int64_t line = s.shared ? 0 : i / s.m * s.n;
		const T *sequence = (const T *)s.sequence + line;
		const T x = ((const T *)s.values)[i];
		int64_t low = 0, high = s.n;

		while (low < high) {
			const int64_t middle = low + (high - low) / 2;
			const T y = sequence[s.sorter ? s.sorter[line + middle] : middle];

			/* NaN is behind all numbers. */
			if (s.right ? !(y > x) : !(y >= x))
				low = middle + 1;
			else
				high = middle;
		}
		s.out[i] = low;
	}
}

int cuda_launch_searchsorted(const cuda_search *s, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return launch(searchsorted_kernel<T>, grid_for(s->numel, BLOCK), BLOCK, stream, *s);
		X(TENSOR_BOOL, uint8_t)
		FOR_NUMBERS(X)
		X(TENSOR_U16, uint16_t)
		X(TENSOR_U32, uint32_t)
		X(TENSOR_U64, uint64_t)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

/* ---- mode ---- */

/* A run of equal elements that ends at `last`; longer ones, then earlier ones come first. */
struct run {
	int64_t length, last;
};

struct longest {
	__device__ static run join(run a, run b)
	{
		return b.length > a.length || (b.length == a.length && b.last < a.last) ? b : a;
	}
};

/* All NaN of a sorted line are one run, as on the CPU. */
template <class T> static __device__ inline bool equal_elements(T a, T b)
{
	return a == b || (a != a && b != b);
}

template <class T>
__global__ void __launch_bounds__(BLOCK)
	mode_kernel(seeker<2> lines, int64_t n, const T *sorted, const int64_t *positions,
		    T *values, int64_t *indices)
{
	typedef typename number<T>::compute C;

	for (uint64_t line = blockIdx.x; line < lines.numel; line += gridDim.x) {
		const T *x = sorted + (int64_t)line * n;
		run best = { 0, n };
		int64_t at[2] = {};

		for (int64_t i = threadIdx.x; i < n; i += BLOCK) {
			const C v = number<T>::load(x[i]);
			int64_t low = 0, high = i; /* the first element that is equal */

			if (i + 1 < n && equal_elements(v, number<T>::load(x[i + 1])))
				continue;
			while (low < high) {
				const int64_t middle = low + (high - low) / 2;

				if (equal_elements(v, number<T>::load(x[middle])))
					high = middle;
				else
					low = middle + 1;
			}
			best = longest::join(best, run{ i - low + 1, i });
		}
		best = join_lanes(longest(), best);
		lines.seek(line, at);
		if (threadIdx.x == 0) {
			values[at[0]] = x[best.last];
			indices[at[1]] = positions[(int64_t)line * n + best.last];
		}
	}
}

int cuda_launch_mode(const cuda_mode *m, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                              \
	case D:                                                                              \
		return launch(mode_kernel<T>, grid_for(m->lines.numel, 1), BLOCK, stream,    \
			      seeker<2>(m->lines), m->n, (const T *)m->sorted, m->positions, \
			      (T *)m->values, m->indices);
		X(TENSOR_BOOL, uint8_t)
		FOR_NUMBERS(X)
		FOR_REDUCED_FLOATS(X)
		X(TENSOR_U16, uint16_t)
		X(TENSOR_U32, uint32_t)
		X(TENSOR_U64, uint64_t)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
