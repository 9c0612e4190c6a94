// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* add, mul, div, relu and its gradient, conjugates. Results have the same bits as those of lib/kernels/cpu. */
#include "kernels/cuda/elementwise.cuh"

template <class T> struct binary {
	typedef T In;
	typedef T Out;
};

template <class T> struct add_op : binary<T> {
	typedef typename arith<T>::type A;

	__device__ T operator()(T x, T y) const
	{
		return (T)((A)x + (A)y);
	}
};

template <class T> struct add_alpha_op : binary<T> {
	typedef typename arith<T>::type A;
	T alpha;

	__device__ T operator()(T x, T y) const
	{
		return (T)((A)x + (A)alpha * (A)y);
	}
};

template <class T> struct mul_op : binary<T> {
	typedef typename arith<T>::type A;

	__device__ T operator()(T x, T y) const
	{
		return (T)((A)x * (A)y);
	}
};

template <class T> struct div_op : binary<T> {
	__device__ T operator()(T x, T y) const
	{
		return x / y;
	}
};

struct or_op : binary<uint8_t> {
	__device__ uint8_t operator()(uint8_t x, uint8_t y) const
	{
		return x | y;
	}
};

struct and_op : binary<uint8_t> {
	__device__ uint8_t operator()(uint8_t x, uint8_t y) const
	{
		return x & y;
	}
};

/* A NaN is kept: only values below zero are replaced. */
template <class T> struct relu_op : binary<T> {
	__device__ T operator()(T x) const
	{
		return x < T(0) ? T(0) : x;
	}
};

template <> struct relu_op<uint8_t> : binary<uint8_t> {
	__device__ uint8_t operator()(uint8_t x) const
	{
		return x;
	}
};

template <class T> struct alignas(2 * sizeof(T)) complex_of {
	T re, im;
};

template <class T> struct conj_op : binary<complex_of<T>> {
	__device__ complex_of<T> operator()(complex_of<T> x) const
	{
		x.im = -x.im;
		return x;
	}
};

/* x is the gradient of the output, y the output of the forward. */
template <class T> struct relu_backward_op : binary<T> {
	__device__ T operator()(T x, T y) const
	{
		return y <= T(0) ? T(0) : x;
	}
};

static int add(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_BOOL:
		return elementwise<or_op, 2>(p, or_op(), stream);
#define X(D, T) \
	case D: \
		return elementwise<add_op<T>, 2>(p, add_op<T>(), stream);
		FOR_NUMBERS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class T> static int add_alpha_of(const cuda_pointwise *p, cudaStream_t stream)
{
	add_alpha_op<T> op;

	op.alpha = scalar_as<T>(p->alpha);
	return elementwise<add_alpha_op<T>, 2>(p, op, stream);
}

static int add_alpha(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return add_alpha_of<T>(p, stream);
		FOR_NUMBERS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int mul(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_BOOL:
		return elementwise<and_op, 2>(p, and_op(), stream);
#define X(D, T) \
	case D: \
		return elementwise<mul_op<T>, 2>(p, mul_op<T>(), stream);
		FOR_NUMBERS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int divide(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return elementwise<div_op<T>, 2>(p, div_op<T>(), stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int relu_backward(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return elementwise<relu_backward_op<T>, 2>(p, relu_backward_op<T>(), stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_binary(enum cuda_binary which, const cuda_pointwise *p, int dtype,
		       cudaStream_t stream)
{
	switch (which) {
	case CUDA_ADD:
		return add(p, dtype, stream);
	case CUDA_ADD_ALPHA:
		return add_alpha(p, dtype, stream);
	case CUDA_MUL:
		return mul(p, dtype, stream);
	case CUDA_DIV:
		return divide(p, dtype, stream);
	case CUDA_RELU_BACKWARD:
		return relu_backward(p, dtype, stream);
	}
	return cudaErrorInvalidValue;
}

static int relu(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return elementwise<relu_op<T>, 1>(p, relu_op<T>(), stream);
		FOR_NUMBERS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

static int conjugate(const cuda_pointwise *p, int dtype, cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_C64:
		return elementwise<conj_op<float>, 1>(p, conj_op<float>(), stream);
	case TENSOR_C128:
		return elementwise<conj_op<double>, 1>(p, conj_op<double>(), stream);
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_unary(enum cuda_unary which, const cuda_pointwise *p, int dtype,
		      cudaStream_t stream)
{
	switch (which) {
	case CUDA_RELU:
		return relu(p, dtype, stream);
	case CUDA_CONJ:
		return conjugate(p, dtype, stream);
	}
	return cudaErrorInvalidValue;
}
