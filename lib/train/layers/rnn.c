// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* LSTM and GRU as layers. */
#include "train/layers/layer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_LAYERS = 1000, TENSORS = 4 }; /* w_ih, w_hh, b_ih, b_hh */

static const struct layer_type lstm_type = {
	.op = "module_lstm",
	.d = { "dropout" },
	.i = { "in", "hidden", "layers", "bidirectional", "batch_first", "bias" },
};
static const struct layer_type gru_type = {
	.op = "module_gru",
	.d = { "dropout" },
	.i = { "in", "hidden", "layers", "bidirectional", "batch_first", "bias" },
};

struct rnn_layer {
	struct layer_key key;
	int64_t in, hidden, layers, directions;
	bool batch_first, bias;
	struct tensor_rnn_state *state;
	tensor **param;
	int64_t nparams;
};

/* ---- parameters ---- */

static int make_param(struct rnn_layer *r, tensor_module *layer, const char *what, int64_t l,
		      bool reverse, tensor_ints sizes)
{
	double bound = layer_bound((double)r->hidden);
	char name[64];
	tensor *t;

	snprintf(name, sizeof(name), "%s_l%lld%s", what, (long long)l, reverse ? "_reverse" : "");
	t = layer_parameter(layer, &r->key, name, sizes, layer_init_uniform, &bound);
	r->param[r->nparams++] = t;
	return t ? 0 : -EINVAL;
}

static int make_params(struct rnn_layer *r, tensor_module *layer)
{
	const int64_t rows = (r->key.type == &lstm_type ? 4 : 3) * r->hidden;
	int err = 0;

	for (int64_t k = 0; k < r->layers * r->directions && !err; k++) {
		const int64_t l = k / r->directions;
		const bool reverse = k % r->directions;
		const int64_t in = l ? r->hidden * r->directions : r->in;

		err = make_param(r, layer, "weight_ih", l, reverse, TENSOR_INTS(rows, in)) ?:
			      make_param(r, layer, "weight_hh", l, reverse,
					 TENSOR_INTS(rows, r->hidden));
		if (r->bias && !err)
			err = make_param(r, layer, "bias_ih", l, reverse, TENSOR_INTS(rows)) ?:
				      make_param(r, layer, "bias_hh", l, reverse,
						 TENSOR_INTS(rows));
	}
	return err ? err : layer_made(layer, &r->key);
}

/* ---- states ---- */

/* The state for the operator, [layers * directions, batch, hidden]. */
static tensor *state_in(const struct rnn_layer *r, tensor *given, tensor *x, bool batched)
{
	const int64_t batch = tensor_size(x, r->batch_first ? 0 : 1);

	if (given)
		return batched ? given : tensor_unsqueeze(given, 1);
	return tensor_zeros(TENSOR_INTS(r->layers * r->directions, batch, r->hidden),
			    (tensor_options){ .dtype = x->dtype, .device = x->device });
}

static tensor *state_out(tensor *t, bool batched)
{
	return batched || !t ? t : tensor_squeeze_dim(t, 1);
}

static tensor *call(struct rnn_layer *r, tensor *x, bool batched, bool training,
		    struct tensor_rnn_state *last)
{
	const bool lstm = r->key.type == &lstm_type, both = r->directions == 2;
	tensor_list params = { r->param, r->nparams };
	tensor *h = state_in(r, r->state ? r->state->h : NULL, x, batched), *c = NULL, *y;
	int err;

	if (lstm)
		c = state_in(r, r->state ? r->state->c : NULL, x, batched);
	if (!h || (lstm && !c))
		return NULL;
	if (lstm)
		err = tensor_lstm(x, TENSOR_LIST(h, c), params, r->bias, r->layers, r->key.d[0],
				  training, both, r->batch_first, &y, &last->h, &last->c);
	else
		err = tensor_gru(x, h, params, r->bias, r->layers, r->key.d[0], training, both,
				 r->batch_first, &y, &last->h);
	if (err < 0)
		return NULL;
	last->h = state_out(last->h, batched);
	last->c = lstm ? state_out(last->c, batched) : NULL;
	return last->h && (!lstm || last->c) ? y : NULL;
}

static tensor *rnn(struct rnn_layer *r, tensor_module *m, const char *name, tensor *x,
		   struct tensor_rnn_state *last)
{
	const bool batched = tensor_dim(x) == 3;
	tensor_module *layer = layer_module(m, name, &r->key);
	tensor *y = NULL;

