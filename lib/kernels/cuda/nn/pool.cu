// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pooling: a thread for each output, and in gradients one for each element of the input, which adds
 * the gradients of the windows that it is in, in the order of the outputs. No atomics.
 */
#include "kernels/cuda/nn/windows.cuh"

#include <limits>

/* Plane and position of element i of all planes of that size. */
template <class P> struct in_plane {
	P plane;
	uint32_t place;

	__device__ in_plane(P i, P size) : plane(i / size), place((uint32_t)(i - plane * size))
	{
	}
};

/* Taps from[d] to before until[d] read elements of the image; tap 0 is at start[d]. */
struct taps_of {
	int start[3], from[3], until[3];

	__device__ taps_of(const cuda_windows &w, const int (&o)[3])
	{
#pragma unroll
		for (int d = 0; d < 3; d++) {
			const int step = w.dilation[d];

			start[d] = o[d] * w.stride[d] - w.padding[d];
			from[d] = start[d] < 0 ? (-start[d] + step - 1) / step : 0;
			until[d] = start[d] < w.in[d] ? (w.in[d] - start[d] + step - 1) / step : 0;
			until[d] = until[d] < w.kernel[d] ? until[d] : w.kernel[d];
			until[d] = until[d] < from[d] ? from[d] : until[d];
		}
	}
};

/* The first index of the line of elements (z, y). */
static __device__ inline int line_of(const cuda_windows &w, int z, int y)
{
	return (z * w.in[1] + y) * w.in[2];
}

template <class T> struct least {
	typedef std::numeric_limits<T> limits;
	static constexpr T VALUE = limits::has_infinity ? -limits::infinity() : limits::lowest();
};

/* ---- maxima: NaN is greater than all numbers, of equal elements the first is taken ---- */

template <class T, class P>
__global__ void max_pool_kernel(cuda_pool p, T *out, int64_t *indices, const T *in)
{
	const cuda_windows &w = p.w;
	const P size = (P)w.out_plane, n = size * (P)p.planes;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const in_plane<P> at(i, size);
		const T *image = in + (int64_t)at.plane * w.in_plane;
		int o[3];

		place_of(at.place, w.out, o);
		const taps_of t(w, o);
		T best = least<T>::VALUE;
		int where = line_of(w, t.start[0] + t.from[0] * w.dilation[0],
				    t.start[1] + t.from[1] * w.dilation[1]) +
			    t.start[2] + t.from[2] * w.dilation[2];

		for (int a = t.from[0]; a < t.until[0]; a++)
			for (int b = t.from[1]; b < t.until[1]; b++) {
				const int line = line_of(w, t.start[0] + a * w.dilation[0],
							 t.start[1] + b * w.dilation[1]) +
						 t.start[2];

				for (int k = t.from[2]; k < t.until[2]; k++) {
					const T v = image[line + k * w.dilation[2]];

					if (v > best || v != v) {
						best = v;
						where = line + k * w.dilation[2];
					}
				}
			}
		out[i] = best;
		indices[i] = where;
	}
}

/* ---- means ---- */

/* The divisor of output o along dimension d. */
static __device__ inline int64_t divisor_along(const cuda_pool &p, int d, int start)
{
	const cuda_windows &w = p.w;
	const int from = start < 0 ? 0 : start, end = start + w.kernel[d];
	const int until = p.count_include_pad ? w.in[d] + w.padding[d] : w.in[d];
	const int n = (end < until ? end : until) - (p.count_include_pad ? start : from);

	return n;
}

/* The divisor of the window that starts there; 1 for an empty window. */
static __device__ inline int64_t divisor_of(const cuda_pool &p, int z, int y, int x)
{
	int64_t n = p.divisor;

	if (!n)
		n = divisor_along(p, 0, z) * divisor_along(p, 1, y) * divisor_along(p, 2, x);
	return n ? n : 1;
}

/* As on the CPU, which traps INT64_MIN / -1. */
template <class T> static __device__ inline T quotient(T sum, int64_t divisor)
{
	return divisor == -1 ? -sum : sum / (T)divisor;
}

