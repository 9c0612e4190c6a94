/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Recurrent cells and layers. Results belong to the open scope. */
#ifndef TENSOR_RNN_H
#define TENSOR_RNN_H

#include "ops/op.h"

enum rnn_cell { RNN_TANH, RNN_RELU, RNN_GRU, RNN_LSTM };

/* Number of gates: rows of the weights per element of the state. */
static inline int rnn_gates(enum rnn_cell cell)
{
	return cell == RNN_LSTM ? 4 : cell == RNN_GRU ? 3 : 1;
}

/* The inputs of _lstm_layer. */
enum { GATES, HX, CX, W_HH, INPUTS };

struct rnn_state {
	tensor *h, *c; /* c: LSTM only */
};

/* Weights of one layer and direction. Absent biases and w_hr are tensor_none. */
struct rnn_weights {
	tensor *w_ih, *w_hh, *b_ih, *b_hh;
	tensor *w_hr; /* projects the hidden state of an LSTM */
	/* w_hh transposed for all steps, whose gates contain b_hh; NULL for a GRU and in single steps. One view for all steps
	 * has one gradient, to which each step adds. */
	tensor *w_hh_t;
};

/* -EINVAL if the weights do not fit the states and inputs of `in` features. */
int rnn_check_weights(const char *op, enum rnn_cell cell, const struct rnn_weights *w, int64_t in,
		      const struct rnn_state *s);
/* Run one step; `gates` is the input's contribution to the gates. Members of the result are NULL
 * with the error set. */
struct rnn_state rnn_step(enum rnn_cell cell, tensor *gates, struct rnn_state s,
			  const struct rnn_weights *w);

/* Split t into the rows of each of the n steps, by halves: the gradient of a view is as large as its base, so that direct views
 * of t would cost the square of the number of steps. */
int rnn_split_steps(tensor *t, const int64_t *rows, int64_t n, tensor **parts);

/* A matrix that the products of all steps read. */
struct rnn_matrix {
	tensor *w, *packed; /* packed: for the CPU's kernel; NULL if products read w */
};

/* For products with `rows` rows. Needs an open scope; on errors w is NULL. */
struct rnn_matrix rnn_matrix_of(tensor *w, int64_t rows, int64_t steps);
/* out = a w, plus `add` unless NULL. out has contiguous rows and is none of the others. NULL with the error set. */
tensor *rnn_multiply(const struct rnn_matrix *m, tensor *out, tensor *add, tensor *a);
/* Whether the kernels of an LSTM's step take t: a strided tensor of a dtype that they have. */
bool lstm_has_kernel(const tensor *t);

/* Check the rows per step of a packed sequence: at least `least`, not increasing, with the sum of
 * data's rows. 0 or -EINVAL with the error set. */
int rnn_check_rows(const char *op, const tensor *data, const int64_t *rows, int64_t steps,
		   int64_t least);

#endif
