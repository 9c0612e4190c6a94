// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Recurrent layers. All work on packed sequences: the rows of a step are adjacent, steps follow one
 * another, and no step has more rows than the one before. A padded batch has the same number of
 * rows in every step.
 */
#include "ops/nn/rnn.h"

#include "family/factory.h"
#include "family/cat.h"
#include "family/matmul.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/random.h"
#include "family/rnn.h"
#include "family/shape.h"
#include "family/view.h"

#include <stdlib.h>

struct rnn {
	const char *op;
	enum rnn_cell cell;
	tensor_list params;
	int64_t layers, directions, per_layer; /* per_layer: parameters of a layer and direction */
	bool biases, projected;
	double dropout;	     /* 0 outside training */
	struct rnn_state hx; /* [layers * directions, batch, size] */
	int64_t steps;
	const int64_t *rows; /* of each step */
	/* For the current layer and direction, `steps` of each: the input's contribution to the
	 * gates, and the states. */
	tensor **gates, **states;
	tensor **ended; /* hidden, then cell states of finished sequences */
};

/* ---- one direction of a layer ---- */

int rnn_split_steps(tensor *t, const int64_t *rows, int64_t n, tensor **parts)
{
	int64_t half = n / 2, first = 0;

	if (!t)
		return error_code();
	if (n == 1) {
		parts[0] = t;
		return 0;
	}
	for (int64_t i = 0; i < half; i++)
		first += rows[i];
	if (rnn_split_steps(tensor_narrow(t, 0, 0, first), rows, half, parts) < 0)
		return error_code();
	return rnn_split_steps(tensor_narrow(t, 0, first, t->sizes[0] - first), rows + half,
			       n - half, parts + half);
}

static tensor *rows_of(tensor *t, int64_t from, int64_t n)
{
	return !t || (!from && n == t->sizes[0]) ? t : tensor_narrow(t, 0, from, n);
}

/* Change the state to the step's number of rows: remove finished sequences, add those that begin.
 */
static struct rnn_state resize_state(struct rnn_state s, struct rnn_state first, int64_t rows)
{
	int64_t have = s.h->sizes[0];

	if (rows <= have)
		return (struct rnn_state){ rows_of(s.h, 0, rows), rows_of(s.c, 0, rows) };
	s.h = tensor_cat(TENSOR_LIST(s.h, rows_of(first.h, have, rows - have)), 0);
	if (s.c)
		s.c = tensor_cat(TENSOR_LIST(s.c, rows_of(first.c, have, rows - have)), 0);
	return s;
}

/* Run a step; its intermediate results are released. */
static struct rnn_state take_step(const struct rnn *r, tensor *gates, struct rnn_state s,
				  const struct rnn_weights *w)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	bool cell = s.c;

	s = rnn_step(r->cell, gates, s, w);
	if (!s.h || (cell && !s.c)) {
		scope_leave(&guard);
		return (struct rnn_state){ 0 };
	}
	s.h = tensor_get(s.h);
	s.c = s.c ? tensor_get(s.c) : NULL;
	scope_leave(&guard);
	tensor_scope_add(s.h);
	if (s.c)
		tensor_scope_add(s.c);
	return s;
}

/* Concatenate the n parts in reverse order. */
static tensor *join_ended(tensor *last, tensor **ended, int64_t n)
{
	if (!n)
		return last;
	ended[n] = last;
	for (int64_t i = 0; i < (n + 1) / 2; i++) {
		tensor *swap = ended[i];

		ended[i] = ended[n - i];
		ended[n - i] = swap;
	}
	return tensor_cat((tensor_list){ ended, n + 1 }, 0);
}

/* Run all steps from the first state; returns the last state of every sequence. r->states gets the
 * state of each step. */