	if (!layer)
		return NULL;
	r->param = calloc((size_t)(r->layers * r->directions * TENSORS), sizeof(*r->param));
	if (!r->param)
		return tensor_fail_null(ENOMEM, "%s: no memory", r->key.type->op);
	if (make_params(r, layer) == 0) {
		const int64_t batch_dim = r->batch_first ? 0 : 1;

		y = batched ? x : tensor_unsqueeze(x, batch_dim);
		y = y ? call(r, y, batched, layer->training, last) : NULL;
		y = y && !batched ? tensor_squeeze_dim(y, batch_dim) : y;
	}
	free(r->param);
	return y;
}

/* ---- the public functions ---- */

static int check(struct rnn_layer *r, const tensor *x, const struct tensor_rnn_options *o)
{
	const char *op = r->key.type->op;
	const bool lstm = r->key.type == &lstm_type;

	if (tensor_dim(x) != 2 && tensor_dim(x) != 3)
		return tensor_fail(EINVAL, "%s: x must have 2 or 3 dimensions, got %s", op,
				   SHAPE_STR(x));
	if (layer_at_least(op, "hidden", r->hidden, 1) < 0 ||
	    layer_at_least(op, "layers", r->layers, 1) < 0)
		return -EINVAL;
	if (r->layers > MOST_LAYERS || r->hidden > INT64_MAX / 8)
		return tensor_fail(EINVAL, "%s: %lld layers of %lld", op, (long long)r->layers,
				   (long long)r->hidden);
	if (!(o->dropout >= 0 && o->dropout <= 1))
		return tensor_fail(EINVAL, "%s: dropout must be 0 to 1, got %g", op, o->dropout);
	if (r->state && lstm && !r->state->h != !r->state->c)
		return tensor_fail(EINVAL, "%s: the state has only one of h and c", op);
	return 0;
}

static void set_state(struct tensor_rnn_state *state, struct tensor_rnn_state last, bool done)
{
	if (!done)
		last = (struct tensor_rnn_state){ NULL, NULL };
	*state = last;
}

/* Leaves the scope with y and the states, all of which the caller gets. */
static tensor *leave(struct tensor_scope_guard *scope, struct rnn_layer *r, tensor *y,
		     struct tensor_rnn_state last)
{
	tensor **results[] = { &y, &last.h, &last.c };
	bool done = y;

	if (y && r->state) {
		tensor_get(last.h);
		if (last.c)
			tensor_get(last.c);
	} else {
		last = (struct tensor_rnn_state){ NULL, NULL };
	}
	y = scope_leave_with(scope, y);
	done = done && scope_own_results(results, 3) == 0;
	if (r->state)
		set_state(r->state, last, done);
	return done ? y : NULL;
}

static tensor *rnn_layer(const struct layer_type *type, tensor_module *m, const char *name,
			 tensor *x, int64_t hidden, const struct tensor_rnn_options *o)
{
	struct tensor_rnn_state last = { NULL, NULL };
	struct rnn_layer r = { .hidden = hidden,
			       .layers = o->layers ? o->layers : 1,
			       .directions = 1 + o->bidirectional,
			       .batch_first = o->batch_first,
			       .bias = !o->no_bias,
			       .state = o->state,
			       .key = { .type = type, .d = { o->dropout } } };
	struct tensor_scope_guard scope;

	if (layer_absent(type->op, m, x) || check(&r, x, o) < 0) {
		if (o->state)
			set_state(o->state, last, false);
		return NULL;
	}
	r.in = tensor_size(x, -1);
	r.key.i[0] = r.in;
	r.key.i[1] = hidden;
	r.key.i[2] = r.layers;
	r.key.i[3] = o->bidirectional;
	r.key.i[4] = o->batch_first;
	r.key.i[5] = r.bias;
	scope = tensor_scope_enter();
	return leave(&scope, &r, rnn(&r, m, name, x, &last), last);
}

TENSOR_EXPORT tensor *tensor_module_lstm_opt(tensor_module *m, const char *name, tensor *x,
					     int64_t hidden, struct tensor_rnn_options o)
{
	return rnn_layer(&lstm_type, m, name, x, hidden, &o);
}

TENSOR_EXPORT tensor *tensor_module_gru_opt(tensor_module *m, const char *name, tensor *x,
					    int64_t hidden, struct tensor_rnn_options o)
{
	return rnn_layer(&gru_type, m, name, x, hidden, &o);
}
