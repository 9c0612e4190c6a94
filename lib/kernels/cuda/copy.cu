// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fill and copy. A copy without conversion moves bits. A conversion selects the source's dtype at
 * run time inside the kernel, which makes one kernel for each destination dtype instead of one for
 * each pair; all threads take the same branch, and memory bandwidth is the limit.
 */
#include "kernels/cuda/elementwise.cuh"

template <class T> struct same_op {
	typedef T In;
	typedef T Out;

	__device__ T operator()(T x) const
	{
		return x;
	}
};

template <class T> static int copy_bits(const cuda_pointwise *p, cudaStream_t stream)
{
	return elementwise<same_op<T>, 1>(p, same_op<T>(), stream);
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

int cuda_launch_fill(const cuda_pointwise *p, int itemsize, cudaStream_t stream)
{
	return move_bits(p, itemsize, stream);
}

/* The type of a bool element, stored as 0 or 1: conversion to it compares with zero. */
struct truth {
	uint8_t v;
};

template <class To> struct convert {
	template <class From> static __device__ To from(From x)
	{
		return (To)x;
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

template <class To> static __device__ inline To load_as(const char *p, int from)
{
	switch (from) {
#define X(D, T) \
	case D: \
		return convert<To>::from(*(const T *)p);
		FOR_NUMBERS(X)
#undef X
	default: /* bool */
		return convert<To>::from(*(const uint8_t *)p);
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

static bool converts(int dtype)
{
	return (dtype >= TENSOR_BOOL && dtype <= TENSOR_I64) || dtype == TENSOR_F32 ||
	       dtype == TENSOR_F64;
}

int cuda_launch_copy(const cuda_pointwise *p, int to, int from, int itemsize, cudaStream_t stream)
{
	if (to == from)
		return move_bits(p, itemsize, stream);
	if (!converts(from))
		return CUDA_NO_DTYPE;
	switch (to) {
	case TENSOR_BOOL:
		return convert_to<truth>(p, from, stream);
#define X(D, T) \
	case D: \
		return convert_to<T>(p, from, stream);
		FOR_NUMBERS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
