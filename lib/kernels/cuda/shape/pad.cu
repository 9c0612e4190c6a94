// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Padding by reflection and replication. Its gradient gathers: a thread adds the elements that were
 * copied from one element, in their order.
 */
#include "kernels/cuda/index/index.cuh"
#include "kernels/cuda/launch_spatial.h"
#include "kernels/cuda/pointwise/complex.cuh"

/* The position in the unpadded tensor of position p along dimension d. */
static __device__ inline int64_t source_of(const cuda_pad_shape &s, int d, int64_t p)
{
	const int64_t at = p - s.before[d], last = s.core[d] - 1;

	if (at >= 0 && at <= last)
		return at;
	if (!s.reflect)
		return at < 0 ? 0 : last;
	return at < 0 ? -at : 2 * last - at;
}

/* Splits position i of planes of those sizes. */
static __device__ inline uint64_t split(uint64_t i, const int64_t (&size)[3], int64_t (&at)[3])
{
#pragma unroll
	for (int d = 2; d >= 0; d--) {
		const uint64_t q = i / (uint64_t)size[d];

		at[d] = (int64_t)(i - q * (uint64_t)size[d]);
		i = q;
	}
	return i;
}

/* Operand 0 of `planes` is the padded tensor, 1 the unpadded one. */
template <class T>
__global__ void pad_kernel(seeker<2> planes, cuda_pad_shape s, T *out, const T *in)
{
	const uint64_t n = planes.numel * (uint64_t)(s.wide[0] * s.wide[1] * s.wide[2]);

	for (uint64_t i = first_element<uint64_t>(); i < n; i += element_step<uint64_t>()) {
		int64_t at[3], off[2] = {};

		planes.seek(split(i, s.wide, at), off);
#pragma unroll
		for (int d = 0; d < 3; d++) {
			off[0] += at[d] * s.wide_step[d];
			off[1] += source_of(s, d, at[d]) * s.core_step[d];
		}
		out[off[0]] = in[off[1]];
	}
}

/* The positions of the padded tensor whose source is e, in ascending order. */
struct pad_targets {
	int n;
	bool range; /* n from p[0] on, else up to three */
	int64_t p[3];

	/* Without an index of the array, which would be in local memory. */
	__device__ void set(int k, int64_t position)
	{
		if (k == 0)
			p[0] = position;
		else if (k == 1)
			p[1] = position;
		else
			p[2] = position;
	}
	__device__ void add(const cuda_pad_shape &s, int d, int64_t position, bool there)
	{
		if (there && position >= 0 && position < s.wide[d])
			set(n++, position);
	}
	__device__ pad_targets(const cuda_pad_shape &s, int d, int64_t e)
	    : n(0), range(!s.reflect), p{}
	{
		const int64_t last = s.core[d] - 1, here = e + s.before[d];

		if (s.reflect) {
			add(s, d, s.before[d] - e, e > 0);
			add(s, d, here, true);
			add(s, d, s.before[d] + 2 * last - e, e < last);
			return;
		}
		const int64_t first = e ? here : 0, end = e < last ? here + 1 : s.wide[d];
		const int64_t from = first < 0 ? 0 : first, to = end < s.wide[d] ? end : s.wide[d];

		p[0] = from;
		n = to > from ? (int)(to - from) : 0;
	}
	__device__ int64_t at(int k) const
	{
		return range ? p[0] + k : k == 0 ? p[0] : k == 1 ? p[1] : p[2];
	}
};

template <class T>
__global__ void pad_backward_kernel(seeker<2> planes, cuda_pad_shape s, T *out, const T *grad)
{
	typedef typename number<T>::compute C;
	const uint64_t n = planes.numel * (uint64_t)(s.core[0] * s.core[1] * s.core[2]);

	for (uint64_t i = first_element<uint64_t>(); i < n; i += element_step<uint64_t>()) {
		int64_t at[3], off[2] = {};
		T sum = number<T>::store(C(0));

		planes.seek(split(i, s.core, at), off);
		const pad_targets z(s, 0, at[0]), y(s, 1, at[1]), x(s, 2, at[2]);
		const T *g = grad + off[0];

		for (int a = 0; a < z.n; a++)
			for (int b = 0; b < y.n; b++)
				for (int c = 0; c < x.n; c++)
					sum = number<T>::store(
						number<T>::load(sum) +
						number<T>::load(g[z.at(a) * s.wide_step[0] +
								  y.at(b) * s.wide_step[1] +
								  x.at(c) * s.wide_step[2]]));
#pragma unroll
		for (int d = 0; d < 3; d++)
			off[1] += at[d] * s.core_step[d];
		out[off[1]] = sum;
	}
}

/* ---- launches ---- */

int cuda_launch_pad(const cuda_dims *planes, const cuda_pad_shape *s, void *out, const void *in,
		    int itemsize, cudaStream_t stream)
{
	const unsigned grid = grid_for(planes->numel * s->wide[0] * s->wide[1] * s->wide[2], BLOCK);

	switch (itemsize) {
#define X(N, T)                                                                           \
	case N:                                                                           \
		return launch(pad_kernel<T>, grid, BLOCK, stream, seeker<2>(*planes), *s, \
			      (T *)out, (const T *)in);
		FOR_BITS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_pad_backward(const cuda_dims *planes, const cuda_pad_shape *s, void *out,
			     const void *grad, int dtype, cudaStream_t stream)
{
	const unsigned grid = grid_for(planes->numel * s->core[0] * s->core[1] * s->core[2], BLOCK);

	switch (dtype) {
#define X(D, T)                                                                                    \
	case D:                                                                                    \
		return launch(pad_backward_kernel<T>, grid, BLOCK, stream, seeker<2>(*planes), *s, \
			      (T *)out, (const T *)grad);
		FOR_ALL_FLOATS(X)
		X(TENSOR_C64, complex_f32)
		X(TENSOR_C128, complex_f64)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
