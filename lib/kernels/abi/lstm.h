/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of the elementwise part of an LSTM's step, for states of n rows of h elements. Gates have rows of 4 * h: those
 * of the input, forget, cell and output gate. All tensors of a step have one dtype, f32, f16 or bf16, contiguous rows, and
 * f16 and bf16 are computed in f32; `state` and `grad_state` are contiguous f32 [n, h].
 */
#ifndef TENSOR_LSTM_H
#define TENSOR_LSTM_H

#include "core/tensor_impl.h"

/*
 * gates, before their activation, become the activated ones; state, the cell state, that of the next step. cells and
 * output receive the cell and the hidden state.
 */
typedef int (*lstm_step_kernel)(tensor *gates, tensor *state, tensor *cells, tensor *output);
extern lstm_step_kernel type_of_lstm_step;

struct lstm_step_backward {
	const tensor *gates, *cells; /* activated gates and cell state of this step */
	const tensor *before;	     /* cell state of the step before */
	const tensor *grad_output;   /* of this step alone; NULL: zero */
	const tensor *grad_cells;    /* likewise */
	const tensor *grad_hidden;   /* from the next step */
};

/* grad_gates receives the gradient of the gates before their activation; grad_state becomes that of the state before. */
typedef int (*lstm_step_backward_kernel)(tensor *grad_gates, tensor *grad_state,
					 const struct lstm_step_backward *s);
extern lstm_step_backward_kernel type_of_lstm_step_backward;

#endif