static struct rnn_state walk(struct rnn *r, struct rnn_state first, const struct rnn_weights *w,
			     bool backward)
{
	int64_t begin = backward ? r->steps - 1 : 0, nended = 0;
	struct rnn_state s = resize_state(first, first, r->rows[begin]);
	tensor **ended_c = r->ended + r->steps + 1;

	for (int64_t k = 0; k < r->steps && s.h; k++) {
		int64_t t = backward ? begin - k : k, have = s.h->sizes[0];

		if (r->rows[t] < have) {
			r->ended[nended] = rows_of(s.h, r->rows[t], have - r->rows[t]);
			if (s.c)
				ended_c[nended] = rows_of(s.c, r->rows[t], have - r->rows[t]);
			nended++;
		}
		if (r->rows[t] != have)
			s = resize_state(s, first, r->rows[t]);
		s = s.h ? take_step(r, r->gates[t], s, w) : s;
		r->states[t] = s.h;
	}
	if (!s.h)
		return s;
	s.h = join_ended(s.h, r->ended, nended);
	s.c = s.c ? join_ended(s.c, ended_c, nended) : NULL;
	return s;
}

static struct rnn_weights weights_of(const struct rnn *r, int64_t k)
{
	tensor *const *p = r->params.data + k * r->per_layer;

	return (struct rnn_weights){ p[0],
				     p[1],
				     r->biases ? p[2] : tensor_none,
				     r->biases ? p[3] : tensor_none,
				     r->projected ? p[r->per_layer - 1] : tensor_none,
				     NULL };
}

static struct rnn_state state_of(const struct rnn *r, int64_t k)
{
	return (struct rnn_state){ tensor_select(r->hx.h, 0, k),
				   r->hx.c ? tensor_select(r->hx.c, 0, k) : NULL };
}

/* The input's contribution to the gates of all steps. That of the state has a bias of its own in a GRU only. */
static tensor *gates_of_input(const struct rnn *r, tensor *input, const struct rnn_weights *w)
{
	tensor *bias = w->b_ih;

	if (r->cell != RNN_GRU && bias != tensor_none)
		bias = tensor_add(bias, w->b_hh);
	return tensor_linear(input, w->w_ih, bias);
}

/* Whether a tensor has the dtype of the gates, or autocast gives it that. */
static bool gets_dtype_of(const tensor *gates, const tensor *t)
{
	return t->dtype == gates->dtype ||
	       (thread()->modes.autocast_depth && gates->dtype == thread()->modes.autocast_dtype &&
		t->dtype == TENSOR_F32 && t->device.type == TENSOR_CPU);
}

/* Whether _lstm_layer computes all steps: all have the same rows, and nothing changes what the operators of a step do. */
static bool is_one_layer(const struct rnn *r, const tensor *gates, struct rnn_state s,
			 const struct rnn_weights *w)
{
	const tensor *all[] = { gates, s.h, s.c, w->w_hh };
	const struct thread_modes *m = &thread()->modes;

	if (r->cell != RNN_LSTM || r->projected || dtype_is_complex(gates->dtype) ||
	    r->rows[0] != r->rows[r->steps - 1] || m->batch_level)
		return false;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!gets_dtype_of(gates, all[i]) || all[i]->keys & FORWARD_BIT || all[i]->ext)
			return false;
	return true;
}

static tensor *lstm_layer(const struct rnn *r, tensor *gates, struct rnn_state first,
			  const struct rnn_weights *w, bool backward, struct rnn_state *last)
{
	bool save = operand_is_recorded(gates) || operand_is_recorded(first.h) ||
		    operand_is_recorded(first.c) || operand_is_recorded(w->w_hh);
	int64_t end = backward ? 0 : r->steps - 1;
	tensor *out, *cells, *activated;

	gates = tensor_view(gates, TENSOR_INTS(r->steps, r->rows[0], gates->sizes[1]));
	if (!gates || tensor__lstm_layer(TENSOR_LIST(gates, first.h, first.c, w->w_hh), backward,
					 save, &out, &cells, &activated) < 0)
		return NULL;
	*last = (struct rnn_state){ tensor_select(out, 0, end), tensor_select(cells, 0, end) };
	return last->h && last->c ? tensor_flatten(out, 0, 1) : NULL;
}

/* Run layer and direction k over input [rows, features]. Returns its output; *last is the last
 * state. */
