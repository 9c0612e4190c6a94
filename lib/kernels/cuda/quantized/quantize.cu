// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* quantize and dequantize, by the formulas of the CPU. */
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_quantized.h"

#include "kernels/formula/quantize.h"

static __device__ inline int64_t channel_of(const cuda_quant &q, int64_t i)
{
	return q.scale ? i / q.inner % q.channels : 0;
}

template <class T>
static __device__ inline T quantized(float x, float inverse, int32_t zero, int64_t lowest,
				     int64_t highest)
{
	return (T)quantize_to_byte(x, inverse, zero, (float)(lowest - zero),
				   (float)(highest - zero));
}

static __device__ inline void store_quantized(uint8_t *to, float x, float inverse, int32_t zero)
{
	*to = quantized<uint8_t>(x, inverse, zero, 0, UINT8_MAX);
}

static __device__ inline void store_quantized(int8_t *to, float x, float inverse, int32_t zero)
{
	*to = quantized<int8_t>(x, inverse, zero, INT8_MIN, INT8_MAX);
}

static __device__ inline void store_quantized(int32_t *to, float x, float inverse, int32_t zero)
{
	*to = quantize_to_i32(x, inverse, zero);
}

template <class T> __global__ void quantize_kernel(cuda_quant q)
{
	for (int64_t i = first_element<int64_t>(); i < q.n; i += element_step<int64_t>()) {
		const int64_t c = channel_of(q, i);
		const float scale = q.scale ? q.scale[c] : q.one_scale;

		store_quantized((T *)q.out + i, ((const float *)q.in)[i], 1.0f / scale,
				q.scale ? q.zero[c] : q.one_zero);
	}
}

template <class T> __global__ void dequantize_kernel(cuda_quant q)
{
	for (int64_t i = first_element<int64_t>(); i < q.n; i += element_step<int64_t>()) {
		const int64_t c = channel_of(q, i);
		const int32_t x = ((const T *)q.in)[i], zero = q.scale ? q.zero[c] : q.one_zero;

		((float *)q.out)[i] =
			q.exact ? dequantize_by_f64(x, zero, q.exact[c]) :
				  dequantize_by_f32(x, zero, q.scale ? q.scale[c] : q.one_scale);
	}
}

#define FOR_QUANTIZED(X)      \
	X(TENSOR_U8, uint8_t) \
	X(TENSOR_I8, int8_t)  \
	X(TENSOR_I32, int32_t)

int cuda_launch_quantize(const cuda_quant *q, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return launch(quantize_kernel<T>, grid_for(q->n, BLOCK), BLOCK, stream, *q);
		FOR_QUANTIZED(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_dequantize(const cuda_quant *q, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T) \
	case D: \
		return launch(dequantize_kernel<T>, grid_for(q->n, BLOCK), BLOCK, stream, *q);
		FOR_QUANTIZED(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