template <class T, class P> __global__ void avg_pool_kernel(cuda_pool p, T *out, const T *in)
{
	const cuda_windows &w = p.w;
	const P size = (P)w.out_plane, n = size * (P)p.planes;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const in_plane<P> at(i, size);
		const T *image = in + (int64_t)at.plane * w.in_plane;
		T sum = 0;
		int o[3];

		place_of(at.place, w.out, o);
		const taps_of t(w, o);

		for (int a = t.from[0]; a < t.until[0]; a++)
			for (int b = t.from[1]; b < t.until[1]; b++) {
				const int line =
					line_of(w, t.start[0] + a, t.start[1] + b) + t.start[2];

				for (int k = t.from[2]; k < t.until[2]; k++)
					sum += image[line + k];
			}
		out[i] = quotient(sum, divisor_of(p, t.start[0], t.start[1], t.start[2]));
	}
}

/* Outputs from to before until whose windows contain element i. */
static __device__ inline void windows_with(const cuda_windows &w, int d, int i, int *from,
					   int *until)
{
	const int t = i + w.padding[d], first = t - w.kernel[d] + 1;

	*from = first <= 0 ? 0 : (first + w.stride[d] - 1) / w.stride[d];
	*until = t / w.stride[d] + 1;
	*until = *until < w.out[d] ? *until : w.out[d];
}

template <class T, class P>
__global__ void avg_pool_backward_kernel(cuda_pool p, T *out, const T *grad)
{
	const cuda_windows &w = p.w;
	const P size = (P)w.in_plane, n = size * (P)p.planes;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const in_plane<P> at(i, size);
		const T *g = grad + (int64_t)at.plane * w.out_plane;
		int e[3], from[3], until[3];
		T sum = 0;

		place_of(at.place, w.in, e);
#pragma unroll
		for (int d = 0; d < 3; d++)
			windows_with(w, d, e[d], &from[d], &until[d]);
		for (int a = from[0]; a < until[0]; a++)
			for (int b = from[1]; b < until[1]; b++)
				for (int k = from[2]; k < until[2]; k++)
					sum += g[(a * w.out[1] + b) * w.out[2] + k] /
					       (T)divisor_of(p, a * w.stride[0] - w.padding[0],
							     b * w.stride[1] - w.padding[1],
							     k * w.stride[2] - w.padding[2]);
		out[i] = sum;
	}
}

/* ---- adaptive: output o of n has elements floor(o size / n) to before ceil((o + 1) size / n) ---- */

struct adaptive_window {
	int from[3], until[3];

	__device__ static int first(int64_t o, int64_t size, int64_t n)
	{
		return (int)(o * size / n);
	}
	__device__ static int end(int64_t o, int64_t size, int64_t n)
	{
		return (int)(((o + 1) * size + n - 1) / n);
	}
	__device__ adaptive_window(const cuda_windows &w, const int (&o)[3])
	{
#pragma unroll
		for (int d = 0; d < 3; d++) {
			from[d] = first(o[d], w.in[d], w.out[d]);
			until[d] = end(o[d], w.in[d], w.out[d]);
		}
	}
	template <class T> __device__ T divide(T x) const
	{
		return x / (T)(until[0] - from[0]) / (T)(until[1] - from[1]) /
		       (T)(until[2] - from[2]);
	}
};

template <class T, class P> __global__ void adaptive_avg_kernel(cuda_pool p, T *out, const T *in)
{
	const cuda_windows &w = p.w;
	const P size = (P)w.out_plane, n = size * (P)p.planes;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const in_plane<P> at(i, size);
		const T *image = in + (int64_t)at.plane * w.in_plane;
		T sum = 0;
		int o[3];

		place_of(at.place, w.out, o);
		const adaptive_window t(w, o);

		for (int a = t.from[0]; a < t.until[0]; a++)
			for (int b = t.from[1]; b < t.until[1]; b++)
				for (int k = t.from[2]; k < t.until[2]; k++)
					sum += image[line_of(w, a, b) + k];
		out[i] = t.divide(sum);
	}
}

/* The windows that contain an element are those that an output of the exchanged sizes would have. */
template <class T, class P>
__global__ void adaptive_avg_backward_kernel(cuda_pool p, T *out, const T *grad)
{
	const cuda_windows &w = p.w;
	const P size = (P)w.in_plane, n = size * (P)p.planes;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const in_plane<P> at(i, size);
		const T *g = grad + (int64_t)at.plane * w.out_plane;
		int e[3], from[3], until[3], o[3];
		T sum = 0;

		place_of(at.place, w.in, e);
#pragma unroll
		for (int d = 0; d < 3; d++) {
			from[d] = adaptive_window::first(e[d], w.out[d], w.in[d]);
			until[d] = adaptive_window::end(e[d], w.out[d], w.in[d]);
		}
		for (o[0] = from[0]; o[0] < until[0]; o[0]++)
			for (o[1] = from[1]; o[1] < until[1]; o[1]++)
				for (o[2] = from[2]; o[2] < until[2]; o[2]++)
					sum += adaptive_window(w, o).divide(
						g[(o[0] * w.out[1] + o[1]) * w.out[2] + o[2]]);
		out[i] = sum;
	}
}