static tensor *one_direction(struct rnn *r, tensor *input, int64_t k, struct rnn_state *last)
{
	struct rnn_weights w = weights_of(r, k);
	struct rnn_state first = state_of(r, k);
	tensor *gates;

	if (!first.h || (r->hx.c && !first.c) ||
	    rnn_check_weights(r->op, r->cell, &w, input->sizes[1], &first) < 0)
		return NULL;
	gates = gates_of_input(r, input, &w);
	if (gates && is_one_layer(r, gates, first, &w))
		return lstm_layer(r, gates, first, &w, k % r->directions, last);
	if (!gates || rnn_split_steps(gates, r->rows, r->steps, r->gates) < 0)
		return NULL;
	if (r->cell != RNN_GRU)
		w.w_hh_t = tensor_t(w.w_hh);
	if (r->cell != RNN_GRU && !w.w_hh_t)
		return NULL;
	*last = walk(r, first, &w, k % r->directions);
	return last->h ? tensor_cat((tensor_list){ r->states, r->steps }, 0) : NULL;
}

/* ---- all layers ---- */

/* Run all layers on packed input. Returns the output of the last one; *h and *c get the last states
 * of all. */
static tensor *all_layers(struct rnn *r, tensor *input, tensor **h, tensor **c)
{
	for (int64_t l = 0; l < r->layers && input; l++) {
		tensor *out[2] = { NULL };

		if (l && r->dropout > 0)
			input = tensor_dropout(input, r->dropout, true);
		for (int64_t d = 0; d < r->directions && input; d++) {
			int64_t k = l * r->directions + d;
			struct rnn_state last = { 0 };

			out[d] = one_direction(r, input, k, &last);
			if (!out[d])
				return NULL;
			h[k] = last.h;
			c[k] = last.c;
		}
		input = r->directions == 2 && input ? tensor_cat(TENSOR_LIST(out[0], out[1]), 1) :
						      out[0];
	}
	return input;
}

static int check_states(const struct rnn *r, int64_t batch)
{
	const tensor *states[] = { r->hx.h, r->hx.c };
	int64_t n = r->layers * r->directions;

	for (int i = 0; i < 2; i++)
		if (states[i] && (states[i]->ndim != 3 || states[i]->sizes[0] != n ||
				  states[i]->sizes[1] != batch))
			return tensor_fail(EINVAL,
					   "%s: states must have shape [%lld, %lld, size], got %s",
					   r->op, (long long)n, (long long)batch,
					   SHAPE_STR(states[i]));
	return 0;
}

static int check_layers(struct rnn *r)
{
	r->projected = r->hx.c && r->hx.h->ndim == 3 && r->hx.c->ndim == 3 &&
		       r->hx.h->sizes[2] != r->hx.c->sizes[2];
	r->per_layer = 2 + 2 * r->biases + r->projected;
	if (r->layers < 1 || r->layers > r->params.len)
		return tensor_fail(EINVAL, "%s: %lld layers with %lld parameters", r->op,
				   (long long)r->layers, (long long)r->params.len);
	if (r->params.len != r->layers * r->directions * r->per_layer)
		return tensor_fail(EINVAL, "%s: %lld parameters are needed, got %lld", r->op,
				   (long long)r->layers * r->directions * r->per_layer,
				   (long long)r->params.len);
	if (!(r->dropout >= 0 && r->dropout <= 1))
		return tensor_fail(EINVAL, "%s: dropout must be between 0 and 1, got %g", r->op,
				   r->dropout);
	return 0;
}

/*
 * Allocate the working memory and run the layers on packed input [rows, features]. Needs an open
 * scope. A layer needs tensors for gates and states, twice those of finished sequences, and the
 * last states of all layers.
 */
