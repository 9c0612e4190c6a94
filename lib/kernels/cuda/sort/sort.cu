// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * sort: equal elements keep their order. A block sorts one or several short lines in shared memory.
 * Longer lines are sorted together by CUB's radix sort, which is stable: by the line and the key,
 * or, if both do not fit in 64 bits, by the key and then by the line. Values are copied by their
 * positions, so that zeros keep their signs and NaN their bits.
 */
#include "kernels/cuda/sort/keys.cuh"

#include <cub/device/device_radix_sort.cuh>

enum { SHARED = CUDA_SORT_SHORT, SORT_THREADS = 512 };

template <class T> struct sort_lines {
	seeker<3> lines;
	cuda_keys keys;
	int64_t n, count, step[3];
	T *out;
	const T *in;
	int64_t *index;

	explicit sort_lines(const cuda_sort *s)
	    : lines(s->lines), keys(s->keys), n(s->n),
	      count(s->count), step{ s->step[0], s->step[1], s->step[2] }, out((T *)s->data[0]),
	      in((const T *)s->data[1]), index((int64_t *)s->data[2])
	{
	}
	/* The element of rank i of a line with those offsets is at that position. */
	__device__ void store(const int64_t *at, int64_t i, int64_t position) const
	{
		out[at[0] + i * step[0]] = in[at[1] + position * step[1]];
		index[at[2] + i * step[2]] = position;
	}
};

/* Lines are padded to `width` items. */
template <class T>
__global__ void __launch_bounds__(SORT_THREADS) sort_short_kernel(sort_lines<T> s, unsigned width)
{
	typedef typename key_type<T>::K K;
	__shared__ K key[SHARED];
	__shared__ uint32_t position[SHARED];
	const uint64_t first = (uint64_t)blockIdx.x * (SHARED / width);

	for (unsigned i = threadIdx.x; i < SHARED; i += blockDim.x) {
		const uint64_t line = first + i / width;
		const unsigned p = i & (width - 1);
		int64_t at[3] = {};

		key[i] = (K) ~(K)0;
		position[i] = p;
		if (line >= s.lines.numel || p >= s.n)
			continue;
		s.lines.seek(line, at);
		key[i] = key_of<T>(s.keys, s.in[at[1] + p * s.step[1]]);
	}
	__syncthreads();
	sort_shared(key, position, width, SHARED);
	for (unsigned i = threadIdx.x; i < SHARED; i += blockDim.x) {
		const uint64_t line = first + i / width;
		const unsigned rank = i & (width - 1);
		int64_t at[3] = {};

		if (line >= s.lines.numel || rank >= s.count)
			continue;
		s.lines.seek(line, at);
		s.store(at, rank, position[i]);
	}
}

/* The key of each element, with the line above its bits if they are `bits` < 64. */
template <class T>
__global__ void sort_keys_kernel(sort_lines<T> s, int bits, uint64_t *key, uint32_t *number)
{
	const uint64_t n = (uint64_t)s.n, all = n * s.lines.numel;

	for (uint64_t i = first_element<uint64_t>(); i < all; i += element_step<uint64_t>()) {
		const uint64_t line = i / n;
		int64_t at[3] = {};

		s.lines.seek(line, at);
		key[i] = key_of<T>(s.keys, s.in[at[1] + (int64_t)(i - line * n) * s.step[1]]);
		if (bits < 64)
			key[i] |= line << bits;
		number[i] = (uint32_t)i;
	}
}

/* The line of each element, in the order of the keys. */
__global__ void sort_by_line_kernel(uint64_t n, uint64_t all, const uint32_t *order, uint64_t *key)
{
	for (uint64_t i = first_element<uint64_t>(); i < all; i += element_step<uint64_t>())
		key[i] = order[i] / n;
}

template <class T> __global__ void sort_store_kernel(sort_lines<T> s, const uint32_t *order)
{
	const uint64_t count = (uint64_t)s.count, all = count * s.lines.numel;

	for (uint64_t i = first_element<uint64_t>(); i < all; i += element_step<uint64_t>()) {
		const uint64_t line = i / count;
		const int64_t rank = (int64_t)(i - line * count);
		const uint64_t from = line * (uint64_t)s.n;
		int64_t at[3] = {};

		s.lines.seek(line, at);
		s.store(at, rank, (int64_t)(order[from + (uint64_t)rank] - from));
	}
}

/* ---- launches ---- */

template <class T> static int sort_short(const cuda_sort *s, cudaStream_t stream)
{
	unsigned width = 1;

	while (width < s->n)
		width *= 2;
	const int64_t lines = SHARED / width;

	return launch(sort_short_kernel<T>, (unsigned)((s->lines.numel + lines - 1) / lines),
		      SORT_THREADS, stream, sort_lines<T>(s), width);
}

int cuda_launch_sort_short(const cuda_sort *s, cudaStream_t stream)
{
	switch (s->keys.bits) {
#define X(BITS, T) \
	case BITS: \
		return sort_short<T>(s, stream);
		FOR_KEYS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int radix_sort(const cuda_sort *s, cuda_sort_scratch *m, const uint32_t *numbers,
		      uint32_t *order, int bits, cudaStream_t stream)
{
	return cub::DeviceRadixSort::SortPairs(m->temporary, m->nbytes, (const uint64_t *)m->key,
					       m->sorted, numbers, order,
					       (int)(s->n * s->lines.numel), 0, bits, stream);
}

template <class T>
static int sort_long(const cuda_sort *s, cuda_sort_scratch *m, int line_bits, cudaStream_t stream)
{
	const int64_t all = s->n * s->lines.numel;
	const bool both = s->keys.bits + line_bits <= 64;
	const uint32_t *order = m->order;
	int err = launch(sort_keys_kernel<T>, grid_for(all, BLOCK), BLOCK, stream, sort_lines<T>(s),
			 both ? s->keys.bits : 64, m->key, m->number);

	if (!err)
		err = radix_sort(s, m, m->number, m->order, both ? s->keys.bits + line_bits : 64,
				 stream);
	if (!err && !both) {
		err = launch(sort_by_line_kernel, grid_for(all, BLOCK), BLOCK, stream,
			     (uint64_t)s->n, (uint64_t)all, (const uint32_t *)m->order, m->key);
		if (!err)
			err = radix_sort(s, m, m->order, m->number, line_bits, stream);
		order = m->number;
	}
	return err ? err :
		     launch(sort_store_kernel<T>, grid_for(s->count * s->lines.numel, BLOCK), BLOCK,
			    stream, sort_lines<T>(s), order);
}

int cuda_launch_sort_long(const cuda_sort *s, cuda_sort_scratch *m, cudaStream_t stream)
{
	int line_bits = 0;

	while ((int64_t)1 << line_bits < s->lines.numel)
		line_bits++;
	if (!m->temporary)
		return radix_sort(s, m, m->number, m->order, 64, stream);
	switch (s->keys.bits) {
#define X(BITS, T) \
	case BITS: \
		return sort_long<T>(s, m, line_bits, stream);
		FOR_KEYS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
