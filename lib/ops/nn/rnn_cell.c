// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Recurrent cells, composed of linear and elementwise operators, which differentiate them. */
#include "ops/nn/rnn.h"

#include "family/binary.h"
#include "family/matmul.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/rnn.h"
#include "family/shape.h"
#include "family/unary.h"
#include "family/view.h"

static int check_shape(const char *op, const char *what, const tensor *t, int64_t rows,
		       int64_t columns)
{
	if (t->ndim == 2 && t->sizes[0] == rows && t->sizes[1] == columns)
		return 0;
	return tensor_fail(EINVAL, "%s: %s must have shape [%lld, %lld], got %s", op, what,
			   (long long)rows, (long long)columns, SHAPE_STR(t));
}

static int check_bias(const char *op, const tensor *bias, int64_t n)
{
	if (bias == tensor_none || (bias->ndim == 1 && bias->sizes[0] == n))
		return 0;
	return tensor_fail(EINVAL, "%s: biases must have shape [%lld], got %s", op, (long long)n,
			   SHAPE_STR(bias));
}

int rnn_check_weights(const char *op, enum rnn_cell cell, const struct rnn_weights *w, int64_t in,
		      const struct rnn_state *s)
{
	int64_t hidden = s->h->sizes[s->h->ndim - 1],
		size = s->c ? s->c->sizes[s->c->ndim - 1] : hidden, rows;

	if (__builtin_mul_overflow(rnn_gates(cell), size, &rows))
		return tensor_fail(EOVERFLOW, "%s: the states are too large", op);
	if (check_shape(op, "w_ih", w->w_ih, rows, in) < 0 ||
	    check_shape(op, "w_hh", w->w_hh, rows, hidden) < 0)
		return error_code();
	if (w->w_hr != tensor_none && check_shape(op, "w_hr", w->w_hr, hidden, size) < 0)
		return error_code();
	if (w->w_hr == tensor_none && hidden != size)
		return tensor_fail(EINVAL,
				   "%s: hidden states of %lld elements and cell states of %lld", op,
				   (long long)hidden, (long long)size);
	return check_bias(op, w->b_ih, rows) < 0 ? error_code() : check_bias(op, w->b_hh, rows);
}

static tensor *gru(tensor *gates, tensor *h, const struct rnn_weights *w)
{
	tensor *from[3], *to[3], *reset, *update, *now;
	tensor *more = tensor_linear(h, w->w_hh, w->b_hh);

	if (!more || tensor_chunk(gates, 3, 1, from, 3) < 0 || tensor_chunk(more, 3, 1, to, 3) < 0)
		return NULL;
	reset = tensor_sigmoid(tensor_add(from[0], to[0]));
	update = tensor_sigmoid(tensor_add(from[1], to[1]));
	now = tensor_tanh(tensor_add(from[2], tensor_mul(reset, to[2])));
	return tensor_add(tensor_mul(tensor_sub(h, now), update), now);
}

/* The state's contribution to the gates, added to that of the input. */
static tensor *add_state(tensor *gates, tensor *h, const struct rnn_weights *w)
{
	if (w->w_hh_t)
		return tensor_addmm(gates, h, w->w_hh_t);
	return tensor_add(gates, tensor_linear(h, w->w_hh, w->b_hh));
}

static struct rnn_state lstm(tensor *gates, struct rnn_state s, const struct rnn_weights *w)
{
	tensor *g[4], *kept, *added;
	tensor *all = add_state(gates, s.h, w);

	if (!all || tensor_chunk(all, 4, 1, g, 4) < 0)
		return (struct rnn_state){ 0 };
	kept = tensor_mul(tensor_sigmoid(g[1]), s.c);
	added = tensor_mul(tensor_sigmoid(g[0]), tensor_tanh(g[2]));
	s.c = tensor_add(kept, added);
	s.h = tensor_mul(tensor_sigmoid(g[3]), tensor_tanh(s.c));
	if (w->w_hr != tensor_none)
		s.h = tensor_linear(s.h, w->w_hr, tensor_none);
	return s;
}

