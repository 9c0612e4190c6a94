// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The elementwise part of an LSTM's step, forward and backward: each number is read and written once. */
#include "kernels/abi/lstm.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vecmath.h"

#include "iter/parallel.h"

#define WORK (1 << 12) /* elements of the states in a chunk of parallel work */

struct lstm_step {
	int64_t size;
	void *gates, *cells, *output, *grad_gates;
	const void *before, *grad_output, *grad_cells, *grad_hidden;
	float *state;
	/* Elements between rows. */
	int64_t gates_row, cells_row, output_row, grad_gates_row;
	int64_t before_row, grad_output_row, grad_cells_row, grad_hidden_row;
};

static inline vec_f32 sigmoid(vec_f32 x)
{
	return 1 / (1 + exp_f32v(-x));
}

static inline int64_t lanes_left(int64_t n)
{
	return n < VEC_F32 ? n : VEC_F32;
}

/* The gradient of y = sigmoid(x), and of y = tanh(x), for dy. */
static inline vec_f32 of_sigmoid(vec_f32 dy, vec_f32 y)
{
	return dy * (1 - y) * y;
}

static inline vec_f32 of_tanh(vec_f32 dy, vec_f32 y)
{
	return dy * (1 - y * y);
}

#define X		   float
#define F(name)		   name##_f32
#define LANES_OF(p, n)	   vec_load_f32(p, vec_part_f32(n))
#define PUT_LANES(p, v, n) vec_store_f32(p, vec_part_f32(n), v)
#include "kernels/cpu/nn/lstm_loops.h"
#undef X
#undef F
#undef LANES_OF
#undef PUT_LANES

#define X		   uint16_t
#define F(name)		   name##_f16
#define LANES_OF(p, n)	   vec_get_reduced(p, n, true)
#define PUT_LANES(p, v, n) vec_put_reduced(p, v, n, true)
#include "kernels/cpu/nn/lstm_loops.h"
#undef F
#undef LANES_OF
#undef PUT_LANES

#define F(name)		   name##_bf16
#define LANES_OF(p, n)	   vec_get_reduced(p, n, false)
#define PUT_LANES(p, v, n) vec_put_reduced(p, v, n, false)
#include "kernels/cpu/nn/lstm_loops.h"
#undef F
#undef LANES_OF
#undef PUT_LANES
#undef X

typedef void (*rows_fn)(int64_t begin, int64_t end, void *ctx);

static int run(const tensor *state, enum tensor_dtype dtype, struct lstm_step *s,
	       const rows_fn by_dtype[3])
{
	int64_t grain = WORK / (s->size + 1) + 1;

	parallel_for(0, state->sizes[0], grain,
		     by_dtype[dtype == TENSOR_F32 ? 0 :
			      dtype == TENSOR_F16 ? 1 :
						    2],
		     s);
	return 0;
}

static int cpu_lstm_step(tensor *gates, tensor *state, tensor *cells, tensor *output)
{
	static const rows_fn by_dtype[] = { forward_rows_f32, forward_rows_f16, forward_rows_bf16 };
	struct lstm_step s = { .size = state->sizes[1],
			       .gates = gates->data,
			       .cells = cells->data,
			       .output = output->data,
			       .state = state->data,
			       .gates_row = gates->strides[0],
			       .cells_row = cells->strides[0],
			       .output_row = output->strides[0] };

	return run(state, gates->dtype, &s, by_dtype);
}

static int cpu_lstm_step_backward(tensor *grad_gates, tensor *grad_state,
				  const struct lstm_step_backward *b)
{
	static const rows_fn by_dtype[] = { backward_rows_f32, backward_rows_f16,
					    backward_rows_bf16 };
	struct lstm_step s = { .size = grad_state->sizes[1],
			       .gates = b->gates->data,
			       .cells = b->cells->data,
			       .grad_gates = grad_gates->data,
			       .before = b->before->data,
			       .grad_hidden = b->grad_hidden->data,
			       .state = grad_state->data,
			       .gates_row = b->gates->strides[0],
			       .cells_row = b->cells->strides[0],
			       .grad_gates_row = grad_gates->strides[0],
			       .before_row = b->before->strides[0],
			       .grad_hidden_row = b->grad_hidden->strides[0] };

	if (b->grad_output) {
		s.grad_output = b->grad_output->data;
		s.grad_output_row = b->grad_output->strides[0];
	}
	if (b->grad_cells) {
		s.grad_cells = b->grad_cells->data;
		s.grad_cells_row = b->grad_cells->strides[0];
	}
	return run(grad_state, grad_gates->dtype, &s, by_dtype);
}

CPU_KERNELS(KERNEL(lstm_step), KERNEL(lstm_step_backward))
