// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Distances of rows from the differences of their elements, in tiles of pairs. Sums are taken over
 * DEPTH elements and then added, as on the CPU. In the backward a thread has an element of x, and
 * adds the gradients of its pairs in order.
 */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_loss.h"

enum distance_norm { NORM_0, NORM_1, NORM_2, NORM_INF, NORM_P };
enum { SIDE = 32, PART = 2, DEPTH = 64, STEP = 32 }; /* STEP: terms in shared memory */

static enum distance_norm norm_of(double p)
{
	return p == 0			  ? NORM_0 :
	       p == 1			  ? NORM_1 :
	       p == 2			  ? NORM_2 :
	       p > 1.7976931348623157e308 ? NORM_INF :
					    NORM_P;
}

static __device__ inline float root_of(float x)
{
	return sqrtf(x);
}

static __device__ inline double root_of(double x)
{
	return sqrt(x);
}

/* size^p for size >= 0; powers of small integers are products. */
static __device__ inline double power_of(double size, double p)
{
	double power = size;

	if (p > 8 || p != (int)p)
		return pow(size, p);
	for (int i = 1; i < (int)p; i++)
		power *= size;
	return power;
}

template <class T> static __device__ inline T greater_of(T a, T b)
{
	return b > a || b != b ? b : a;
}

/* The sum so far and a difference; A is the type of sums. */
template <distance_norm NORM, class T, class A>
static __device__ inline A norm_step(A sum, T x, T y, double p)
{
	const T v = x - y, size = v < 0 ? -v : v;

	switch (NORM) {
	case NORM_0:
		return sum + (A)(v != 0);
	case NORM_1:
		return sum + (A)size;
	case NORM_2:
		return sum + (A)(v * v);
	case NORM_INF:
		return greater_of<A>(sum, (A)size);
	default:
		return sum + (A)power_of(fabs((double)x - (double)y), p);
	}
}

template <distance_norm NORM, class A> static __device__ inline A norm_join(A a, A b)
{
	return NORM == NORM_INF ? greater_of(a, b) : a + b;
}

template <distance_norm NORM, class T, class A> static __device__ inline T norm_end(A sum, double p)
{
	return NORM == NORM_2 ? (T)root_of(sum) :
	       NORM == NORM_P ? (T)pow((double)sum, 1 / p) :
				(T)sum;
}

template <class T>
static __device__ inline int64_t pair_number(const cuda_distance &d, int64_t i, int64_t j)
{
	return i * d.n - i * (i + 1) / 2 + j - i - 1;
}

/* Rows i to i + SIDE - 1 of x and j to j + SIDE - 1 of y of one batch. */
template <distance_norm NORM, class T, class A>
static __device__ inline void distance_tile(const cuda_distance &d, int64_t batch, int64_t i,
					    int64_t j)
{
	__shared__ T left[SIDE][STEP + 1], right[SIDE][STEP + 1];
	const int tx = (int)threadIdx.x, ty = (int)threadIdx.y, t = ty * 16 + tx;
	const T *x = (const T *)d.x + batch * d.n * d.length;
	const T *y = (const T *)d.y + batch * d.m * d.length;
	A total[PART][PART] = {}, sum[PART][PART] = {};

	for (int64_t from = 0; from < d.length; from += STEP) {
		const int count = (int)(d.length - from < STEP ? d.length - from : (int64_t)STEP);

		__syncthreads();
		for (int k = t; k < SIDE * STEP; k += 256) {
			const int r = k / STEP, c = k % STEP;

			left[r][c] = i + r < d.n && c < count ? x[(i + r) * d.length + from + c] :
								(T)0;
			right[r][c] = j + r < d.m && c < count ? y[(j + r) * d.length + from + c] :
								 (T)0;
		}
		__syncthreads();
		for (int k = 0; k < count; k++)
#pragma unroll
			for (int p = 0; p < PART; p++)
#pragma unroll
				for (int q = 0; q < PART; q++)
					sum[p][q] = norm_step<NORM, T, A>(sum[p][q],
									  left[ty + 16 * p][k],
									  right[tx + 16 * q][k],
									  d.p);
		if ((from + STEP) % DEPTH && from + STEP < d.length)
			continue;
#pragma unroll
		for (int p = 0; p < PART; p++)
#pragma unroll
			for (int q = 0; q < PART; q++) {
				total[p][q] = norm_join<NORM>(total[p][q], sum[p][q]);
				sum[p][q] = 0;
			}
	}
	for (int p = 0; p < PART; p++)
		for (int q = 0; q < PART; q++) {
			const int64_t r = i + ty + 16 * p, c = j + tx + 16 * q;

			if (r >= d.n || c >= d.m || (d.triangle && c <= r))
				continue;
			((T *)d.out)[d.triangle ? pair_number<T>(d, r, c) :
						  (batch * d.n + r) * d.m + c] =
				norm_end<NORM, T>(total[p][q], d.p);
		}
}

