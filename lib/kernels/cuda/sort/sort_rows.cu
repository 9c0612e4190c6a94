// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* sort_rows: CUB's merge sort, which is stable, of the places of rows, which are compared element by element. */
#include "kernels/cuda/sort/keys.cuh"

#include <cub/device/device_merge_sort.cuh>

template <class T> struct row_order {
	cuda_keys keys;
	int64_t k;
	const T *rows;

	__device__ bool operator()(int64_t a, int64_t b) const
	{
		const T *x = rows + a * k, *y = rows + b * k;

		for (int64_t i = 0; i < k; i++) {
			const typename key_type<T>::K p = key_of<T>(keys, x[i]),
						      q = key_of<T>(keys, y[i]);

			if (p != q)
				return p < q;
		}
		return false;
	}
};

__global__ void places_kernel(int64_t n, int64_t *order)
{
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>())
		order[i] = i;
}

template <class T> static int sort_rows(cuda_sort_rows *s, cudaStream_t stream)
{
	const row_order<T> before = { s->keys, s->k, (const T *)s->rows };
	int err = s->temporary ? launch(places_kernel, grid_for(s->n, BLOCK), BLOCK, stream, s->n,
					s->order) :
				 0;

	return err ? err :
		     cub::DeviceMergeSort::StableSortKeys(s->temporary, s->nbytes, s->order, s->n,
							  before, stream);
}

int cuda_launch_sort_rows(cuda_sort_rows *s, cudaStream_t stream)
{
	switch (s->keys.bits) {
#define X(BITS, T) \
	case BITS: \
		return sort_rows<T>(s, stream);
		FOR_KEYS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
