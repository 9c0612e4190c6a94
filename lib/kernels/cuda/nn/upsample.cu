// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Interpolation: each output is a weighted sum of one, two or four elements along each dimension.
 * A kernel makes the tables of their positions and weights, as upsample_loops.h of the CPU does.
 * The gradient gathers: the outputs that read an element are adjacent along each dimension.
 */
#include "kernels/cuda/nn/windows.cuh"

/* floor(x), limited to least .. in - 1. x may be infinite or NaN, depending on the scale. */
static __device__ inline int position(double x, int least, int in)
{
	return x >= (double)(in - 1) ? in - 1 : x >= (double)least ? (int)floor(x) : least;
}

/* Entry i * taps + k: tap k of output i. */
template <class T> struct taps {
	int *at;
	T *weight;
};

/* A dimension of the tables. */
template <class T> struct tap_maker {
	int in, out;
	cuda_upsample_mode mode;
	bool align;
	T step; /* between two adjacent outputs */

	__device__ void nearest(int i, int *at, T *w) const
	{
		const bool exact = mode == CUDA_UPSAMPLE_NEAREST_EXACT;
		T x = exact ? step * ((T)i + (T)0.5) - (T)0.5 : step * (T)i;

		x = exact ? (x > 0 ? x : 0) + (T)0.5 : x;
		at[0] = position((float)x, 0, in);
		w[0] = 1;
	}
	/* Sets *first to the position before output i; returns the distance of the output from it. */
	__device__ T place(int i, int *first) const
	{
		const bool linear = mode == CUDA_UPSAMPLE_LINEAR;
		T x = align ? step * (T)i : step * ((T)i + (T)0.5) - (T)0.5;

		if (x < 0 && linear)
			x = 0;
		*first = position((float)x, linear ? 0 : -1, in);
		x -= (T)*first;
		x = x > 0 ? x : 0;
		return x < 1 ? x : 1;
	}
	__device__ void linear(int i, int *at, T *w) const
	{
		at[0] = i;
		w[1] = in == out ? (T)0 : place(i, &at[0]);
		w[0] = 1 - w[1];
		at[1] = in == out ? i : at[0] + 1 < in ? at[0] + 1 : in - 1;
	}
	__device__ void cubic(int i, int *at, T *w) const
	{
		const T a = (T)-0.75;
		int first;
		const T t = place(i, &first);
		T x = t + 1;

		w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
		w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
		x = 1 - t;
		w[2] = ((a + 2) * x - (a + 3)) * x * x + 1;
		x = x + 1;
		w[3] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
		for (int k = 0; k < 4; k++) {
			const int p = first - 1 + k;

			at[k] = p < 0 ? 0 : p < in ? p : in - 1;
		}
	}
};

template <class T> __global__ void upsample_taps_kernel(tap_maker<T> m, int count, taps<T> to)
{
	for (int i = (int)first_element<uint32_t>(); i < m.out;
	     i += (int)element_step<uint32_t>()) {
		int *at = to.at + i * count;
		T *w = to.weight + i * count;

		if (count == 1)
			m.nearest(i, at, w);
		else if (count == 2)
			m.linear(i, at, w);
		else
			m.cubic(i, at, w);
	}
}

/* Tables of the three dimensions; a dimension of sizes 1 and 1 has one tap of weight 1. */
template <class T> struct tables {
	int in[3], out[3], count[3], stride; /* taps that are summed, and entries of an output */
	taps<T> d[3];

	__device__ T weight(int k, int i) const
	{
		return count[k] < stride ? (T)1 : d[k].weight[i];
	}
};

template <class T, class V, class P>
__global__ void upsample_kernel(tables<T> t, P planes, V *out, const V *in)
{
	const P size = (P)t.out[0] * t.out[1] * t.out[2], n = planes * size;
	const int64_t plane = (int64_t)t.in[0] * t.in[1] * t.in[2];

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const P p = i / size;
		const V *from = in + (int64_t)p * plane;
		int o[3];
		T sum = 0;

		place_of((uint32_t)(i - p * size), t.out, o);
		for (int d = 0; d < 3; d++)
			o[d] *= t.stride;
		if (t.stride == 1) { /* the element itself: any bits */
			out[i] = from[((int64_t)t.d[0].at[o[0]] * t.in[1] + t.d[1].at[o[1]]) *
					      t.in[2] +
				      t.d[2].at[o[2]]];
			continue;
		}
		for (int a = 0; a < t.count[0]; a++)
			for (int b = 0; b < t.count[1]; b++) {
				const V *row = from + ((int64_t)t.d[0].at[o[0] + a] * t.in[1] +
						       t.d[1].at[o[1] + b]) *
							      t.in[2];
				T along = 0;

				for (int c = 0; c < t.count[2]; c++)
					along +=
						t.weight(2, o[2] + c) * (T)row[t.d[2].at[o[2] + c]];
				sum += t.weight(0, o[0] + a) * t.weight(1, o[1] + b) * along;
			}
		out[i] = (V)sum;
	}
}

