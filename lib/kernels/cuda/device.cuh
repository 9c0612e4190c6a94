/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared by the kernels: the offsets of the operands at a position, the size of a grid, the launch,
 * and lists of element types.
 */
#ifndef TENSOR_CUDA_DEVICE_CUH
#define TENSOR_CUDA_DEVICE_CUH

#include "kernels/cuda/launch.h"

/* The emulation checks that sums and products of narrow offsets stay within CUDA_NARROW_MAX. */
#ifdef TENSOR_CUDA_EMULATED
typedef cuda_host_offset narrow_offset;
#else
typedef int32_t narrow_offset;
#endif

/* Positions are unsigned, offsets signed: strides may be negative. */
struct narrow {
	typedef uint32_t position;
	typedef narrow_offset offset;
};
struct wide {
	typedef uint64_t position;
	typedef int64_t offset;
};
/* Divisions of 32 bits, for calls of up to CUDA_POSITIONS_MAX elements. */
struct mixed {
	typedef uint32_t position;
	typedef int64_t offset;
};

/* struct cuda_dims for N operands in D dimensions (0: any number), in one index width. */
template <int N, int D, class W> struct walk {
	enum { MAX = D ? D : TENSOR_MAX_DIMS };
	typedef typename W::position position;
	typedef typename W::offset offset;

	int ndim;
	position numel;
	position size[MAX];
	offset stride[N][MAX];

	explicit walk(const cuda_dims &d) : ndim(d.ndim), numel((position)d.numel)
	{
		for (int k = 0; k < MAX; k++) {
			bool there = k < d.ndim;

			size[k] = there ? (position)d.size[k] : 1;
			for (int n = 0; n < N; n++)
				stride[n][k] = there ? (offset)d.stride[n][k] : (offset)0;
		}
	}

	/* Adds position i's offsets to off. The outermost dimension needs no division. */
	__device__ void seek(position i, offset *off) const
	{
		const int last = (D ? D : ndim) - 1;

#pragma unroll
		for (int k = 0; k < MAX; k++) {
			if (k >= last)
				break;
			position q = i / size[k], r = i - q * size[k];

			for (int n = 0; n < N; n++)
				off[n] += (offset)r * stride[n][k];
			i = q;
		}
		if (last >= 0)
			for (int n = 0; n < N; n++)
				off[n] += (offset)i * stride[n][last];
	}
};

/* Not inlined, so that its registers are no part of the kernel's. The emulation has no such thing. */
#ifdef TENSOR_CUDA_EMULATED
#define COLD_FUNCTION inline
#else
#define COLD_FUNCTION __noinline__
#endif

enum { BLOCK = 256 };

/* Number of blocks for n elements; each thread of a kernel loops over several if n is larger. */
static inline unsigned grid_for(int64_t n, int64_t block)
{
	const int64_t most = 16384;
	int64_t blocks = (n + block - 1) / block;

	return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

template <class T> struct plain {
	typedef T type;
};

/* Launches a kernel. The arguments are converted to the types of its parameters first, because
 * cudaLaunchKernel() takes their addresses. */
#ifndef TENSOR_CUDA_EMULATED
template <class... P>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
	   typename plain<P>::type... args)
{
	void *argv[] = { (void *)&args... };

	return cudaLaunchKernel((const void *)kernel, grid, block, argv, 0, stream);
}
#endif

/* This thread's first element, and the distance to its next one. */
template <class I> static __device__ inline I first_element()
{
	return (I)blockIdx.x * blockDim.x + threadIdx.x;
}

template <class I> static __device__ inline I element_step()
{
	return (I)gridDim.x * blockDim.x;
}

/* The type to compute in. Integers use unsigned arithmetic, so that they wrap as on the CPU. */
template <class T> struct arith {
	typedef uint32_t type;
};
template <> struct arith<int64_t> {
	typedef uint64_t type;
};
template <> struct arith<float> {
	typedef float type;
};
template <> struct arith<double> {
	typedef double type;
};

template <class T> static inline T scalar_as(const tensor_scalar &s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT ? (T)s.d : (T)s.i;
}

#define FOR_INTS(X)            \
	X(TENSOR_U8, uint8_t)  \
	X(TENSOR_I8, int8_t)   \
	X(TENSOR_I16, int16_t) \
	X(TENSOR_I32, int32_t) \
	X(TENSOR_I64, int64_t)
#define FOR_FLOATS(X)        \
	X(TENSOR_F32, float) \
	X(TENSOR_F64, double)
#define FOR_NUMBERS(X) FOR_INTS(X) FOR_FLOATS(X)

/* Types for copies of bits, by size. */
#define FOR_BITS(X)    \
	X(1, uint8_t)  \
	X(2, uint16_t) \
	X(4, uint32_t) \
	X(8, uint64_t) \
	X(16, bits16)

struct alignas(16) bits16 {
	uint64_t w[2];
};

/* PACK elements, loaded and stored together. */
template <class T, int PACK> struct alignas(sizeof(T) * PACK) pack {
	T v[PACK];
};

/* For kernels that are templates of float and double. */
static __device__ inline float exponential(float x)
{
	return expf(x);
}

static __device__ inline double exponential(double x)
{
	return exp(x);
}

static __device__ inline float logarithm(float x)
{
	return logf(x);
}

static __device__ inline double logarithm(double x)
{
	return log(x);
}

#endif
