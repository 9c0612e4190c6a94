// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* arange and linspace, as fill.c and linspace.c of the CPU compute them. */
#include "kernels/cuda/launch_random.h"
#include "kernels/cuda/pointwise/complex.cuh"

template <class T, class C>
__global__ void arange_kernel(int64_t n, int64_t stride, C start, C step, T *out)
{
	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>())
		out[i * stride] = (T)(start + step * (C)i);
}

/* From both ends towards the middle: both are exact. C: the type to compute in. */
template <class T, class C>
__global__ void linspace_kernel(int64_t n, C start, C end, C step, T *out)
{
	const int64_t last = n - 1, half = n / 2;

	for (int64_t i = first_element<int64_t>(); i < n; i += element_step<int64_t>())
		out[i] = i < half || !last ? (T)(start + step * (C)i) :
					     (T)(end - step * (C)(last - i));
}

static double double_of(const tensor_scalar &s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT ? s.d :
	       s.kind == TENSOR_SCALAR_UINT  ? (double)s.u :
					       (double)s.i;
}

static double imag_of(const tensor_scalar &s)
{
	return s.kind == TENSOR_SCALAR_COMPLEX ? s.imag : 0;
}

static int64_t int_of(const tensor_scalar &s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT ? (int64_t)s.d : s.i;
}

template <class T, class C>
static int arange(void *out, int64_t n, int64_t stride, C start, C step, cudaStream_t stream)
{
	return launch(arange_kernel<T, C>, grid_for(n, BLOCK), BLOCK, stream, n, stride, start,
		      step, (T *)out);
}

template <class T, class C>
static int linspace(void *out, int64_t n, C start, C end, cudaStream_t stream)
{
	return launch(linspace_kernel<T, C>, grid_for(n, BLOCK), BLOCK, stream, n, start, end,
		      (end - start) / (C)(n > 1 ? n - 1 : 1), (T *)out);
}

#define FOR_ALL_INTS(X)         \
	FOR_INTS(X)             \
	X(TENSOR_U16, uint16_t) \
	X(TENSOR_U32, uint32_t) \
	X(TENSOR_U64, uint64_t)

int cuda_launch_arange(void *out, int64_t n, int64_t stride, tensor_scalar start,
		       tensor_scalar step, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return arange<T, int64_t>(out, n, stride, int_of(start), int_of(step), stream);
		FOR_ALL_INTS(X)
#undef X
#define X(D, T) \
	case D: \
		return arange<T, double>(out, n, stride, double_of(start), double_of(step), stream);
		FOR_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

template <class T>
static int complex_linspace(void *out, int64_t n, const tensor_scalar &start,
			    const tensor_scalar &end, cudaStream_t stream)
{
	const T last = (T)(n > 1 ? n - 1 : 1);
	const complex_of<T> a((T)double_of(start), (T)imag_of(start));
	const complex_of<T> b((T)double_of(end), (T)imag_of(end));
	const complex_of<T> step((b.re - a.re) / last, (b.im - a.im) / last);

	return launch(linspace_kernel<complex_of<T>, complex_of<T>>, grid_for(n, BLOCK), BLOCK,
		      stream, n, a, b, step, (complex_of<T> *)out);
}

int cuda_launch_linspace(void *out, int64_t n, tensor_scalar start, tensor_scalar end, int dtype,
			 cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                 \
	case D:                                                                 \
		return linspace<T, double>(out, n, (double)(T)double_of(start), \
					   (double)(T)double_of(end), stream);
		FOR_ALL_INTS(X)
#undef X
#define X(D, T) \
	case D: \
		return linspace<T, T>(out, n, (T)double_of(start), (T)double_of(end), stream);
		FOR_FLOATS(X)
#undef X
	case TENSOR_C64:
		return complex_linspace<float>(out, n, start, end, stream);
	case TENSOR_C128:
		return complex_linspace<double>(out, n, start, end, stream);
	default:
		return CUDA_NO_DTYPE;
	}
}
