// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Connectionist temporal classification (Graves et al. 2006, equations 6 to 15), by the CPU's steps
 * (ctc_loops.h): a block has a sequence, a thread positions of a step. A class that has several
 * positions is summed by the thread of its first one, in order.
 */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_loss.h"

template <class T> static __device__ inline T never()
{
	return -(T)INFINITY;
}

template <class T> static __device__ inline T log_sum(T a, T b, T c)
{
	T max = a > b ? a : b;

	max = c > max ? c : max;
	max = max == never<T>() ? (T)0 : max;
	return logarithm(exponential(a - max) + exponential(b - max) + exponential(c - max)) + max;
}

/* The labels of a sequence with blanks before, between and after them. */
struct ctc_target {
	const int64_t *labels;
	int64_t blank, n;

	__device__ ctc_target(const cuda_ctc &c, int64_t b)
	    : labels(c.labels + c.first[b]), blank(c.blank), n(2 * c.target_lengths[b] + 1)
	{
	}
	__device__ int64_t label(int64_t s) const
	{
		return s & 1 ? labels[s / 2] : blank;
	}
	/* Whether position s may follow position s - 2: its label differs. */
	__device__ bool skips(int64_t s) const
	{
		return s > 1 && label(s) != label(s - 2);
	}
	/* Whether no earlier position has the label of s. */
	__device__ bool is_first(int64_t s) const
	{
		if (!(s & 1))
			return s == 0;
		for (int64_t k = s / 2 - 1; k >= 0; k--)
			if (labels[k] == labels[s / 2])
				return false;
		return labels[s / 2] != blank;
	}
};

template <class T> __global__ void __launch_bounds__(BLOCK) ctc_kernel(cuda_ctc c)
{
	const int64_t b = blockIdx.x, steps = c.input_lengths[b];
	const ctc_target target(c, b);
	const T *p = (const T *)c.log_probs + b * c.classes;
	T *row = (T *)c.alpha + b * c.steps * c.width;

	for (int64_t i = threadIdx.x; i < c.steps * c.width; i += BLOCK)
		row[i] = never<T>();
	__syncthreads();
	if (!steps) {
		if (threadIdx.x == 0)
			((T *)c.loss)[b] = target.n == 1 ? (T)0 : (T)INFINITY;
		return;
	}
	if (threadIdx.x < 2 && threadIdx.x < target.n)
		row[threadIdx.x] = p[target.label(threadIdx.x)];
	for (int64_t t = 1; t < steps; t++) {
		p += c.batch * c.classes;
		__syncthreads();
		for (int64_t s = threadIdx.x; s < target.n; s += BLOCK) {
			const T one = s > 0 ? row[s - 1] : never<T>();
			const T two = target.skips(s) ? row[s - 2] : never<T>();

			row[c.width + s] = log_sum(row[s], one, two) + p[target.label(s)];
		}
		row += c.width;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		((T *)c.loss)[b] = -log_sum(row[target.n - 1],
					    target.n > 1 ? row[target.n - 2] : never<T>(),
					    never<T>());
}

/* Sums the products of both variables of a step by class, to out, which is -inf. */
template <class T>
static __device__ inline void collect_step(const ctc_target &target, T *out, const T *alpha,
					   const T *beta)
{
	for (int64_t s = threadIdx.x; s < target.n; s += BLOCK) {
		const int64_t label = target.label(s);
		T sum = never<T>();

		if (!target.is_first(s))
			continue;
		for (int64_t k = s; k < target.n; k++)
			if (target.label(k) == label)
				sum = log_sum(sum, alpha[k] + beta[k], never<T>());
		out[label] = sum;
	}
}

template <class T>
static __device__ inline void collect(const cuda_ctc &c, const ctc_target &target, int64_t b)
{
	const int64_t steps = c.input_lengths[b], n = target.n;
	T *next = (T *)c.beta + 2 * b * c.width, *row = next + c.width;

	for (int64_t s = threadIdx.x; s < n; s += BLOCK)
		next[s] = s + 2 >= n ? (T)0 : never<T>();
	for (int64_t t = steps - 1; t >= 0; t--) {
		const bool last = t == steps - 1;
		const T *p = (const T *)c.log_probs + (t * c.batch + b) * c.classes;
		const T *alpha = (const T *)c.alpha + (b * c.steps + t) * c.width;
		T *swap = next;

		__syncthreads();
		for (int64_t s = threadIdx.x; s < n; s += BLOCK) {
			const T one = s + 1 < n && !last ? next[s + 1] : never<T>();
			const T two = s + 2 < n && !last && target.skips(s + 2) ? next[s + 2] :
										  never<T>();

			row[s] = log_sum(next[s], one, two) + p[target.label(s)];
		}
		__syncthreads();
		collect_step(target, (T *)c.out + (t * c.batch + b) * c.classes, alpha, row);
		next = row;
		row = swap;
	}
	__syncthreads();
}

template <class T> __global__ void __launch_bounds__(BLOCK) ctc_backward_kernel(cuda_ctc c)
{
	const int64_t b = blockIdx.x, all = c.steps * c.classes;
	const T loss = ((const T *)c.loss)[b], grad = ((const T *)c.grad)[b];
	const bool none = c.zero_infinity && loss == (T)INFINITY;
	const int64_t steps = none ? 0 : c.input_lengths[b];

	for (int64_t i = threadIdx.x; i < all; i += BLOCK) {
		const int64_t t = i / c.classes;

		((T *)c.out)[(t * c.batch + b) * c.classes + i % c.classes] =
			t < steps ? never<T>() : (T)0;
	}
	__syncthreads();
	if (steps)
		collect<T>(c, ctc_target(c, b), b);
	for (int64_t i = threadIdx.x; i < steps * c.classes; i += BLOCK) {
		const int64_t at = (i / c.classes * c.batch + b) * c.classes + i % c.classes;
		const T p = ((const T *)c.log_probs)[at];
		T *out = (T *)c.out + at;

		*out = (exponential(p) - exponential(*out + loss - p)) * grad;
	}
}

int cuda_launch_ctc(const cuda_ctc *c, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return launch(ctc_kernel<T>, (unsigned)c->batch, BLOCK, stream, *c);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_ctc_backward(const cuda_ctc *c, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return launch(ctc_backward_kernel<T>, (unsigned)c->batch, BLOCK, stream, *c);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
