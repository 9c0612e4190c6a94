/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Stands for CUB's sort: one thread sorts by digits of four bits. */
#ifndef CUDA_HOST_CUB_RADIX_SORT_CUH
#define CUDA_HOST_CUB_RADIX_SORT_CUH

#include <cuda_runtime.h>

/* Moves n pairs, in the order of the digit at `shift` of their keys. */
template <class K, class V>
static void cuda_host_sort_digit(const K *from, const V *values, K *to, V *to_values, int n,
				 int shift, int bits)
{
	int begin[17] = {};
	const K mask = ((K)1 << bits) - 1;

	for (int i = 0; i < n; i++)
		begin[(from[i] >> shift & mask) + 1]++;
	for (int d = 0; d < 16; d++)
		begin[d + 1] += begin[d];
	for (int i = 0; i < n; i++) {
		int at = begin[from[i] >> shift & mask]++;

		to[at] = from[i];
		to_values[at] = values[i];
	}
}

template <class K, class V>
__global__ void cuda_host_sort_kernel(const K *from, K *to, const V *values, V *to_values, K *spare,
				      V *spare_values, int n, int begin, int end)
{
	for (int i = 0; i < n; i++) {
		to[i] = from[i];
		to_values[i] = values[i];
	}
	for (int shift = begin; shift < end; shift += 4) {
		cuda_host_sort_digit(to, to_values, spare, spare_values, n, shift,
				     end - shift < 4 ? end - shift : 4);
		for (int i = 0; i < n; i++) {
			to[i] = spare[i];
			to_values[i] = spare_values[i];
		}
	}
}

namespace cub
{
struct DeviceRadixSort {
	template <class K, class V>
	static cudaError_t SortPairs(void *temporary, size_t &nbytes, const K *from, K *to,
				     const V *values, V *to_values, int n, int begin = 0,
				     int end = sizeof(K) * 8, cudaStream_t stream = nullptr)
	{
		K *spare = (K *)temporary;

		if (!temporary) {
			nbytes = (size_t)n * (sizeof(K) + sizeof(V)) + 1;
			return cudaSuccess;
		}
		if (nbytes < (size_t)n * (sizeof(K) + sizeof(V)))
			return cudaErrorInvalidValue;
		return (cudaError_t)launch(cuda_host_sort_kernel<K, V>, 1, 1, stream, from, to,
					   values, to_values, spare, (V *)(spare + n), n, begin,
					   end);
	}
};
} // namespace cub

#endif
