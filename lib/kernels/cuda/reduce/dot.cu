// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * dot and bincount. The sum of each block of dot is added in the order of the blocks, whose number
 * depends on the length alone; floats are summed in f64. Counts are integers: their order does not
 * matter.
 */
#include "kernels/cuda/launch_reduce.h"
#include "kernels/cuda/pointwise/complex.cuh"
#include "kernels/cuda/reduce/rows.cuh"

/* The type that products of elements are summed in. */
template <class T> struct dot_sum {
	typedef typename arith<T>::type type;
};
template <> struct dot_sum<float> {
	typedef double type;
};
template <> struct dot_sum<f16> {
	typedef double type;
};
template <> struct dot_sum<bf16> {
	typedef double type;
};
template <> struct dot_sum<complex_of<float>> {
	typedef complex_of<double> type;
};
template <> struct dot_sum<complex_of<double>> {
	typedef complex_of<double> type;
};

template <class T> static __device__ inline T conjugate_of(T x)
{
	return x;
}

template <class T> static __device__ inline complex_of<T> conjugate_of(complex_of<T> x)
{
	return complex_of<T>(x.re, -x.im);
}

template <class T> __global__ void __launch_bounds__(BLOCK) dot_kernel(cuda_dot d, void *partial)
{
	typedef typename dot_sum<T>::type A;
	typedef typename number<T>::compute C;
	A sum = 0;

	for (int64_t i = first_element<int64_t>(); i < d.n; i += element_step<int64_t>()) {
		const A a = (A)(C)((const T *)d.a)[i * d.a_stride];
		const A b = (A)(C)((const T *)d.b)[i * d.b_stride];

		sum = sum + (d.conjugate ? conjugate_of(a) : a) * b;
	}
	sum = join_lanes(plus(), sum);
	if (threadIdx.x == 0)
		((A *)partial)[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(BLOCK) dot_total_kernel(T *out, const void *partial, int blocks)
{
	typedef typename dot_sum<T>::type A;
	typedef typename number<T>::compute C;
	A sum = 0;

	for (int i = (int)threadIdx.x; i < blocks; i += BLOCK)
		sum = sum + ((const A *)partial)[i];
	sum = join_lanes(plus(), sum);
	if (threadIdx.x == 0)
		*out = number<T>::store((C)sum);
}

template <class T>
static int dot_of(const cuda_dot *d, void *out, void *partial, int blocks, cudaStream_t stream)
{
	static_assert(sizeof(typename dot_sum<T>::type) <= CUDA_DOT_PARTIAL, "a sum fits");
	const int err = launch(dot_kernel<T>, (unsigned)blocks, BLOCK, stream, *d, partial);

	return err ? err :
		     launch(dot_total_kernel<T>, 1, BLOCK, stream, (T *)out, (const void *)partial,
			    blocks);
}

int cuda_launch_dot(const cuda_dot *d, void *out, void *partial, int blocks, int dtype,
		    cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return dot_of<T>(d, out, partial, blocks, stream);
		FOR_NUMBERS(X)
		FOR_REDUCED_FLOATS(X)
		X(TENSOR_C64, complex_of<float>)
		X(TENSOR_C128, complex_of<double>)
#undef X
		/* The same bits as of signed integers. */
	case TENSOR_U16:
		return dot_of<int16_t>(d, out, partial, blocks, stream);
	case TENSOR_U32:
		return dot_of<int32_t>(d, out, partial, blocks, stream);
	case TENSOR_U64:
		return dot_of<int64_t>(d, out, partial, blocks, stream);
	default:
		return CUDA_NO_DTYPE;
	}
}

/* ---- bincount ---- */

static __device__ inline unsigned long long ordered(int64_t x)
{
	return (unsigned long long)x ^ 1ull << 63;
}

template <class T>
__global__ void __launch_bounds__(BLOCK)
	count_range_kernel(const T *self, int64_t n, unsigned long long *range)
{
	unsigned long long least = ~0ull, most = 0;

	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>()) {
		const unsigned long long x = ordered((int64_t)self[i]);

		least = x < least ? x : least;
		most = x > most ? x : most;
	}
	for (int half = 16; half; half /= 2) {
		const unsigned long long a = __shfl_xor_sync(0xffffffff, least, half);
		const unsigned long long b = __shfl_xor_sync(0xffffffff, most, half);

		least = a < least ? a : least;
		most = b > most ? b : most;
	}
	if (threadIdx.x % 32 == 0) {
		atomicMin(&range[0], least);
		atomicMax(&range[1], most);
	}
}

enum { FEW_BINS = 2048 }; /* that each block counts in shared memory */

template <class T>
__global__ void __launch_bounds__(BLOCK)
	count_few_kernel(const T *self, int64_t n, unsigned long long *counts, int bins)
{
	__shared__ unsigned own[FEW_BINS];

	for (int k = (int)threadIdx.x; k < bins; k += BLOCK)
		own[k] = 0;
	__syncthreads();
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>()) {
		const int64_t x = (int64_t)self[i];

		if (x >= 0 && x < bins)
			atomicAdd(&own[x], 1u);
	}
	__syncthreads();
	for (int k = (int)threadIdx.x; k < bins; k += BLOCK)
		if (own[k])
			atomicAdd(&counts[k], (unsigned long long)own[k]);
}

template <class T>
__global__ void count_kernel(const T *self, int64_t n, unsigned long long *counts, int64_t bins)
{
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>()) {
		const int64_t x = (int64_t)self[i];

		if (x >= 0 && x < bins)
			atomicAdd(&counts[x], 1ull);
	}
}

#define FOR_COUNTED(X)          \
	FOR_INTS(X)             \
	X(TENSOR_U16, uint16_t) \
	X(TENSOR_U32, uint32_t)

/* Blocks of a launch: each reads many elements, because each adds to all counts at its end. */
static unsigned count_grid(int64_t n)
{
	const int64_t blocks = (n + 16 * BLOCK - 1) / (16 * BLOCK);

	return (unsigned)(blocks < 1 ? 1 : blocks < 1024 ? blocks : 1024);
}

int cuda_launch_count_range(const void *self, int64_t n, unsigned long long *range, int dtype,
			    cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                    \
	case D:                                                                    \
		return launch(count_range_kernel<T>, count_grid(n), BLOCK, stream, \
			      (const T *)self, n, range);
		FOR_COUNTED(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_count(const void *self, int64_t n, unsigned long long *counts, int64_t bins,
		      int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                                   \
	case D:                                                                                   \
		return bins <= FEW_BINS ? launch(count_few_kernel<T>, count_grid(n), BLOCK,       \
						 stream, (const T *)self, n, counts, (int)bins) : \
					  launch(count_kernel<T>, grid_for(n, BLOCK), BLOCK,      \
						 stream, (const T *)self, n, counts, bins);
		FOR_COUNTED(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
