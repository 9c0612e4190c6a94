// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fill and copy. A copy without conversion moves bits. A conversion selects the source's dtype at
 * run time inside the kernel, which makes one kernel for each destination dtype instead of one for
 * each pair; all threads take the same branch, and memory bandwidth is the limit.
 */
#include "kernels/cuda/pointwise/formula.cuh"

template <class T> struct same_bits : formula<1, T, T, T, 16> {
	using formula<1, T, T, T, 16>::formula;

	__device__ T operator()(T x) const
	{
		return x;
	}
};

template <class T> static int copy_bits(const cuda_pointwise *p, cudaStream_t stream)
{
	return elementwise<same_bits<T>, T, T, T>(p, same_bits<T>(p), stream);
}

/* Bits of `itemsize` bytes from operand 1, a tensor or a scalar. */
static int move_bits(const cuda_pointwise *p, int itemsize, cudaStream_t stream)
{
	switch (itemsize) {
#define X(N, T) \
	case N: \
		return copy_bits<T>(p, stream);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_bits(const cuda_pointwise *p, int itemsize, cudaStream_t stream)
{
	return move_bits(p, itemsize, stream);
}

/* ---- conversions ---- */

/* The type of a bool element, stored as 0 or 1: conversion to it compares with zero. */
struct truth {
	uint8_t v;
};

/* The floats of 8 bits. */
struct e4m3fn {
	uint8_t bits;
};
struct e5m2 {
	uint8_t bits;
};

/* The value of an element: of reduced floats an f32. */
template <class T> static __device__ inline T value_of(T x)
{
	return x;
}

static __device__ inline float value_of(f16 x)
{
	return x;
}

static __device__ inline float value_of(bf16 x)
{
	return x;
}

static __device__ inline float value_of(e4m3fn x)
{
	return e4m3fn_to_f32(x.bits);
}

static __device__ inline float value_of(e5m2 x)
{
	return e5m2_to_f32(x.bits);
}

static __device__ inline bool value_of(truth x)
{
	return x.v != 0;
}

template <class T> static __device__ inline T real_part(T x)
{
	return x;
}

template <class T> static __device__ inline T real_part(complex_of<T> x)
{
	return x.re;
}

/* Converts values as convert.c of the CPU does. */
template <class To> struct convert {
	template <class From> static __device__ To from(From x)
	{
		return (To)real_part(x);
	}
};

/* Negative floats become unsigned integers by way of i64. */
#define CONVERT_UNSIGNED(T)                                            \
	template <> struct convert<T> {                                \
		template <class From> static __device__ T from(From x) \
		{                                                      \
			return (T)(int64_t)real_part(x);               \
		}                                                      \
	};
CONVERT_UNSIGNED(uint8_t)
CONVERT_UNSIGNED(uint16_t)
CONVERT_UNSIGNED(uint32_t)

template <> struct convert<uint64_t> {
	template <class From> static __device__ uint64_t from(From x)
	{
		return (uint64_t)x;
	}
	static __device__ uint64_t from(double x)
	{
		return f64_to_u64(x);
	}
	static __device__ uint64_t from(float x)
	{
		return f64_to_u64(x);
	}
	static __device__ uint64_t from(complex_f32 x)
	{
		return f64_to_u64(x.re);
	}
	static __device__ uint64_t from(complex_f64 x)
	{
		return f64_to_u64(x.re);
	}
};

template <> struct convert<truth> {
	template <class From> static __device__ truth from(From x)
	{
		truth t;

		t.v = x != From(0);
		return t;
	}
};

#define CONVERT_REDUCED(T, CONVERSION)                                 \
	template <> struct convert<T> {                                \
		template <class From> static __device__ T from(From x) \
		{                                                      \
			T t;                                           \
                                                                       \
			t.bits = CONVERSION((float)real_part(x));      \
			return t;                                      \
		}                                                      \
	};
CONVERT_REDUCED(e4m3fn, f32_to_e4m3fn)
CONVERT_REDUCED(e5m2, f32_to_e5m2)

template <> struct convert<f16> {
	template <class From> static __device__ f16 from(From x)
	{
		return f16((float)real_part(x));
	}
};

template <> struct convert<bf16> {
	template <class From> static __device__ bf16 from(From x)
	{
		return bf16((float)real_part(x));
	}
};

template <class T> struct convert<complex_of<T>> {
	template <class From> static __device__ complex_of<T> from(From x)
	{
		return complex_of<T>((T)x);
	}
	template <class U> static __device__ complex_of<T> from(complex_of<U> x)
	{
		return complex_of<T>((T)x.re, (T)x.im);
	}
};

#define FOR_DTYPES(X)               \
	X(TENSOR_BOOL, truth)       \
	FOR_NUMBERS(X)              \
	X(TENSOR_U16, uint16_t)     \
	X(TENSOR_U32, uint32_t)     \
	X(TENSOR_U64, uint64_t)     \
	X(TENSOR_F16, f16)          \
	X(TENSOR_BF16, bf16)        \
	X(TENSOR_C64, complex_f32)  \
	X(TENSOR_C128, complex_f64) \
	X(TENSOR_F8_E4M3FN, e4m3fn) \
	X(TENSOR_F8_E5M2, e5m2)

template <class To> static __device__ inline To load_as(const char *p, int from)
{
	switch (from) {
#define X(D, T) \
	case D: \
		return convert<To>::from(value_of(*(const T *)p));
		FOR_DTYPES(X)
#undef X
	default:
		return To();
	}
}

template <class To, class W>
__global__ void convert_kernel(walk<2, 0, W> w, char *out, const char *in, int from)
{
	typedef typename W::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[2] = {};

		w.seek(i, off);
		*(To *)(out + off[0]) = load_as<To>(in + off[1], from);
	}
}

template <class To> static int convert_to(const cuda_pointwise *p, int from, cudaStream_t stream)
{
	unsigned grid = grid_for(p->dims.numel, BLOCK);

	if (p->dims.wide)
		return launch(convert_kernel<To, wide>, grid, BLOCK, stream,
			      walk<2, 0, wide>(p->dims), p->data[0], p->data[1], from);
	return launch(convert_kernel<To, narrow>, grid, BLOCK, stream, walk<2, 0, narrow>(p->dims),
		      p->data[0], p->data[1], from);
}

int cuda_launch_convert(const cuda_pointwise *p, int to, int from, cudaStream_t stream)
{
	switch (to) {
#define X(D, T) \
	case D: \
		return convert_to<T>(p, from, stream);
		FOR_DTYPES(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