template <distance_norm NORM, class T, class A>
__global__ void __launch_bounds__(256)
	distance_kernel(cuda_distance d, int64_t down, int64_t across)
{
	for (int64_t tile = blockIdx.x; tile < d.batch * down * across; tile += gridDim.x) {
		const int64_t i = tile / across % down * SIDE, j = tile % across * SIDE;

		if (!d.triangle || j + SIDE > i + 1)
			distance_tile<NORM, T, A>(d, tile / (down * across), i, j);
	}
}

template <class T> static int distance_of(const cuda_distance *d, cudaStream_t stream)
{
	const int64_t down = (d->n + SIDE - 1) / SIDE, across = (d->m + SIDE - 1) / SIDE;
	const unsigned grid = grid_for(d->batch * down * across, 1);
	const dim3 block(16, 16);

	switch (norm_of(d->p)) {
	case NORM_0:
		return launch(distance_kernel<NORM_0, T, T>, grid, block, stream, *d, down, across);
	case NORM_1:
		return launch(distance_kernel<NORM_1, T, T>, grid, block, stream, *d, down, across);
	case NORM_2:
		return launch(distance_kernel<NORM_2, T, T>, grid, block, stream, *d, down, across);
	case NORM_INF:
		return launch(distance_kernel<NORM_INF, T, T>, grid, block, stream, *d, down,
			      across);
	default:
		return launch(distance_kernel<NORM_P, T, double>, grid, block, stream, *d, down,
			      across);
	}
}

int cuda_launch_distance(const cuda_distance *d, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return distance_of<T>(d, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

/* ---- backward ---- */

/* g times the derivative of a distance by x, an element of the row. */
template <distance_norm NORM, class T>
static __device__ inline T slope_of(T g, T x, T y, double p, T distance)
{
	const T v = x - y;

	if (NORM == NORM_0 || (distance == 0 && NORM != NORM_1))
		return 0;
	if (NORM == NORM_1)
		return x > y ? g : x < y ? -g : (T)0;
	if (NORM == NORM_2)
		return g / distance * v;
	if (NORM == NORM_INF)
		return v == distance ? g : -v == distance ? -g : (T)0;
	const double w = ((double)x - (double)y) / (double)distance;
	const double s = power_of(w < 0 ? -w : w, p - 1) * (double)g;

	return (T)(w == 0 ? 0 : w < 0 ? -s : s);
}

template <distance_norm NORM, class T> __global__ void distance_backward_kernel(cuda_distance d)
{
	const int64_t all = d.batch * d.n * d.length;

	for (int64_t e = first_element<int64_t>(); e < all; e += element_step<int64_t>()) {
		const int64_t row = e / d.length, batch = row / d.n, i = row % d.n;
		const T *y = (const T *)d.y + batch * d.m * d.length + e % d.length;
		const T x = ((const T *)d.x)[e];
		T sum = 0;

		for (int64_t j = 0; j < d.m; j++) {
			const int64_t pair = !d.triangle ? row * d.m + j :
					     i < j	 ? pair_number<T>(d, i, j) :
							   pair_number<T>(d, j, i);

			if (d.triangle && i == j)
				continue;
			sum += slope_of<NORM, T>(((const T *)d.grad)[pair], x, y[j * d.length], d.p,
						 ((const T *)d.distance)[pair]);
		}
		((T *)d.out)[e] = sum;
	}
}

template <class T> static int backward_of(const cuda_distance *d, cudaStream_t stream)
{
	const unsigned grid = grid_for(d->batch * d->n * d->length, BLOCK);

	switch (norm_of(d->p)) {
	case NORM_0:
		return launch(distance_backward_kernel<NORM_0, T>, grid, BLOCK, stream, *d);
	case NORM_1:
		return launch(distance_backward_kernel<NORM_1, T>, grid, BLOCK, stream, *d);
	case NORM_2:
		return launch(distance_backward_kernel<NORM_2, T>, grid, BLOCK, stream, *d);
	case NORM_INF:
		return launch(distance_backward_kernel<NORM_INF, T>, grid, BLOCK, stream, *d);
	default:
		return launch(distance_backward_kernel<NORM_P, T>, grid, BLOCK, stream, *d);
	}
}

int cuda_launch_distance_backward(const cuda_distance *d, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return backward_of<T>(d, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
