/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Keys of elements, and sorting of keys and positions in shared memory. */
#ifndef TENSOR_CUDA_KEYS_CUH
#define TENSOR_CUDA_KEYS_CUH

#include "kernels/cuda/index/index.cuh"
#include "kernels/cuda/launch_sort.h"

/* Bits of an element of type T, an unsigned integer, and its key. */
template <class T> struct key_type {
	typedef uint32_t K;
};
template <> struct key_type<uint64_t> {
	typedef uint64_t K;
};

template <class T> static __device__ inline typename key_type<T>::K key_of(const cuda_keys &k, T x)
{
	typedef typename key_type<T>::K K;
	const T sign = (T)((T)1 << (sizeof(T) * 8 - 1)), twice = (T)(x << 1);

	if (k.infinity) {
		x = x & sign ? (T)~x : (T)(x | sign);
		x = twice ? x : sign;
		x = twice > (T)k.infinity ? (T) ~(T)0 : x;
	} else if (k.is_signed) {
		x ^= sign;
	}
	return (K)(T)(x ^ (T)k.flip);
}

/* The greatest key: NaN of floats that are not flipped. */
template <class T> static __device__ inline typename key_type<T>::K greatest_key()
{
	return (typename key_type<T>::K)(T) ~(T)0;
}

/*
 * Sorts groups of `width` of `all` items, powers of two, by key and then by position. Every thread
 * of the block calls it, after a barrier; it ends with one.
 */
template <class K>
static __device__ inline void sort_shared(K *key, uint32_t *at, unsigned width, unsigned all)
{
	for (unsigned size = 2; size <= width; size *= 2)
		for (unsigned half = size / 2; half; half /= 2) {
			for (unsigned p = threadIdx.x; p < all / 2; p += blockDim.x) {
				const unsigned i = p / half * 2 * half + p % half, j = i + half;
				const bool up = !(i & (width - 1) & size) || size == width;
				const K a = key[i], b = key[j];
				const uint32_t x = at[i], y = at[j];

				if ((a > b || (a == b && x > y)) == up) {
					key[i] = b;
					key[j] = a;
					at[i] = y;
					at[j] = x;
				}
			}
			__syncthreads();
		}
}

/* Bits of elements by their number. */
#define FOR_KEYS(X)     \
	X(8, uint8_t)   \
	X(16, uint16_t) \
	X(32, uint32_t) \
	X(64, uint64_t)

#endif