struct rnn_state rnn_step(enum rnn_cell cell, tensor *gates, struct rnn_state s,
			  const struct rnn_weights *w)
{
	if (cell == RNN_LSTM)
		return lstm(gates, s, w);
	if (cell == RNN_GRU) {
		s.h = gru(gates, s.h, w);
		return s;
	}
	s.h = add_state(gates, s.h, w);
	s.h = cell == RNN_TANH ? tensor_tanh(s.h) : tensor_relu(s.h);
	return s;
}

/* ---- the cells as operators ---- */

static int check_cell(const char *op, enum rnn_cell cell, const tensor *input,
		      const struct rnn_state *s, const struct rnn_weights *w)
{
	if (input->ndim != 2 || s->h->ndim != 2 || (s->c && s->c->ndim != 2))
		return tensor_fail(EINVAL,
				   "%s: input and states must be matrices, got shapes %s and %s",
				   op, SHAPE_STR(input), SHAPE_STR(s->h));
	if (input->sizes[0] != s->h->sizes[0] || (s->c && input->sizes[0] != s->c->sizes[0]))
		return tensor_fail(EINVAL, "%s: %lld rows of input for states of shape %s", op,
				   (long long)input->sizes[0], SHAPE_STR(s->h));
	return rnn_check_weights(op, cell, w, input->sizes[1], s);
}

/* State after one step. Owned; members are NULL with the error set. */
static struct rnn_state one_step(const char *op, enum rnn_cell cell, tensor *input,
				 struct rnn_state s, struct rnn_weights w)
{
	struct tensor_scope_guard guard;

	w.b_ih = w.b_ih ? w.b_ih : tensor_none;
	w.b_hh = w.b_hh ? w.b_hh : tensor_none;
	w.w_hr = tensor_none;
	if (check_cell(op, cell, input, &s, &w) < 0)
		return (struct rnn_state){ 0 };
	guard = tensor_scope_enter();
	s = rnn_step(cell, tensor_linear(input, w.w_ih, w.b_ih), s, &w);
	s.h = s.h ? tensor_get(s.h) : NULL;
	s.c = s.h && s.c ? tensor_get(s.c) : NULL;
	scope_leave(&guard);
	return s;
}

#define CELL(NAME, OP, KIND)                                                              \
	tensor *NAME(tensor *input, tensor *hx, tensor *w_ih, tensor *w_hh, tensor *b_ih, \
		     tensor *b_hh)                                                        \
	{                                                                                 \
		struct rnn_weights w = { w_ih, w_hh, b_ih, b_hh, NULL, NULL };            \
                                                                                          \
		return one_step(OP, KIND, input, (struct rnn_state){ hx, NULL }, w).h;    \
	}
CELL(composite_rnn_tanh_cell, "rnn_tanh_cell", RNN_TANH)
CELL(composite_rnn_relu_cell, "rnn_relu_cell", RNN_RELU)
CELL(composite_gru_cell, "gru_cell", RNN_GRU)

int composite_lstm_cell(tensor *input, tensor_list hx, tensor *w_ih, tensor *w_hh, tensor *b_ih,
			tensor *b_hh, tensor **hy, tensor **cy)
{
	struct rnn_state s;

	*hy = *cy = NULL;
	if (hx.len != 2)
		return tensor_fail(EINVAL, "lstm_cell: a hidden and a cell state, got %lld tensors",
				   (long long)hx.len);
	s = one_step("lstm_cell", RNN_LSTM, input, (struct rnn_state){ hx.data[0], hx.data[1] },
		     (struct rnn_weights){ w_ih, w_hh, b_ih, b_hh, NULL, NULL });
	*hy = s.h;
	*cy = s.c;
	return s.h ? 0 : error_code();
}
