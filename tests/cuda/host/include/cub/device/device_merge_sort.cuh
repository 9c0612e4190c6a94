/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Stands for CUB's stable sort by a comparison: one thread merges runs of twice the length. */
#ifndef CUDA_HOST_CUB_MERGE_SORT_CUH
#define CUDA_HOST_CUB_MERGE_SORT_CUH

#include <cuda_runtime.h>

template <class K, class N, class F>
__global__ void cuda_host_merge_kernel(K *keys, K *spare, N n, F before)
{
	for (N length = 1; length < n; length *= 2) {
		for (N first = 0; first < n; first += 2 * length) {
			const N middle = first + length < n ? first + length : n;
			const N end = middle + length < n ? middle + length : n;
			N a = first, b = middle;

			for (N i = first; i < end; i++)
				spare[i] = b < end && (a == middle || before(keys[b], keys[a])) ?
						   keys[b++] :
						   keys[a++];
		}
		for (N i = 0; i < n; i++)
			keys[i] = spare[i];
	}
}

namespace cub
{
struct DeviceMergeSort {
	template <class K, class N, class F>
	static cudaError_t StableSortKeys(void *temporary, size_t &nbytes, K *keys, N n, F before,
					  cudaStream_t stream = nullptr)
	{
		const size_t needed = (size_t)n * sizeof(K) + 1;

		if (!temporary) {
			nbytes = needed;
			return cudaSuccess;
		}
		if (nbytes < needed)
			return cudaErrorInvalidValue;
		return (cudaError_t)launch(cuda_host_merge_kernel<K, N, F>, 1, 1, stream, keys,
					   (K *)temporary, n, before);
	}
};
} // namespace cub

#endif
