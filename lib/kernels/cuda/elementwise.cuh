/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elementwise kernels: packed_kernel and flat_kernel for contiguous operands, aligned to 16 bytes or not, strided_kernel for
 * others. Template
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

/* The result for element i of contiguous operands. */
template <class Op, int N>
static __device__ inline typename Op::Out apply_at(const Op &op,
						   const inputs<typename Op::In, N> &in, int64_t i)
{
	typename Op::In x[N];

#pragma unroll
	for (int k = 0; k < N; k++)
		x[k] = in.data[k] ? ((const typename Op::In *)in.data[k])[i] : in.scalar[k];
	return apply(op, x);
}

template <class Op, int N>
__global__ void flat_kernel(int64_t n, typename Op::Out *out, inputs<typename Op::In, N> in, Op op)
{
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>())
		out[i] = apply_at(op, in, i);
}

/* PACK elements, loaded and stored together. */
template <class T, int PACK> struct alignas(sizeof(T) * PACK) pack {
	T v[PACK];
};

/* The elements of 16 bytes in the larger of both types: 1 or more. */
template <class A, class B> struct pack_size {
	enum {
		LARGER = sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B),
		VALUE = 16 / LARGER,
	};
};

/* The last n % PACK elements are the last thread's. */
template <class Op, int N, int PACK>
__global__ void packed_kernel(int64_t n, typename Op::Out *out, inputs<typename Op::In, N> in,
			      Op op)
{
	typedef typename Op::In T;
	typedef typename Op::Out R;
	const int64_t packs = n / PACK;

	for (int64_t i = first_element<int64_t>(); i < packs; i += element_step<int64_t>()) {
		pack<T, PACK> x[N];
		pack<R, PACK> y;

#pragma unroll
		for (int k = 0; k < N; k++)
			if (in.data[k])
				x[k] = ((const pack<T, PACK> *)in.data[k])[i];
#pragma unroll
		for (int j = 0; j < PACK; j++) {
			T element[N];

#pragma unroll
			for (int k = 0; k < N; k++)
				element[k] = in.data[k] ? x[k].v[j] : in.scalar[k];
			y.v[j] = apply(op, element);
		}
		((pack<R, PACK> *)out)[i] = y;
	}
	if (first_element<int64_t>() != element_step<int64_t>() - 1)
		return;
	for (int64_t i = packs * PACK; i < n; i++)
		out[i] = apply_at(op, in, i);
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

/* Whether every operand is at a multiple of PACK of its elements. */
template <class In, class Out, int N, int PACK> static bool packable(const cuda_pointwise *p)
{
	uintptr_t odd = (uintptr_t)p->data[0] % (sizeof(Out) * PACK);

	for (int k = 0; k < N; k++)
		odd |= (uintptr_t)p->data[k + 1] % (sizeof(In) * PACK);
	return !odd;
}

template <class Op, int N>
static int flat(const cuda_pointwise *p, const inputs<typename Op::In, N> &in, Op op,
		cudaStream_t stream)
{
	enum { PACK = pack_size<typename Op::In, typename Op::Out>::VALUE };
	typename Op::Out *out = (typename Op::Out *)p->data[0];
	int64_t n = p->dims.numel;

	if (PACK > 1 && n >= PACK && packable<typename Op::In, typename Op::Out, N, PACK>(p))
		return launch(packed_kernel<Op, N, PACK>, grid_for(n / PACK, BLOCK), BLOCK, stream,
			      n, out, in, op);
	return launch(flat_kernel<Op, N>, grid_for(n, BLOCK), BLOCK, stream, n, out, in, op);
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
		return flat<Op, N>(p, in, op, stream);
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
