/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elementwise kernels: flat_kernel for contiguous operands, strided_kernel for others. Template
 * parameters: Op, called with N inputs of type Op::In, returns Op::Out; D, the number of
 * dimensions (1, 2, or 0 for any); W, the index width.
 */
#ifndef TENSOR_CUDA_ELEMENTWISE_CUH
#define TENSOR_CUDA_ELEMENTWISE_CUH

#include "kernels/cuda/device.cuh"

#include <string.h>

/* Input k is scalar[k] if data[k] is NULL, for all threads. */
template <class T, int N> struct inputs {
	const char *data[N];
	T scalar[N];
};

template <class Op>
static __device__ inline typename Op::Out apply(const Op &op, const typename Op::In (&x)[1])
{
	return op(x[0]);
}

template <class Op>
static __device__ inline typename Op::Out apply(const Op &op, const typename Op::In (&x)[2])
{
	return op(x[0], x[1]);
}

template <class Op, int N>
__global__ void flat_kernel(int64_t n, typename Op::Out *out, inputs<typename Op::In, N> in, Op op)
{
	typedef typename Op::In T;

	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>()) {
		T x[N];

#pragma unroll
		for (int k = 0; k < N; k++)
			x[k] = in.data[k] ? ((const T *)in.data[k])[i] : in.scalar[k];
		out[i] = apply(op, x);
	}
}

template <class Op, int N, int D, class W>
__global__ void strided_kernel(walk<N + 1, D, W> w, char *out, inputs<typename Op::In, N> in, Op op)
{
	typedef typename Op::In T;
	typedef typename W::position position;

	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		typename W::offset off[N + 1] = {};
		T x[N];

		w.seek(i, off);
#pragma unroll
		for (int k = 0; k < N; k++)
			x[k] = in.data[k] ? *(const T *)(in.data[k] + off[k + 1]) : in.scalar[k];
		*(typename Op::Out *)(out + off[0]) = apply(op, x);
	}
}

template <class Op, int N, int D, class W>
static int strided(const cuda_pointwise *p, const inputs<typename Op::In, N> &in, Op op,
		   cudaStream_t stream)
{
	return launch(strided_kernel<Op, N, D, W>, grid_for(p->dims.numel, BLOCK), BLOCK, stream,
		      walk<N + 1, D, W>(p->dims), p->data[0], in, op);
}

template <class Op, int N>
static int elementwise(const cuda_pointwise *p, Op op, cudaStream_t stream)
{
	inputs<typename Op::In, N> in;

	for (int k = 0; k < N; k++) {
		in.data[k] = p->data[k + 1];
		memcpy(&in.scalar[k], &p->scalar[k + 1], sizeof(in.scalar[k]));
	}
	if (p->flat)
		return launch(flat_kernel<Op, N>, grid_for(p->dims.numel, BLOCK), BLOCK, stream,
			      p->dims.numel, (typename Op::Out *)p->data[0], in, op);
	if (p->dims.wide)
		return strided<Op, N, 0, wide>(p, in, op, stream);
	switch (p->dims.ndim) {
	case 1:
		return strided<Op, N, 1, narrow>(p, in, op, stream);
	case 2:
		return strided<Op, N, 2, narrow>(p, in, op, stream);
	default:
		return strided<Op, N, 0, narrow>(p, in, op, stream);
	}
}

#endif
