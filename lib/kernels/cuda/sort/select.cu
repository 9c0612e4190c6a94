// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Elements of a line by rank. A block finds the key of that rank digit by digit, the most
 * significant first, with counts of 256 buckets in shared memory; only integers are added by
 * atomics. Then it reads the line once more: of equal elements the first ones are taken.
 */
#include "kernels/cuda/sort/keys.cuh"
#include "kernels/cuda/sum_before.cuh"

enum { DIGIT = 8, BUCKETS = 256 };
static_assert((int)BUCKETS == (int)BLOCK, "each thread has a bucket");

template <class T> struct select_lines {
	seeker<3> lines;
	cuda_keys keys;
	int64_t n, step[3];
	T *out;
	const T *in;
	int64_t *index;

	explicit select_lines(const cuda_sort *s)
	    : lines(s->lines), keys(s->keys), n(s->n), step{ s->step[0], s->step[1], s->step[2] },
	      out((T *)s->data[0]), in((const T *)s->data[1]), index((int64_t *)s->data[2])
	{
	}
	__device__ typename key_type<T>::K key(const int64_t *at, int64_t i) const
	{
		return key_of<T>(keys, in[at[1] + i * step[1]]);
	}
	__device__ void store(const int64_t *at, int64_t i, int64_t position) const
	{
		out[at[0] + i * step[0]] = in[at[1] + position * step[1]];
		index[at[2] + i * step[2]] = position;
	}
};

/* The key of that rank; *before becomes the number of smaller ones. */
template <class T>
static __device__ inline typename key_type<T>::K
key_of_rank(const select_lines<T> &w, const int64_t *at, int64_t rank, int64_t *before)
{
	typedef typename key_type<T>::K K;
	__shared__ uint32_t bucket[BUCKETS], found, found_before;
	K prefix = 0, mask = 0;

	*before = 0;
	for (int shift = w.keys.bits - DIGIT; shift >= 0; shift -= DIGIT) {
		uint32_t all;

		bucket[threadIdx.x] = 0;
		__syncthreads();
		for (int64_t i = threadIdx.x; i < w.n; i += BLOCK) {
			const K k = w.key(at, i);

			if ((k & mask) == prefix)
				atomicAdd(&bucket[k >> shift & (BUCKETS - 1)], 1u);
		}
		__syncthreads();
		const uint32_t count = bucket[threadIdx.x], less = sum_before(count, &all);
		const int64_t wanted = rank - *before;

		if (wanted >= less && wanted < (int64_t)less + count) {
			found = threadIdx.x;
			found_before = less;
		}
		__syncthreads();
		prefix |= (K)found << shift;
		mask |= (K)(BUCKETS - 1) << shift;
		*before += found_before;
		__syncthreads();
	}
	return prefix;
}

/* ---- one element ---- */

/*
 * The rank that `rank` means (enum select_rank). Of a median that is NaN, *first becomes the
 * position of the first NaN, otherwise it is -1.
 */
template <class T>
static __device__ inline int64_t rank_of(const select_lines<T> &w, const int64_t *at, int64_t rank,
					 int64_t *first)
{
	__shared__ unsigned long long numbers, least;

	*first = -1;
	if (rank >= 0)
		return rank;
	if (!w.keys.infinity)
		return (w.n - 1) / 2;
	if (threadIdx.x == 0) {
		numbers = 0;
		least = ~0ull;
	}
	__syncthreads();
	unsigned long long own = 0, nan = ~0ull;

	for (int64_t i = threadIdx.x; i < w.n; i += BLOCK)
		if (w.key(at, i) != greatest_key<T>())
			own++;
		else if (nan == ~0ull)
			nan = (unsigned long long)i;
	atomicAdd(&numbers, own);
	atomicMin(&least, nan);
	__syncthreads();
	if (rank == CUDA_RANK_MEDIAN && least != ~0ull)
		*first = (int64_t)least;
	return numbers ? ((int64_t)numbers - 1) / 2 : 0;
}

template <class T>
__global__ void __launch_bounds__(BLOCK) kth_kernel(select_lines<T> w, int64_t rank)
{
	typedef typename key_type<T>::K K;
	int64_t at[3] = {}, before, nan;

	w.lines.seek(blockIdx.x, at);
	rank = rank_of(w, at, rank, &nan);
	if (nan >= 0) { /* the same for all threads */
		if (threadIdx.x == 0)
			w.store(at, 0, nan);
		return;
	}
	const K k = key_of_rank(w, at, rank, &before);
	int64_t skip = rank - before; /* equal elements before the one */

	for (int64_t tile = 0; tile < w.n && skip >= 0; tile += BLOCK) {
		const int64_t i = tile + threadIdx.x;
		const bool same = i < w.n && w.key(at, i) == k;
		uint32_t all;
		const uint32_t mine = sum_before((uint32_t)same, &all);

		if (same && (int64_t)mine == skip)
			w.store(at, 0, i);
		skip -= all;
	}
}

/* ---- several elements ---- */

/* width: count, rounded up to a power of two. */
template <class T>
__global__ void __launch_bounds__(BLOCK)
	topk_kernel(select_lines<T> w, unsigned count, unsigned width)
{
	typedef typename key_type<T>::K K;
	__shared__ K key[CUDA_TOPK_MOST];
	__shared__ uint32_t position[CUDA_TOPK_MOST];
	int64_t at[3] = {}, before;

	w.lines.seek(blockIdx.x, at);
	const K k = key_of_rank(w, at, (int64_t)count - 1, &before);
	uint32_t less = 0, equal = (uint32_t)before; /* where the next ones go */

	for (unsigned i = threadIdx.x; i < width; i += BLOCK) {
		key[i] = (K) ~(K)0;
		position[i] = ~0u;
	}
	for (int64_t tile = 0; tile < w.n; tile += BLOCK) {
		const int64_t i = tile + threadIdx.x;
		const K mine = i < w.n ? w.key(at, i) : (K)0;
		const bool is_less = i < w.n && mine < k, is_equal = i < w.n && mine == k;
		uint32_t all;
		const uint32_t sum = sum_before((uint32_t)is_less << 16 | (uint32_t)is_equal, &all);
		const uint32_t to = is_less ? less + (sum >> 16) : equal + (sum & 0xffff);

		if ((is_less || is_equal) && to < count) {
			key[to] = mine;
			position[to] = (uint32_t)i;
		}
		less += all >> 16;
		equal += all & 0xffff;
	}
	__syncthreads();
	sort_shared(key, position, width, width);
	for (unsigned i = threadIdx.x; i < count; i += BLOCK)
		w.store(at, i, position[i]);
}

/* ---- launches ---- */

int cuda_launch_kth(const cuda_sort *s, int64_t rank, cudaStream_t stream)
{
	switch (s->keys.bits) {
#define X(BITS, T)                                                                    \
	case BITS:                                                                    \
		return launch(kth_kernel<T>, (unsigned)s->lines.numel, BLOCK, stream, \
			      select_lines<T>(s), rank);
		FOR_KEYS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_topk(const cuda_sort *s, cudaStream_t stream)
{
	unsigned width = 1;

	while (width < s->count)
		width *= 2;
	switch (s->keys.bits) {
#define X(BITS, T)                                                                     \
	case BITS:                                                                     \
		return launch(topk_kernel<T>, (unsigned)s->lines.numel, BLOCK, stream, \
			      select_lines<T>(s), (unsigned)s->count, width);
		FOR_KEYS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
