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

enum { MOST_TAPS = 16 };

template <class T> struct grid_taps;

template <> struct grid_taps<float> {
	grid_tap_f32 tap[MOST_TAPS];
	int n;

	__device__ grid_taps(const cuda_grid &g, const float *at)
	    : n(taps_of_f32(&g.p, g.h, g.w, at, tap))
	{
	}
};

template <> struct grid_taps<double> {
	grid_tap_f64 tap[MOST_TAPS];
	int n;

	__device__ grid_taps(const cuda_grid &g, const double *at)
	    : n(taps_of_f64(&g.p, g.h, g.w, at, tap))
	{
	}
};

template <class T> __global__ void grid_kernel(cuda_grid g, T *out)
{
	for (int64_t i = first_element<int64_t>(); i < g.batch * g.places;
	     i += element_step<int64_t>()) {
		const grid_taps<T> t(g, (const T *)g.grid + 2 * i);
		const int64_t image = i / g.places * g.channels, place = i % g.places;

		for (int64_t c = 0; c < g.channels; c++) {
			const T *in = (const T *)g.input + (image + c) * g.h * g.w;
			T sum = 0;

			for (int k = 0; k < t.n; k++)
				if (t.tap[k].at >= 0)
					sum += t.tap[k].w * in[t.tap[k].at];
			out[(image + c) * g.places + place] = sum;
		}
	}
}

template <class T> __global__ void grid_grad_kernel(cuda_grid g, T *out)
{
	for (int64_t i = first_element<int64_t>(); i < g.batch * g.places;
	     i += element_step<int64_t>()) {
		const grid_taps<T> t(g, (const T *)g.grid + 2 * i);
		const int64_t image = i / g.places * g.channels, place = i % g.places;
		T dx = 0, dy = 0;

		for (int64_t c = 0; c < g.channels; c++) {
			const T *in = (const T *)g.input + (image + c) * g.h * g.w;
			const T grad = ((const T *)g.grad)[(image + c) * g.places + place];

			for (int k = 0; k < t.n; k++) {
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
template <class T>
__global__ void grid_terms_kernel(cuda_grid g, int taps, int64_t terms, int64_t *at, T *value)
{
	const int64_t padded = terms / taps;

	for (int64_t i = first_element<int64_t>(); i < g.batch * padded;
	     i += element_step<int64_t>()) {
		const int64_t image = i / padded, place = i % padded;
		const int64_t first =
			place / CUDA_GRID_CHUNK * CUDA_GRID_CHUNK * taps + place % CUDA_GRID_CHUNK;
		const bool there = place < g.places;
		const T nowhere[2] = { 0, 0 };
		const grid_taps<T> t(g, there ? (const T *)g.grid + 2 * (image * g.places + place) :
						nowhere);

		for (int k = 0; k < taps; k++) {
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

int cuda_launch_grid(const cuda_grid *g, void *out, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E)                                                                             \
	case D:                                                                             \
		return launch(grid_kernel<E>, grid_for(g->batch * g->places, BLOCK), BLOCK, \
			      stream, *g, (E *)out);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_grid_grad(const cuda_grid *g, void *out, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E)                                                                                  \
	case D:                                                                                  \
		return launch(grid_grad_kernel<E>, grid_for(g->batch * g->places, BLOCK), BLOCK, \
			      stream, *g, (E *)out);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_grid_terms(const cuda_grid *g, int taps, int64_t terms, int64_t *at, void *value,
			   int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, E)                                                                                 \
	case D:                                                                                 \
		return launch(grid_terms_kernel<E>, grid_for(g->batch * (terms / taps), BLOCK), \
			      BLOCK, stream, *g, taps, terms, at, (E *)value);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
