// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The gradient of an LSTM's layer: the steps backward, then one product for the weights. */
#include "autograd/formulas/formulas.h"

#include "ops/nn/rnn.h"

#include "family/activation.h"
#include "family/factory.h"
#include "family/mm.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/shape.h"
#include "family/view.h"

#include <stdlib.h>

static bool given(const tensor *t)
{
	return t && t != tensor_none;
}

/* ---- as differentiable operators ---- */

/* Runs the steps of gates; states has space for 3 * steps tensors, hidden and cell states come first. */
static int composed_steps(tensor *const *in, const struct rnn_weights *w, const int64_t *rows,
			  bool reverse, tensor **states)
{
	int64_t steps = in[GATES]->sizes[0];
	struct rnn_state s = { in[HX], in[CX] };

	if (rnn_split_steps(tensor_flatten(in[GATES], 0, 1), rows, steps, states + 2 * steps) < 0)
		return -1;
	for (int64_t k = 0; k < steps; k++) {
		int64_t t = reverse ? steps - 1 - k : k;

		s = rnn_step(RNN_LSTM, states[2 * steps + t], s, w);
		if (!s.h || !s.c)
			return -1;
		states[t] = s.h;
		states[steps + t] = s.c;
	}
	return 0;
}

/* Output and cells of all steps. */
static int layer_composed(tensor *const *in, tensor **out, const void *ctx)
{
	const struct rnn_weights w = { .w_hh_t = tensor_t(in[W_HH]), .w_hr = tensor_none };
	int64_t steps = in[GATES]->sizes[0], *rows = malloc(steps * sizeof(*rows));
	tensor **states = calloc(3 * (size_t)steps, sizeof(*states));
	int err;

	if (rows && states) {
		for (int64_t t = 0; t < steps; t++)
			rows[t] = in[GATES]->sizes[1];
		err = w.w_hh_t ? composed_steps(in, &w, rows, *(const bool *)ctx, states) : -1;
	} else {
		err = tensor_fail(ENOMEM, "_lstm_layer: no memory for %lld steps",
				  (long long)steps);
	}
	for (int i = 0; !err && i < 2; i++) {
		out[i] = tensor_stack((tensor_list){ states + i * steps, steps }, 0);
		err = out[i] ? 0 : -1;
	}
	free(rows);
	free(states);
	return err;
}

/* ---- by steps ---- */

struct walk {
	tensor_list in;
	tensor *output, *cells, *activated; /* saved */
	tensor *grad_output, *grad_cells;   /* NULL: zero */
	tensor *gates;			    /* result: gradients of the gates */
	tensor *h, *c, *tanh, *part;	    /* gradients of the states, and temporary memory */
	int64_t steps;
	bool reverse;
};

static tensor *at(tensor *t, int64_t step)
{
	return t ? tensor_select(t, 0, step) : NULL;
}

/* The step whose result step t reads; outside of the sequence for the first. */
static int64_t previous(const struct walk *w, int64_t t)
{
	return w->reverse ? t + 1 : t - 1;
}

static bool is_step(const struct walk *w, int64_t t)
{
	return t >= 0 && t < w->steps;
}

/* w->h and w->c: gradients of the states after step t become those before it. */
static bool step_backward(struct walk *w, int64_t t)
{
	tensor *a = at(w->activated, t), *grad = at(w->gates, t), *y[4], *dy[4], *before;

	before = is_step(w, previous(w, t)) ? at(w->cells, previous(w, t)) : w->in.data[CX];
	if (tensor_chunk(a, 4, 1, y, 4) < 0 || tensor_chunk(grad, 4, 1, dy, 4) < 0)
		return false;
	if (w->grad_output && !tensor_add_(w->h, at(w->grad_output, t)))
		return false;
	if (w->grad_cells && !tensor_add_(w->c, at(w->grad_cells, t)))
		return false;
	tensor_tanh_out(w->tanh, at(w->cells, t));
	tensor_sigmoid_backward_out(dy[3], tensor_mul_out(w->part, w->h, w->tanh), y[3]);
	tensor_mul_out(w->part, w->h, y[3]);
	tensor_add_(w->c, tensor_tanh_backward_out(w->part, w->part, w->tanh));
	tensor_sigmoid_backward_out(dy[0], tensor_mul_out(w->part, w->c, y[2]), y[0]);
	tensor_sigmoid_backward_out(dy[1], tensor_mul_out(w->part, w->c, before), y[1]);
	return tensor_tanh_backward_out(dy[2], tensor_mul_out(w->part, w->c, y[0]), y[2]) &&
	       tensor_mul_(w->c, y[1]) && tensor_mm_out(w->h, grad, w->in.data[W_HH]);
}

