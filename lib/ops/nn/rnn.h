/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Recurrent cells, and the layers that are made of them. Results belong to the open scope. */
#ifndef TENSOR_RNN_H
#define TENSOR_RNN_H

#include "ops/op.h"

enum rnn_cell { RNN_TANH, RNN_RELU, RNN_GRU, RNN_LSTM };

/* Rows of the weights for each element of the state. */
static inline int rnn_gates(enum rnn_cell cell)
{
	return cell == RNN_LSTM ? 4 : cell == RNN_GRU ? 3 : 1;
}

struct rnn_state {
	tensor *h, *c; /* c: of LSTM */
};

/* Of one layer and direction; biases and w_hr are tensor_none where there are none. */
struct rnn_weights {
	tensor *w_ih, *w_hh, *b_ih, *b_hh;
	tensor *w_hr; /* projects the hidden state of LSTM */
};

/* -EINVAL unless the weights fit inputs of `in` features and the states. */
int rnn_check_weights(const char *op, enum rnn_cell cell, const struct rnn_weights *w, int64_t in,
		      const struct rnn_state *s);
/* One step: `gates` is what the input adds to the gates. Members are NULL with the error set. */
struct rnn_state rnn_step(enum rnn_cell cell, tensor *gates, struct rnn_state s,
			  const struct rnn_weights *w);

/* Rows of a packed sequence for each step: none below `least`, none more than in the step before,
 * together those of data. 0 or -EINVAL with the error set. */
int rnn_check_rows(const char *op, const tensor *data, const int64_t *rows, int64_t steps,
		   int64_t least);

#endif
