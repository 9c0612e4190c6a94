// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * nll_loss and its gradient. A thread has rows of its own; sums of a block go to memory, in f64,
 * and one block adds them, so that the order depends on the number of rows alone.
 */
#include "kernels/cuda/launch_nn.h"
#include "kernels/cuda/reduce/rows.cuh"
#include "kernels/cuda/report.cuh"

/* The class of a row, or -1 if it is ignored or out of range; reports the latter. */
static __device__ inline int64_t class_of(const cuda_nll &l, int64_t row)
{
	const int64_t t = l.target[row * l.target_stride];

	if (t == l.ignore_index)
		return -1;
	if (t >= 0 && t < l.classes)
		return t;
	report_value(l.bad, CUDA_BAD_CLASS, (uint64_t)row, t, l.classes);
	return -1;
}

template <class T> static __device__ inline T weight_of(const cuda_nll &l, int64_t k)
{
	return l.weight ? ((const T *)l.weight)[k * l.weight_stride] : (T)1;
}

template <class T> __global__ void nll_kernel(cuda_nll l, T *out, const T *self, double *sums)
{
	double sum = 0, weights = 0;

	for (int64_t i = first_element<int64_t>(); i < l.rows; i += element_step<int64_t>()) {
		const int64_t k = class_of(l, i);
		T w = 0, loss = 0;

		if (k >= 0) {
			w = weight_of<T>(l, k);
			loss = -w * self[i * l.row_stride + k * l.class_stride];
		}
		if (l.each)
			out[i * l.out_stride] = loss;
		sum += (double)loss;
		weights += (double)w;
	}
	sum = join_row<plus, 0>(sum);
	weights = join_row<plus, 1>(weights);
	if (threadIdx.x == 0) {
		sums[2 * blockIdx.x] = sum;
		sums[2 * blockIdx.x + 1] = weights;
	}
}

template <class T>
__global__ void nll_total_kernel(cuda_nll l, T *out, T *total, const double *sums, int blocks)
{
	double sum = 0, weights = 0;

	for (int i = (int)threadIdx.x; i < blocks; i += (int)blockDim.x) {
		sum += sums[2 * i];
		weights += sums[2 * i + 1];
	}
	sum = join_row<plus, 0>(sum);
	weights = join_row<plus, 1>(weights);
	if (threadIdx.x)
		return;
	if (!l.each)
		*out = (T)(l.mean ? sum / weights : sum);
	*total = l.each ? (T)0 : (T)weights;
}

template <class T>
__global__ void nll_backward_kernel(cuda_nll l, T *out, const T *grad, const T *total)
{
	for (int64_t i = first_element<int64_t>(); i < l.rows; i += element_step<int64_t>()) {
		const int64_t k = class_of(l, i);
		const T g = grad[i * l.out_stride];

		if (k >= 0)
			out[i * l.row_stride + k * l.class_stride] =
				-weight_of<T>(l, k) * (l.mean ? g / *total : g);
	}
}

template <class T>
static int nll_of(const cuda_nll *l, T *out, T *total, const T *self, double *sums, int blocks,
		  cudaStream_t stream)
{
	int err = launch(nll_kernel<T>, (unsigned)blocks, BLOCK, stream, *l, out, self, sums);

	return err ? err :
		     launch(nll_total_kernel<T>, 1, BLOCK, stream, *l, out, total,
			    (const double *)sums, blocks);
}

int cuda_launch_nll(const cuda_nll *l, void *out, void *total, const void *self, double *sums,
		    int blocks, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return nll_of<T>(l, (T *)out, (T *)total, (const T *)self, sums, blocks, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_nll_backward(const cuda_nll *l, void *out, const void *grad, const void *total,
			     int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                                    \
	case D:                                                                                    \
		return launch(nll_backward_kernel<T>, grid_for(l->rows, BLOCK), BLOCK, stream, *l, \
			      (T *)out, (const T *)grad, (const T *)total);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
