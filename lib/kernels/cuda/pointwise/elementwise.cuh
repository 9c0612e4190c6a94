/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elementwise kernels: packed_kernel for contiguous operands, aligned to packs of elements,
 * strided_kernel for others. F is the function of an element:
 *
 *   F::N           the number of inputs, 1 to 3
 *   F::First       the type of the first one, F::In that of the others
 *   F::Out         the type of the result
 *   F::MOST        elements that a thread may compute together: few where code is long
 *
 * Operands in memory have the types A (the first input), B (the others) and R, which convert from
 * and to those.
 */
#ifndef TENSOR_CUDA_ELEMENTWISE_CUH
#define TENSOR_CUDA_ELEMENTWISE_CUH

#include "kernels/cuda/device.cuh"

#include <string.h>

/* Input k is a scalar, the same for all threads, if data[k] is NULL. */
template <class F> struct inputs {
	enum { OTHERS = F::N > 1 ? F::N - 1 : 1 };

	const char *data[F::N];
	typename F::First first;
	typename F::In other[OTHERS];
};

template <class F>
static __device__ inline typename F::Out apply(const F &f, typename F::First x,
					       const typename F::In *other)
{
	if constexpr (F::N == 1)
		return f(x);
	else if constexpr (F::N == 2)
		return f(x, other[0]);
	else
		return f(x, other[0], other[1]);
}

/* Whether f must not write because a divisor is zero. */
template <class F>
static __device__ inline auto is_refused(const F &f, int) -> decltype(f.zero, bool())
{
	return f.zero.refused && *f.zero.refused != ~0ull;
}

template <class F> static __device__ inline bool is_refused(const F &, long)
{
	return false;
}

/* The result for the elements at the offsets off[1], ... bytes (O[0] is the output's). */
template <class F, class A, class B, class O>
static __device__ inline typename F::Out apply_at(const F &f, const inputs<F> &in, const O *off)
{
	typename F::First x = in.data[0] ? (typename F::First) * (const A *)(in.data[0] + off[1]) :
					   in.first;
	typename F::In other[inputs<F>::OTHERS];

#pragma unroll
	for (int k = 1; k < F::N; k++)
		other[k - 1] = in.data[k] ?
				       (typename F::In) * (const B *)(in.data[k] + off[k + 1]) :
				       in.other[k - 1];
	return apply(f, x, other);
}

/* The elements of 16 bytes in the largest of the types, or F::MOST. */
template <class F, class A, class B, class R> struct pack_size {
	enum {
		INPUT = sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B),
		LARGEST = (int)INPUT > (int)sizeof(R) ? (int)INPUT : (int)sizeof(R),
		FIT = 16 / LARGEST,
		VALUE = (int)FIT < (int)F::MOST ? (int)FIT : (int)F::MOST,
	};
};

/* The last n % PACK elements are the last thread's. */
template <class F, class A, class B, class R, int PACK>
__global__ void packed_kernel(int64_t n, R *out, inputs<F> in, F f)
{
	enum { OTHERS = inputs<F>::OTHERS };
	const int64_t packs = n / PACK;

	if (is_refused(f, 0))
		return;
	for (int64_t i = first_element<int64_t>(); i < packs; i += element_step<int64_t>()) {
		pack<A, PACK> x = {};
		pack<B, PACK> other[OTHERS] = {};
		pack<R, PACK> y;

		if (in.data[0])
			x = ((const pack<A, PACK> *)in.data[0])[i];
#pragma unroll
		for (int k = 1; k < F::N; k++)
			if (in.data[k])
				other[k - 1] = ((const pack<B, PACK> *)in.data[k])[i];
#pragma unroll
		for (int j = 0; j < PACK; j++) {
			typename F::First a = in.data[0] ? (typename F::First)x.v[j] : in.first;
			typename F::In b[OTHERS];

#pragma unroll
			for (int k = 1; k < F::N; k++)
				b[k - 1] = in.data[k] ? (typename F::In)other[k - 1].v[j] :
							in.other[k - 1];
			y.v[j] = (R)apply(f, a, b);
		}
		((pack<R, PACK> *)out)[i] = y;
	}
	if (first_element<int64_t>() != element_step<int64_t>() - 1)
		return;
	for (int64_t i = packs * PACK; i < n; i++) {
		int64_t off[4] = { 0, i * (int64_t)sizeof(A), i * (int64_t)sizeof(B),
				   i * (int64_t)sizeof(B) };

		out[i] = (R)apply_at<F, A, B>(f, in, off);
	}
}

template <class F, class A, class B, class R>
__global__ void strided_kernel(walk<F::N + 1, 0, mixed> w, char *out, inputs<F> in, F f)
{
	typedef mixed::position position;

	if (is_refused(f, 0))
		return;
	for (position i = first_element<position>(); i < w.numel; i += element_step<position>()) {
		mixed::offset off[F::N + 1] = {};

		w.seek(i, off);
		*(R *)(out + off[0]) = (R)apply_at<F, A, B>(f, in, off);
	}
}

/* Whether every operand is at a multiple of PACK of its elements. */
template <class A, class B, class R, int PACK> static bool packable(const cuda_pointwise *p, int n)
{
	uintptr_t odd = (uintptr_t)p->data[0] % (sizeof(R) * PACK) |
			(uintptr_t)p->data[1] % (sizeof(A) * PACK);

	for (int k = 2; k <= n; k++)
		odd |= (uintptr_t)p->data[k] % (sizeof(B) * PACK);
	return !odd;
}

/* Whether the operands have elements of the kernel's sizes. */
template <class A, class B, class R> static bool has_sizes(const cuda_pointwise *p, int n)
{
	bool same = p->itemsize[0] == sizeof(R) && (!p->data[1] || p->itemsize[1] == sizeof(A));

	for (int k = 2; k <= n; k++)
		same &= !p->data[k] || p->itemsize[k] == sizeof(B);
	return same;
}

template <class F, class A, class B, class R>
static int elementwise(const cuda_pointwise *p, F f, cudaStream_t stream)
{
	enum { PACK = pack_size<F, A, B, R>::VALUE };
	int64_t n = p->dims.numel;
	inputs<F> in = {};

	if (!has_sizes<A, B, R>(p, F::N))
		return CUDA_NO_DTYPE;
	memcpy(&in.first, &p->scalar[1], sizeof(in.first));
	for (int k = 0; k < F::N; k++) {
		in.data[k] = p->data[k + 1];
		if (k)
			memcpy(&in.other[k - 1], &p->scalar[k + 1], sizeof(in.other[0]));
	}
	if constexpr (PACK > 1)
		if (p->flat && n >= PACK && packable<A, B, R, PACK>(p, F::N))
			return launch(packed_kernel<F, A, B, R, PACK>, grid_for(n / PACK, BLOCK),
				      BLOCK, stream, n, (R *)p->data[0], in, f);
	if (n > CUDA_POSITIONS_MAX)
		return CUDA_TOO_WIDE;
	return launch(strided_kernel<F, A, B, R>, grid_for(n, BLOCK), BLOCK, stream,
		      walk<F::N + 1, 0, mixed>(p->dims), p->data[0], in, f);
}

#endif
