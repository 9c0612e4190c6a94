// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The elementwise part of an LSTM's step: a thread has an element of the state. */
#include "kernels/cuda/half.cuh"
#include "kernels/cuda/launch_loss.h"

static __device__ inline float sigmoid_of(float x)
{
	return 1 / (1 + expf(-x));
}

/* The gradient of y = sigmoid(x), and of y = tanh(x), for dy. */
static __device__ inline float through_sigmoid(float dy, float y)
{
	return dy * (1 - y) * y;
}

static __device__ inline float through_tanh(float dy, float y)
{
	return dy * (1 - y * y);
}

template <class X> __global__ void lstm_kernel(cuda_lstm s)
{
	for (int64_t e = first_element<int64_t>(); e < s.rows * s.size;
	     e += element_step<int64_t>()) {
		const int64_t r = e / s.size, j = e % s.size;
		X *gates = (X *)s.gates + r * s.gates_row + j;
		const float i = sigmoid_of(number<X>::load(gates[0]));
		const float f = sigmoid_of(number<X>::load(gates[s.size]));
		const float g = tanhf(number<X>::load(gates[2 * s.size]));
		const float o = sigmoid_of(number<X>::load(gates[3 * s.size]));
		const float c = f * s.state[e] + i * g;

		s.state[e] = c;
		gates[0] = number<X>::store(i);
		gates[s.size] = number<X>::store(f);
		gates[2 * s.size] = number<X>::store(g);
		gates[3 * s.size] = number<X>::store(o);
		((X *)s.cells)[r * s.cells_row + j] = number<X>::store(c);
		((X *)s.output)[r * s.output_row + j] = number<X>::store(o * tanhf(c));
	}
}

template <class X> __global__ void lstm_backward_kernel(cuda_lstm s)
{
	for (int64_t e = first_element<int64_t>(); e < s.rows * s.size;
	     e += element_step<int64_t>()) {
		const int64_t r = e / s.size, j = e % s.size;
		const X *gates = (const X *)s.gates + r * s.gates_row + j;
		X *to = (X *)s.grad_gates + r * s.grad_gates_row + j;
		const float i = number<X>::load(gates[0]), f = number<X>::load(gates[s.size]);
		const float g = number<X>::load(gates[2 * s.size]);
		const float o = number<X>::load(gates[3 * s.size]);
		const float t = tanhf(number<X>::load(((const X *)s.cells)[r * s.cells_row + j]));
		const float before = number<X>::load(((const X *)s.before)[r * s.before_row + j]);
		float dh = number<X>::load(((const X *)s.grad_hidden)[r * s.grad_hidden_row + j]);
		float dc = s.state[e];

		if (s.grad_output)
			dh += number<X>::load(
				((const X *)s.grad_output)[r * s.grad_output_row + j]);
		if (s.grad_cells)
			dc += number<X>::load(((const X *)s.grad_cells)[r * s.grad_cells_row + j]);
		dc += through_tanh(dh * o, t);
		to[0] = number<X>::store(through_sigmoid(dc * g, i));
		to[s.size] = number<X>::store(through_sigmoid(dc * before, f));
		to[2 * s.size] = number<X>::store(through_tanh(dc * i, g));
		to[3 * s.size] = number<X>::store(through_sigmoid(dh * t, o));
		s.state[e] = dc * f;
	}
}

#define LSTM_DTYPES(X) X(TENSOR_F32, float) FOR_REDUCED_FLOATS(X)

int cuda_launch_lstm_step(const cuda_lstm *s, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                                  \
	case D:                                                                                  \
		return launch(lstm_kernel<T>, grid_for(s->rows * s->size, BLOCK), BLOCK, stream, \
			      *s);
		LSTM_DTYPES(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_lstm_step_backward(const cuda_lstm *s, int dtype, cudaStream_t stream)
{
	switch (dtype) {
#define X(D, T)                                                                                   \
	case D:                                                                                   \
		return launch(lstm_backward_kernel<T>, grid_for(s->rows * s->size, BLOCK), BLOCK, \
			      stream, *s);
		LSTM_DTYPES(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}