static tensor *run_packed(struct rnn *r, tensor *input, struct rnn_state *last)
{
	int64_t n = r->layers * r->directions;
	tensor **space = calloc(4 * (size_t)r->steps + 2 + 2 * (size_t)n, sizeof(*space)), **h, **c;
	tensor *output;

	if (!space) {
		tensor_fail(ENOMEM, "%s: no memory for %lld steps", r->op, (long long)r->steps);
		return NULL;
	}
	r->gates = space;
	r->states = space + r->steps;
	r->ended = space + 2 * r->steps;
	h = r->ended + 2 * (r->steps + 1);
	c = h + n;
	output = all_layers(r, input, h, c);
	if (output) {
		last->h = tensor_stack((tensor_list){ h, n }, 0);
		last->c = r->hx.c ? tensor_stack((tensor_list){ c, n }, 0) : NULL;
	}
	free(space);
	return last->h && (last->c || !r->hx.c) ? output : NULL;
}

/* Close the scope and pass the results to the caller. */
static int finish_layers(struct tensor_scope_guard *guard, tensor *out, struct rnn_state last,
			 tensor **output, tensor **hy, tensor **cy)
{
	const struct op_result results[] = { { output, out }, { hy, last.h }, { cy, last.c } };

	return results_leave(guard, results, cy ? 3 : 2, out ? 0 : error_code());
}

/* Run on a padded input [steps, batch, features], passed as packed rows. The output is reshaped to
 * the steps. */
static tensor *over_batch(struct rnn *r, tensor *input, struct rnn_state *last)
{
	int64_t batch = input->sizes[1], *rows = malloc(input->sizes[0] * sizeof(*rows));
	tensor *out;

	if (!rows) {
		tensor_fail(ENOMEM, "%s: no memory for %lld steps", r->op,
			    (long long)input->sizes[0]);
		return NULL;
	}
	r->steps = input->sizes[0];
	for (int64_t i = 0; i < r->steps; i++)
		rows[i] = batch;
	r->rows = rows;
	out = run_packed(r, tensor_flatten(input, 0, 1), last);
	free(rows);
	return out ? tensor_view(out, TENSOR_INTS(r->steps, batch, out->sizes[1])) : NULL;
}

static int run_batch(struct rnn *r, tensor *input, bool batch_first, tensor **output, tensor **hy,
		     tensor **cy)
{
	struct rnn_state last = { 0 };
	struct tensor_scope_guard guard;
	tensor *out;

	if (input->ndim != 3 || !input->sizes[!!batch_first])
		return tensor_fail(
			EINVAL,
			"%s: input must have 3 dimensions and a step at least, got shape %s", r->op,
			SHAPE_STR(input));
	if (check_layers(r) < 0 || check_states(r, input->sizes[!batch_first]) < 0)
		return error_code();
	guard = tensor_scope_enter();
	input = batch_first ? tensor_transpose(input, 0, 1) : input;
	out = input ? over_batch(r, input, &last) : NULL;
	if (out && batch_first)
		out = tensor_transpose(out, 0, 1);
	return finish_layers(&guard, out, last, output, hy, cy);
}

static int run_data(struct rnn *r, tensor *data, tensor *batch_sizes, tensor **output, tensor **hy,
		    tensor **cy)
{
	struct rnn_state last = { 0 };
	struct tensor_scope_guard guard;
	int64_t *rows;
	tensor *out = NULL;

	if (data->ndim != 2 || batch_sizes->ndim != 1 || batch_sizes->dtype != TENSOR_I64 ||
	    !batch_sizes->numel)
		return tensor_fail(
			EINVAL,
			"%s: data must be a matrix and batch_sizes a vector of i64, got shapes "
			"%s and %s",
			r->op, SHAPE_STR(data), SHAPE_STR(batch_sizes));
	/* Copy batch_sizes: another process could change shared memory during the call. */
	rows = malloc(batch_sizes->numel * sizeof(*rows));
	if (!rows)
		return tensor_fail(ENOMEM, "%s: no memory for batch_sizes", r->op);
	r->steps = batch_sizes->numel;
	r->rows = rows;
	guard = tensor_scope_enter();
	if (!tensor_copy_to(batch_sizes, rows, batch_sizes->numel * sizeof(*rows)) &&
	    rnn_check_rows(r->op, data, rows, r->steps, 1) == 0 && check_layers(r) == 0 &&
	    check_states(r, rows[0]) == 0)
		out = run_packed(r, data, &last);
	free(rows);
	return finish_layers(&guard, out, last, output, hy, cy);
}

