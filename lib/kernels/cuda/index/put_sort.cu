// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The order in which positions are combined: a stable sort of them by the rows of the output. */
#include "kernels/cuda/index/index.cuh"

#include <cub/device/device_radix_sort.cuh>

__global__ void put_keys_kernel(seeker<3> place, cuda_indices x, const void *index, bool wide_keys,
				void *key, uint32_t *position, cuda_report bad)
{
	for (uint64_t i = first_element<uint64_t>(); i < place.numel;
	     i += element_step<uint64_t>()) {
		int64_t off[3] = {};

		place.seek(i, off);
		add_indices(x, index, off[2], i, bad, &off[0]);
		if (wide_keys)
			((uint64_t *)key)[i] = (uint64_t)off[0];
		else
			((uint32_t *)key)[i] = (uint32_t)off[0];
		position[i] = (uint32_t)i;
	}
}

int cuda_launch_put_keys(const cuda_put *p, cudaStream_t stream)
{
	return launch(put_keys_kernel, grid_for(p->place.numel, BLOCK), BLOCK, stream,
		      seeker<3>(p->place), p->index, (const void *)p->data[2], p->wide_keys, p->key,
		      p->position, p->bad);
}

template <class K>
static int sort(const cuda_put *p, void *temporary, size_t *nbytes, int bits, cudaStream_t stream)
{
	return cub::DeviceRadixSort::SortPairs(temporary, *nbytes, (const K *)p->key,
					       (K *)p->sorted, (const uint32_t *)p->position,
					       p->order, (int)p->place.numel, 0, bits, stream);
}

int cuda_launch_put_sort(const cuda_put *p, void *temporary, size_t *nbytes, cudaStream_t stream)
{
	int bits = 1;

	while (bits < 63 && (int64_t)1 << bits < p->keys.numel)
		bits++;
	return p->wide_keys ? sort<uint64_t>(p, temporary, nbytes, bits, stream) :
			      sort<uint32_t>(p, temporary, nbytes, bits, stream);
}
