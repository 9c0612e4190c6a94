// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Losses of pairs of elements, their sums and derivatives. The number of blocks, whose sums are added
 * in their order, depends on the number of pairs alone.
 */
#include "kernels/cuda/launch_loss.h"
#include "kernels/cuda/reduce/rows.cuh"

template <class T> __global__ void pair_loss_kernel(cuda_pair_loss l, T *out, double *partial)
{
	const T edge = (T)l.edge, half = (T)(l.edge / 2), square = (T)l.square, slope = (T)l.slope;
	double sum = 0;

	for (int64_t i = first_element<int64_t>(); i < l.n; i += element_step<int64_t>()) {
		const T d = ((const T *)l.self)[i] - ((const T *)l.target)[i], a = d < 0 ? -d : d;
		const T loss = a <= edge ? a * a * square : (a - half) * slope;

		if (l.each)
			out[i] = loss;
		sum += (double)loss;
	}
	if (l.each)
		return;
	sum = join_row<plus, 0>(sum);
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum;
}

template <class T>
__global__ void pair_total_kernel(cuda_pair_loss l, T *out, const double *partial, int blocks)
{
	double sum = 0;

	for (int i = (int)threadIdx.x; i < blocks; i += (int)blockDim.x)
		sum += partial[i];
	sum = join_row<plus, 0>(sum);
	if (threadIdx.x == 0)
		*out = (T)(l.mean ? sum / (double)l.n : sum);
}

template <class T> __global__ void pair_backward_kernel(cuda_pair_loss l, T *out)
{
	const T *grad = (const T *)l.grad;
	const T edge = (T)l.edge, square = (T)l.square, slope = (T)l.slope;
	const T factor = (T)l.factor * (l.each ? (T)1 : grad[0]);

	for (int64_t i = first_element<int64_t>(); i < l.n; i += element_step<int64_t>()) {
		const T d = ((const T *)l.self)[i] - ((const T *)l.target)[i];
		/* NaN stays NaN. */
		T v = d <= edge && d >= -edge ? 2 * square * d : d < 0 ? -slope : d > 0 ? slope : d;

		v *= factor;
		out[i] = l.each ? v * grad[i] : v;
	}
}

template <class T>
static int loss_of(const cuda_pair_loss *l, T *out, double *partial, int blocks,
		   cudaStream_t stream)
{
	int err = launch(pair_loss_kernel<T>, l->each ? grid_for(l->n, BLOCK) : (unsigned)blocks,
			 BLOCK, stream, *l, out, partial);

	return err || l->each ? err :
				launch(pair_total_kernel<T>, 1, BLOCK, stream, *l, out,
				       (const double *)partial, blocks);
}

int cuda_launch_pair_loss(const cuda_pair_loss *l, void *out, double *partial, int blocks,
			  int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return loss_of<T>(l, (T *)out, partial, blocks, stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_pair_loss_backward(const cuda_pair_loss *l, void *out, int dtype,
				   cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                                  \
	case D:                                                                                  \
		return launch(pair_backward_kernel<T>, grid_for(l->n, BLOCK), BLOCK, stream, *l, \
			      (T *)out);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
