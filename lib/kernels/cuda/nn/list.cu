// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * One pass over all tensors of a list: scaling, clamping, interpolation, norms. Sums are f64; the
 * blocks of an item, whose results are combined in order, depend on the sizes alone.
 */
#include "kernels/cuda/launch_list.h"
#include "kernels/cuda/reduce/rows.cuh"

struct list_join {
	bool greatest;

	__device__ double join(double a, double b) const
	{
		if (greatest)
			return b > a || b != b ? b : a;
		return a + b;
	}
};

static __host__ __device__ inline list_join join_of(cuda_list_method method)
{
	return { method == CUDA_LIST_NORM_MAX || method == CUDA_LIST_UNSCALE };
}

/* The new element; *result is updated for methods that have one. */
template <class T>
static __device__ inline T list_step(cuda_list_method method, T x, T y, T value, double exponent,
				     double *result)
{
	const double size = fabs((double)x);

	switch (method) {
	case CUDA_LIST_CLAMP:
		x = x < -value ? -value : x;
		return x > value ? value : x;
	case CUDA_LIST_LERP:
		return x + value * (y - x);
	case CUDA_LIST_UNSCALE:
		*result = x * 0 != 0 ? 1 : *result; /* x is not finite */
		return x * value;
	case CUDA_LIST_NORM_1:
		*result += size;
		return x;
	case CUDA_LIST_NORM_2:
		*result += size * size;
		return x;
	case CUDA_LIST_NORM_MAX:
		*result = size > *result || size != size ? size : *result;
		return x;
	case CUDA_LIST_NORM_P:
		*result += pow(size, exponent);
		return x;
	default:
		return x * value;
	}
}

template <class X> __global__ void __launch_bounds__(BLOCK) list_kernel(cuda_list l)
{
	typedef typename number<X>::compute T;
	const auto &item = l.item[blockIdx.y];
	X *x = (X *)item.x;
	const X *y = (const X *)item.y;
	const T value = (T)l.value;
	double result = 0;

	for (int64_t i = first_element<int64_t>(); i < item.n; i += element_step<int64_t>()) {
		const T other = y ? number<X>::load(y[i]) : (T)0;
		const T v =
			list_step(l.method, number<X>::load(x[i]), other, value, l.value, &result);

		if (l.method < CUDA_LIST_NORM_1)
			x[i] = number<X>::store(v);
	}
	if (!l.partial)
		return;
	result = join_lanes(join_of(l.method), result);
	if (threadIdx.x == 0)
		l.partial[blockIdx.y * gridDim.x + blockIdx.x] = result;
}

__global__ void __launch_bounds__(BLOCK)
	list_total_kernel(list_join op, const double *partial, int64_t n, double *result)
{
	double sum = 0;

	for (int64_t i = threadIdx.x; i < n; i += BLOCK)
		sum = op.join(sum, partial[i]);
	sum = join_lanes(op, sum);
	if (threadIdx.x == 0)
		*result = sum;
}

int cuda_launch_list(const cuda_list *l, int dtype, cudaStream_t stream)
{
	const dim3 grid((unsigned)l->blocks, (unsigned)l->n);

	switch (dtype) {
#define X(D, X) \
	case D: \
		return launch(list_kernel<X>, grid, BLOCK, stream, *l);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_list_total(cuda_list_method method, const double *partial, int64_t n,
			   double *result, cudaStream_t stream)
{
	return launch(list_total_kernel, 1, BLOCK, stream, join_of(method), partial, n, result);
}
