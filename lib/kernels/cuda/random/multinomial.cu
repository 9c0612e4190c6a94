// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * multinomial. With replacement, a search in the cumulated weights for each draw; without, the keys
 * weight / e of the CPU (multinomial.c), whose greatest ones are drawn. The random numbers are the
 * CPU's; sums of weights may differ from its in their last bits.
 */
#include "kernels/cuda/launch_search.h"
#include "kernels/cuda/random/philox.cuh"
#include "kernels/cuda/reduce/rows.cuh"
#include "kernels/cuda/report.cuh"
#include "kernels/cuda/sum_before.cuh"

#ifdef __CUDACC__
#define inline inline __host__ __device__
#endif
#include "kernels/formula/random.h"
#undef inline

/* The random number for draw i, in [0, 1). */
static __device__ inline double unit_at(const cuda_draw &d, int64_t i)
{
	const int64_t wide = 2 * PHILOX_GROUP;
	uint32_t w[4];

	philox(w, d.seed, d.offset + (uint64_t)(i / wide * PHILOX_GROUP + i % PHILOX_GROUP));
	return i % wide < PHILOX_GROUP ? unit_f64(w[0], w[1]) : unit_f64(w[2], w[3]);
}

static __device__ inline bool is_finite(double x)
{
	return x <= 0x1.fffffffffffffp1023;
}

__global__ void __launch_bounds__(BLOCK) draw_check_kernel(cuda_draw d, bool replacement)
{
	for (int64_t row = blockIdx.x; row < d.rows; row += gridDim.x) {
		const double *w = d.weights + row * d.n;
		double before = 0, all;
		uint64_t positive = 0;
		int wrong = -1; /* or an enum cuda_refusal */

		for (int64_t tile = 0; tile < d.n; tile += BLOCK) {
			const int64_t i = tile + threadIdx.x;
			const double x = i < d.n ? w[i] : 0;
			const double sum = sum_before(x, &all);

			if (!(x >= 0 && is_finite(x)))
				wrong = CUDA_BAD_WEIGHT;
			positive += x > 0;
			if (replacement && i < d.n)
				d.work[row * d.n + i] = before + (sum + x);
			before += all;
		}
		positive = join_lanes(plus(), positive);
		if (threadIdx.x == 0 && wrong < 0)
			wrong = !(before > 0 && is_finite(before))	     ? CUDA_BAD_SUM :
				positive < (replacement ? 1 : (uint64_t)d.k) ? CUDA_TOO_FEW :
									       -1;
		if (wrong >= 0)
			report_value(d.bad, (cuda_refusal)wrong,
				     (uint64_t)row * 4 + (wrong - CUDA_BAD_WEIGHT), 0, d.k);
	}
}

/* The first element whose cumulated weight is above a random part of the sum. */
__global__ void draw_kernel(cuda_draw given, int64_t *out)
{
	const cuda_draw d = replayed(given);

	for (int64_t i = first_element<int64_t>(); i < d.rows * d.k; i += element_step<int64_t>()) {
		const double *sums = d.work + i / d.k * d.n, *w = d.weights + i / d.k * d.n;
		const double x = unit_at(d, i) * sums[d.n - 1];
		int64_t low = 0, high = d.n - 1;

		while (low < high) {
			const int64_t middle = low + (high - low) / 2;

			if (sums[middle] > x)
				high = middle;
			else
				low = middle + 1;
		}
		while (low > 0 && !(w[low] > 0)) /* only where x is the sum itself */
			low--;
		out[i] = low;
	}
}

__global__ void draw_keys_kernel(cuda_draw given)
{
	const cuda_draw d = replayed(given);

	for (int64_t i = first_element<int64_t>(); i < d.rows * d.n; i += element_step<int64_t>()) {
		const double w = d.weights[i];

		d.work[i] = w > 0 ? w / -log_unit_f64(1 - unit_at(d, i)) : -(double)INFINITY;
	}
}

int cuda_launch_draw_check(const cuda_draw *d, bool replacement, cudaStream_t stream)
{
	return launch(draw_check_kernel, grid_for(d->rows, 1), BLOCK, stream, *d, replacement);
}

int cuda_launch_draw(const cuda_draw *d, int64_t *out, cudaStream_t stream)
{
	return launch(draw_kernel, grid_for(d->rows * d->k, BLOCK), BLOCK, stream, *d, out);
}

int cuda_launch_draw_keys(const cuda_draw *d, cudaStream_t stream)
{
	return launch(draw_keys_kernel, grid_for(d->rows * d->n, BLOCK), BLOCK, stream, *d);
}