/* ---- the operators ---- */

static struct rnn rnn_of(const char *op, enum rnn_cell cell, struct rnn_state hx,
			 tensor_list params, bool has_biases, int64_t num_layers, double dropout,
			 bool bidirectional)
{
	return (struct rnn){ .op = op,
			     .cell = cell,
			     .hx = hx,
			     .params = params,
			     .layers = num_layers,
			     .directions = 1 + bidirectional,
			     .biases = has_biases,
			     .dropout = dropout };
}

#define RNN(NAME, OP, KIND)                                                                        \
	int NAME(tensor *input, tensor *hx, tensor_list params, bool has_biases,                   \
		 int64_t num_layers, double dropout, bool train, bool bidirectional,               \
		 bool batch_first, tensor **output, tensor **hy)                                   \
	{                                                                                          \
		struct rnn r = rnn_of(OP, KIND, (struct rnn_state){ hx, NULL }, params,            \
				      has_biases, num_layers, train ? dropout : 0, bidirectional); \
                                                                                                   \
		return run_batch(&r, input, batch_first, output, hy, NULL);                        \
	}
#define RNN_DATA(NAME, OP, KIND)                                                                   \
	int NAME(tensor *data, tensor *batch_sizes, tensor *hx, tensor_list params,                \
		 bool has_biases, int64_t num_layers, double dropout, bool train,                  \
		 bool bidirectional, tensor **output, tensor **hy)                                 \
	{                                                                                          \
		struct rnn r = rnn_of(OP, KIND, (struct rnn_state){ hx, NULL }, params,            \
				      has_biases, num_layers, train ? dropout : 0, bidirectional); \
                                                                                                   \
		return run_data(&r, data, batch_sizes, output, hy, NULL);                          \
	}
RNN(composite_rnn_tanh, "rnn_tanh", RNN_TANH)
RNN(composite_rnn_relu, "rnn_relu", RNN_RELU)
RNN(composite_gru, "gru", RNN_GRU)
RNN_DATA(composite_rnn_tanh_data, "rnn_tanh", RNN_TANH)
RNN_DATA(composite_rnn_relu_data, "rnn_relu", RNN_RELU)
RNN_DATA(composite_gru_data, "gru", RNN_GRU)

/* Set up an LSTM. hx: hidden and cell state. */
static int lstm_of(struct rnn *r, tensor_list hx, tensor_list params, bool has_biases,
		   int64_t num_layers, double dropout, bool bidirectional)
{
	struct rnn_state first;

	if (hx.len != 2)
		return tensor_fail(EINVAL, "lstm: a hidden and a cell state, got %lld tensors",
				   (long long)hx.len);
	first = (struct rnn_state){ hx.data[0], hx.data[1] };
	*r = rnn_of("lstm", RNN_LSTM, first, params, has_biases, num_layers, dropout,
		    bidirectional);
	return 0;
}

int composite_lstm(tensor *input, tensor_list hx, tensor_list params, bool has_biases,
		   int64_t num_layers, double dropout, bool train, bool bidirectional,
		   bool batch_first, tensor **output, tensor **hy, tensor **cy)
{
	struct rnn r;

	if (lstm_of(&r, hx, params, has_biases, num_layers, train ? dropout : 0, bidirectional) < 0)
		return error_code();
	return run_batch(&r, input, batch_first, output, hy, cy);
}

int composite_lstm_data(tensor *data, tensor *batch_sizes, tensor_list hx, tensor_list params,
			bool has_biases, int64_t num_layers, double dropout, bool train,
			bool bidirectional, tensor **output, tensor **hy, tensor **cy)
{
	struct rnn r;

	if (lstm_of(&r, hx, params, has_biases, num_layers, train ? dropout : 0, bidirectional) < 0)
		return error_code();
	return run_data(&r, data, batch_sizes, output, hy, cy);
}