static bool steps_backward(struct walk *w)
{
	for (int64_t k = 0; k < w->steps; k++) {
		struct tensor_scope_guard guard = tensor_scope_enter();
		bool done = step_backward(w, w->reverse ? k : w->steps - 1 - k);

		scope_leave(&guard);
		if (!done)
			return false;
	}
	return true;
}

static tensor *rows(tensor *t)
{
	return tensor_flatten(t, 0, 1);
}

/* The sum over steps of their gates' gradients times the states before them. */
static tensor *weight_gradient(const struct walk *w)
{
	int64_t first = w->reverse ? w->steps - 1 : 0, rest = w->steps - 1;
	tensor *sum = tensor_mm(tensor_t(at(w->gates, first)), w->in.data[HX]);

	if (!rest)
		return sum;
	return tensor_addmm_(sum, tensor_t(rows(tensor_narrow(w->gates, 0, !w->reverse, rest))),
			     rows(tensor_narrow(w->output, 0, w->reverse, rest)));
}

static int walk_back(tensor **out, struct walk *w)
{
	w->gates = tensor_empty_like(w->activated, TENSOR_OPTIONS(0));
	w->h = tensor_zeros_like(w->in.data[HX], TENSOR_OPTIONS(0));
	w->c = tensor_zeros_like(w->in.data[CX], TENSOR_OPTIONS(0));
	w->tanh = tensor_empty_like(w->h, TENSOR_OPTIONS(0));
	w->part = tensor_empty_like(w->h, TENSOR_OPTIONS(0));
	if (!w->gates || !w->h || !w->c || !w->tanh || !w->part || !steps_backward(w))
		return -1;
	out[GATES] = w->gates;
	out[HX] = w->h;
	out[CX] = w->c;
	out[W_HH] = weight_gradient(w);
	return out[W_HH] ? 0 : -1;
}

/* Autocast would convert the products, but not what is added to them. */
static int walk_back_unconverted(tensor **out, struct walk *w)
{
	struct thread_modes *m = &thread()->modes;
	uint32_t exclude = m->exclude;
	int err;

	m->exclude |= AUTOCAST_BIT;
	err = walk_back(out, w);
	m->exclude = exclude;
	return err;
}

int lstm_layer_backward(tensor **out, tensor *const *grads, tensor_list inputs, tensor *output,
			tensor *cells, tensor *activated, bool reverse)
{
	struct walk w = { .in = inputs,
			  .output = output,
			  .cells = cells,
			  .activated = activated,
			  .grad_output = given(grads[0]) ? grads[0] : NULL,
			  .grad_cells = given(grads[1]) ? grads[1] : NULL,
			  .steps = output->sizes[0],
			  .reverse = reverse };

	if (activated->sizes[0] != w.steps)
		return tensor_fail(EINVAL, "_lstm_layer: without save there is no gradient");
	/* Conjugates, and tensors of many samples, need the operators. */
	if (formula_is_differentiated() || dtype_is_complex(output->dtype) ||
	    thread()->modes.batch_level)
		return formula_vjp_all(layer_composed, &reverse, inputs, grads, 2, out);
	return walk_back_unconverted(out, &w);
}