template <class T, class P>
__global__ void adaptive_max_kernel(cuda_pool p, T *out, int64_t *indices, const T *in)
{
	const cuda_windows &w = p.w;
	const P size = (P)w.out_plane, n = size * (P)p.planes;

	for (P i = first_element<P>(); i < n; i += element_step<P>()) {
		const in_plane<P> at(i, size);
		const T *image = in + (int64_t)at.plane * w.in_plane;
		T best = least<T>::VALUE;
		int o[3];

		place_of(at.place, w.out, o);
		const adaptive_window t(w, o);
		int where = line_of(w, t.from[0], t.from[1]) + t.from[2];

		for (int a = t.from[0]; a < t.until[0]; a++)
			for (int b = t.from[1]; b < t.until[1]; b++)
				for (int k = t.from[2]; k < t.until[2]; k++) {
					const int j = line_of(w, a, b) + k;
					const T v = image[j];

					if (v > best || v != v) {
						best = v;
						where = j;
					}
				}
		out[i] = best;
		indices[i] = where;
	}
}

/* ---- launches ---- */

#define FOR_POOLED(X)           \
	FOR_NUMBERS(X)          \
	X(TENSOR_U16, uint16_t) \
	X(TENSOR_U32, uint32_t) \
	X(TENSOR_U64, uint64_t)

#define LAUNCH(KERNEL, T, n, ...)                                                                \
	launch(p->w.wide ? KERNEL<T, uint64_t> : KERNEL<T, uint32_t>, grid_for(n, BLOCK), BLOCK, \
	       stream, *p, __VA_ARGS__)

int cuda_launch_max_pool(const cuda_pool *p, void *out, int64_t *indices, const void *in, int dtype,
			 cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                                  \
	case D:                                                                                  \
		return LAUNCH(max_pool_kernel, T, p->planes * p->w.out_plane, (T *)out, indices, \
			      (const T *)in);
		FOR_POOLED(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_adaptive_max_pool(const cuda_pool *p, void *out, int64_t *indices, const void *in,
				  int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                             \
	case D:                                                                             \
		return LAUNCH(adaptive_max_kernel, T, p->planes * p->w.out_plane, (T *)out, \
			      indices, (const T *)in);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

#define POOL_LAUNCHER(NAME, KERNEL, SIDE, TYPES)                                                \
	int NAME(const cuda_pool *p, void *out, const void *in, int dtype, cudaStream_t stream) \
	{                                                                                       \
		switch (dtype) {                                                                \
			TYPES(KERNEL, SIDE)                                                     \
		default:                                                                        \
			return CUDA_NO_DTYPE;                                                   \
		}                                                                               \
	}
#define POOL_CASE(D, T, KERNEL, SIDE) \
	case D:                       \
		return LAUNCH(KERNEL, T, p->planes * p->w.SIDE, (T *)out, (const T *)in);
#define POOL_FLOATS(KERNEL, SIDE)                  \
	POOL_CASE(TENSOR_F32, float, KERNEL, SIDE) \
	POOL_CASE(TENSOR_F64, double, KERNEL, SIDE)
#define POOL_MEANS(KERNEL, SIDE)  \
	POOL_FLOATS(KERNEL, SIDE) \
	POOL_CASE(TENSOR_I64, int64_t, KERNEL, SIDE)

POOL_LAUNCHER(cuda_launch_avg_pool, avg_pool_kernel, out_plane, POOL_MEANS)
POOL_LAUNCHER(cuda_launch_avg_pool_backward, avg_pool_backward_kernel, in_plane, POOL_FLOATS)
POOL_LAUNCHER(cuda_launch_adaptive_avg_pool, adaptive_avg_kernel, out_plane, POOL_FLOATS)
POOL_LAUNCHER(cuda_launch_adaptive_avg_pool_backward, adaptive_avg_backward_kernel, in_plane,
	      POOL_FLOATS)
