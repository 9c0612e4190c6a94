// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * grid_sampler_2d and its gradients, by the formulas of the CPU: a thread has a place of the grid, all
 * of whose channels have the same taps. The gradient of the input is written as terms, which are added
 * as in scatter_add.
 */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_grid.h"

#include "kernels/formula/dtypes.h"

#define T	float
#define F(name) name##_f32
#include "kernels/formula/grid_sampler.h"
#undef T
#undef F
#define T	double
#define F(name) name##_f64
#include "kernels/formula/grid_sampler.h"
#undef T
#undef F

template <class T> struct grid_tap_of;

template <> struct grid_tap_of<float> {
	typedef grid_tap_f32 type;

	static __device__ void fill(const grid_params *p, const cuda_grid &g, const float *at,
				    type *tap)
	{
		taps_of_f32(p, g.h, g.w, at, tap);
	}
};

template <> struct grid_tap_of<double> {
	typedef grid_tap_f64 type;

	static __device__ void fill(const grid_params *p, const cuda_grid &g, const double *at,
				    type *tap)
	{
		taps_of_f64(p, g.h, g.w, at, tap);
	}
};

/* The taps of a place. Their number is a constant, so that they are in registers. */
template <class T, grid_mode MODE> struct grid_taps {
	enum { N = MODE == GRID_BILINEAR ? 4 : MODE == GRID_NEAREST ? 1 : 16 };
	typename grid_tap_of<T>::type tap[N];

	__device__ grid_taps(const cuda_grid &g, const T *at)
	{
		const grid_params p = { MODE, g.p.padding, g.p.align_corners };

		grid_tap_of<T>::fill(&p, g, at, tap);
	}
};

template <class T, grid_mode MODE> __global__ void grid_kernel(cuda_grid g, T *out)
{
	for (int64_t i = first_element<int64_t>(); i < g.batch * g.places;
	     i += element_step<int64_t>()) {
		const grid_taps<T, MODE> t(g, (const T *)g.grid + 2 * i);
		const int64_t image = i / g.places * g.channels, place = i % g.places;

		for (int64_t c = 0; c < g.channels; c++) {
			const T *in = (const T *)g.input + (image + c) * g.h * g.w;
			T sum = 0;

#pragma unroll
			for (int k = 0; k < t.N; k++)
				if (t.tap[k].at >= 0)
					sum += t.tap[k].w * in[t.tap[k].at];
			out[(image + c) * g.places + place] = sum;
		}
	}
}

template <class T, grid_mode MODE> __global__ void grid_grad_kernel(cuda_grid g, T *out)
{
	for (int64_t i = first_element<int64_t>(); i < g.batch * g.places;
	     i += element_step<int64_t>()) {
		const grid_taps<T, MODE> t(g, (const T *)g.grid + 2 * i);
		const int64_t image = i / g.places * g.channels, place = i % g.places;
		T dx = 0, dy = 0;

		for (int64_t c = 0; c < g.channels; c++) {
			const T *in = (const T *)g.input + (image + c) * g.h * g.w;
			const T grad = ((const T *)g.grad)[(image + c) * g.places + place];

#pragma unroll
			for (int k = 0; k < t.N; k++) {
				if (t.tap[k].at < 0)
					continue;
				dx += t.tap[k].dx * grad * in[t.tap[k].at];
				dy += t.tap[k].dy * grad * in[t.tap[k].at];
			}
		}
		out[2 * i] = dx;
		out[2 * i + 1] = dy;
	}
}

/* Places behind the last one have terms of 0. */
template <class T, grid_mode MODE>
__global__ void grid_terms_kernel(cuda_grid g, int64_t terms, int64_t *at, T *value)
{
	enum { TAPS = grid_taps<T, MODE>::N };
	const int64_t padded = terms / TAPS;

	for (int64_t i = first_element<int64_t>(); i < g.batch * padded;
	     i += element_step<int64_t>()) {
		const int64_t image = i / padded, place = i % padded;
		const int64_t first =
			place / CUDA_GRID_CHUNK * CUDA_GRID_CHUNK * TAPS + place % CUDA_GRID_CHUNK;
		const bool there = place < g.places;
		const T nowhere[2] = { 0, 0 };
		const grid_taps<T, MODE> t(
			g, there ? (const T *)g.grid + 2 * (image * g.places + place) : nowhere);

#pragma unroll
		for (int k = 0; k < TAPS; k++) {
			const int64_t term = first + (int64_t)k * CUDA_GRID_CHUNK;
			const bool inside = there && t.tap[k].at >= 0;

			at[image * terms + term] = inside ? t.tap[k].at : 0;
			for (int64_t c = 0; c < g.channels; c++) {
				const int64_t plane = image * g.channels + c;

				value[plane * terms + term] =
					inside ?
						t.tap[k].w *
							((const T *)
								 g.grad)[plane * g.places + place] :
						(T)0;
			}
		}
	}
}

/* ---- launches ---- */

#define EACH_MODE(mode, CALL)                            \
	((mode) == GRID_BILINEAR ? CALL(GRID_BILINEAR) : \
	 (mode) == GRID_NEAREST	 ? CALL(GRID_NEAREST) :  \
				   CALL(GRID_BICUBIC))

template <class T> static int sample(const cuda_grid *g, T *out, cudaStream_t stream)
{
#define CALL(M) \
	launch(grid_kernel<T, M>, grid_for(g->batch * g->places, BLOCK), BLOCK, stream, *g, out)
	return EACH_MODE(g->p.mode, CALL);
#undef CALL
}

template <class T> static int grid_gradient(const cuda_grid *g, T *out, cudaStream_t stream)
{
#define CALL(M)                                                                                  \
	launch(grid_grad_kernel<T, M>, grid_for(g->batch * g->places, BLOCK), BLOCK, stream, *g, \
	       out)
	return EACH_MODE(g->p.mode, CALL);
#undef CALL
}

template <class T>
static int terms_of(const cuda_grid *g, int64_t terms, unsigned grid, int64_t *at, T *value,
		    cudaStream_t stream)
{
#define CALL(M) launch(grid_terms_kernel<T, M>, grid, BLOCK, stream, *g, terms, at, value)
	return EACH_MODE(g->p.mode, CALL);
#undef CALL
}

int cuda_launch_grid(const cuda_grid *g, void *out, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E) \
	case D: \
		return sample(g, (E *)out, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_grid_grad(const cuda_grid *g, void *out, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E) \
	case D: \
		return grid_gradient(g, (E *)out, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_grid_terms(const cuda_grid *g, int taps, int64_t terms, int64_t *at, void *value,
			   int dtype, cudaStream_t stream)
{
	const unsigned grid = grid_for(g->batch * (terms / taps), BLOCK);

	switch (dtype) {
#define X(D, E) \
	case D: \
		return terms_of(g, terms, grid, at, (E *)value, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