/* The first of n outputs whose tap k is at e or behind it. Taps do not decrease. */
static __device__ inline int first_reader(const int *at, int stride, int k, int n, int e)
{
	int low = 0, high = n;

	while (low < high) {
		const int middle = low + (high - low) / 2;

		if (at[middle * stride + k] >= e)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The sum of the weights of the taps of output o that are at e. */
template <class T> static __device__ inline T weight_at(const tables<T> &t, int d, int o, int e)
{
	T sum = 0;

	for (int k = 0; k < t.count[d]; k++)
		if (t.d[d].at[o * t.stride + k] == e)
			sum += t.weight(d, o * t.stride + k);
	return sum;
}

template <class T, class P>
__global__ void upsample_backward_kernel(tables<T> t, P planes, T *out, const T *grad)
{
	const P size = (P)t.in[0] * t.in[1] * t.in[2], n = planes * size;
	const int64_t plane = (int64_t)t.out[0] * t.out[1] * t.out[2];

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const P p = i / size;
		const T *from = grad + (int64_t)p * plane;
		int e[3], begin[3], end[3];
		T sum = 0;

		place_of((uint32_t)(i - p * size), t.in, e);
		for (int d = 0; d < 3; d++) {
			begin[d] =
				first_reader(t.d[d].at, t.stride, t.count[d] - 1, t.out[d], e[d]);
			end[d] = first_reader(t.d[d].at, t.stride, 0, t.out[d], e[d] + 1);
		}
		for (int a = begin[0]; a < end[0]; a++) {
			const T wz = weight_at(t, 0, a, e[0]);

			for (int b = begin[1]; b < end[1]; b++) {
				const T w = wz * weight_at(t, 1, b, e[1]);
				const T *row = from + ((int64_t)a * t.out[1] + b) * t.out[2];

				for (int c = begin[2]; c < end[2]; c++)
					sum += w * weight_at(t, 2, c, e[2]) * row[c];
			}
		}
		out[i] = sum;
	}
}

/* ---- launches ---- */

template <class T> static T step_of(int in, int out, bool align, double scale)
{
	if (align)
		return out > 1 ? (T)(in - 1) / (T)(out - 1) : (T)0;
	return scale > 0 ? (T)(1 / scale) : (T)in / (T)out;
}

/* Makes the tables in u->scratch, positions after weights. */
template <class T> static int make_tables(const cuda_upsample *u, tables<T> *t, cudaStream_t stream)
{
	T *weight = (T *)u->scratch;
	int *at = (int *)(weight + u->entries);
	int err = 0;

	t->stride = u->taps;
	for (int k = 0; k < 3 && !err; k++) {
		const int in = u->w.in[k], out = u->w.out[k];
		const bool align = u->align && u->taps > 1;
		const tap_maker<T> m = { in, out, u->mode, align,
					 step_of<T>(in, out, align, u->scale[k]) };

		t->in[k] = in;
		t->out[k] = out;
		t->count[k] = in == 1 && out == 1 ? 1 : u->taps;
		t->d[k] = { at, weight };
		err = launch(upsample_taps_kernel<T>, grid_for(out, BLOCK), BLOCK, stream, m,
			     u->taps, t->d[k]);
		at += (int64_t)out * u->taps;
		weight += (int64_t)out * u->taps;
	}
	return err;
}

template <class T, class V>
static int forward(const cuda_upsample *u, void *out, const void *in, cudaStream_t stream)
{
	const unsigned grid = grid_for(u->planes * u->w.out_plane, BLOCK);
	tables<T> t;
	const int err = make_tables<T>(u, &t, stream);

	if (err)
		return err;
	if (u->w.wide)
		return launch(upsample_kernel<T, V, uint64_t>, grid, BLOCK, stream, t,
			      (uint64_t)u->planes, (V *)out, (const V *)in);
	return launch(upsample_kernel<T, V, uint32_t>, grid, BLOCK, stream, t, (uint32_t)u->planes,
		      (V *)out, (const V *)in);
}

template <class T>
static int backward(const cuda_upsample *u, void *out, const void *grad, cudaStream_t stream)
{
	const unsigned grid = grid_for(u->planes * u->w.in_plane, BLOCK);
	tables<T> t;
	const int err = make_tables<T>(u, &t, stream);

	if (err)
		return err;
	if (u->w.wide)
		return launch(upsample_backward_kernel<T, uint64_t>, grid, BLOCK, stream, t,
			      (uint64_t)u->planes, (T *)out, (const T *)grad);
	return launch(upsample_backward_kernel<T, uint32_t>, grid, BLOCK, stream, t,
		      (uint32_t)u->planes, (T *)out, (const T *)grad);
}

int cuda_launch_upsample(const cuda_upsample *u, void *out, const void *in, int dtype,
			 cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_F32:
		return forward<float, float>(u, out, in, stream);
	case TENSOR_F64:
		return forward<double, double>(u, out, in, stream);
	case TENSOR_U8:
		return u->taps == 1 ? forward<float, uint8_t>(u, out, in, stream) : CUDA_NO_DTYPE;
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_upsample_backward(const cuda_upsample *u, void *out, const void *grad, int dtype,
				  cudaStream_t stream)
{
	switch (dtype) {
	case TENSOR_F32:
		return backward<float>(u, out, grad, stream);
	case TENSOR_F64:
		return backward<double>(u, out, grad, stream);
	default:
		return CUDA_NO_DTYPE;
	}
}
