// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The gradient of an LSTM's layer: the steps backward, then one product for the weights. */
#include "autograd/formulas/formulas.h"

#include "ops/nn/rnn.h"

#include "family/activation.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/mm.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/shape.h"
#include "family/rnn.h"
#include "family/view.h"
#include "kernels/abi/lstm.h"

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
	tensor *before;			    /* cell state before the first step */
	tensor *grad_output, *grad_cells;   /* NULL: zero */
	tensor *gates;			    /* result: gradients of the gates */
	tensor *h, *c, *tanh, *part;	    /* gradients of the states, and temporary memory */
	struct rnn_matrix w_hh;
	int64_t steps;
	bool reverse, by_kernel;
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

static bool deactivate(struct walk *w, int64_t t, tensor *grad, tensor *before)
{
	tensor *y[4], *dy[4];

	if (tensor_chunk(at(w->activated, t), 4, 1, y, 4) < 0 ||
	    tensor_chunk(grad, 4, 1, dy, 4) < 0)
		return false;
	if (w->grad_output && !tensor_add_(w->h, at(w->grad_output, t)))
		return false;
	if (w->grad_cells && !tensor_add_(w->c, at(w->grad_cells, t)))
		return false;
	/* Results are checked one by one: a step that goes on without memory for a view is wrong. */
	return tensor_tanh_out(w->tanh, at(w->cells, t)) &&
	       tensor_sigmoid_backward_out(dy[3], tensor_mul_out(w->part, w->h, w->tanh), y[3]) &&
	       tensor_mul_out(w->part, w->h, y[3]) &&
	       tensor_add_(w->c, tensor_tanh_backward_out(w->part, w->part, w->tanh)) &&
	       tensor_sigmoid_backward_out(dy[0], tensor_mul_out(w->part, w->c, y[2]), y[0]) &&
	       tensor_sigmoid_backward_out(dy[1], tensor_mul_out(w->part, w->c, before), y[1]) &&
	       tensor_tanh_backward_out(dy[2], tensor_mul_out(w->part, w->c, y[0]), y[2]) &&
	       tensor_mul_(w->c, y[1]);
}

static bool deactivate_by_kernel(struct walk *w, int64_t t, tensor *grad, tensor *before)
{
	const struct lstm_step_backward s = { .gates = at(w->activated, t),
					      .cells = at(w->cells, t),
					      .before = before,
					      .grad_output = at(w->grad_output, t),
					      .grad_cells = at(w->grad_cells, t),
					      .grad_hidden = w->h };

	if (!s.gates || !s.cells || (w->grad_output && !s.grad_output) ||
	    (w->grad_cells && !s.grad_cells))
		return false;
	return ((lstm_step_backward_kernel)kernels_lstm_step_backward.fn[backend_key(grad)])(
		       grad, w->c, &s) == 0;
}

/* w->h and w->c: gradients of the states after step t become those before it. */
static bool step_backward(struct walk *w, int64_t t)
{
	tensor *grad = at(w->gates, t), *before;

	before = is_step(w, previous(w, t)) ? at(w->cells, previous(w, t)) : w->before;
	if (!grad || !before)
		return false;
	if (!(w->by_kernel ? deactivate_by_kernel : deactivate)(w, t, grad, before))
		return false;
	return rnn_multiply(&w->w_hh, w->h, NULL, grad);
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

/* Whether t is of the kernel's dtypes and has the states' sizes, `columns` of them, in each step. */
static bool kernel_takes(const struct walk *w, const tensor *t, int64_t columns)
{
	const tensor *cells = w->cells;

	return lstm_has_kernel(t) && backend_key(t) == backend_key(cells) &&
	       t->dtype == cells->dtype && t->ndim == 3 && t->sizes[0] == w->steps &&
	       t->sizes[1] == cells->sizes[1] && t->sizes[2] == columns * cells->sizes[2];
}

/*
 * Whether the kernels compute the steps; then what they read gets contiguous rows. -1 on errors. Hooks for saved tensors may
 * have returned others, for which the operators fail.
 */
static int begin_kernel(struct walk *w)
{
	tensor **read[] = { &w->before, &w->cells, &w->activated, &w->grad_output, &w->grad_cells };

	if (!kernel_takes(w, w->cells, 1) || !kernel_takes(w, w->activated, 4) ||
	    !lstm_has_kernel(w->before) || w->before->dtype != w->cells->dtype ||
	    backend_key(w->before) != backend_key(w->cells) || w->before->ndim != 2 ||
	    w->before->sizes[0] != w->cells->sizes[1] ||
	    w->before->sizes[1] != w->cells->sizes[2] ||
	    (w->grad_output && !kernel_takes(w, w->grad_output, 1)) ||
	    (w->grad_cells && !kernel_takes(w, w->grad_cells, 1)))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(read); i++)
		if (*read[i] && !(*read[i] = tensor_contiguous(*read[i])))
			return -1;
	return 1;
}

/* The gradients of the states: zero, in f32 for the kernel. */
static bool begin_states(struct walk *w)
{
	const tensor *cells = w->cells;
	tensor_ints sizes = { cells->sizes + 1, 2 };
	tensor_options same = TENSOR_OPTIONS(.dtype = cells->dtype, .device = cells->device);
	tensor_options sum = same;

	if (w->by_kernel)
		sum.dtype = TENSOR_F32;
	w->h = tensor_zeros(sizes, same);
	w->c = tensor_zeros(sizes, sum);
	if (w->by_kernel)
		return w->h && w->c;
	w->tanh = tensor_empty(sizes, same);
	w->part = tensor_empty(sizes, same);
	return w->h && w->c && w->tanh && w->part;
}

static int walk_back(tensor **out, struct walk *w)
{
	int by_kernel = begin_kernel(w);

	if (by_kernel < 0)
		return -1;
	w->by_kernel = by_kernel;
	w->gates = tensor_empty_like(w->activated, TENSOR_OPTIONS(0));
	if (!w->gates || !begin_states(w))
		return -1;
	w->w_hh = rnn_matrix_of(w->in.data[W_HH], w->h->sizes[0], w->steps);
	if (!w->w_hh.w || !steps_backward(w))
		return -1;
	out[GATES] = w->gates;
	out[HX] = w->h;
	out[CX] = w->by_kernel ? tensor_to(w->c, TENSOR_OPTIONS(.dtype = w->h->dtype)) : w->c;
	out[W_HH] = weight_gradient(w);
	return out[CX] && out[W_HH] ? 0 : -1;
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
			  .before = inputs.data[CX],
			  .grad_output = given(grads[0]) ? grads[0] : NULL,
			  .grad_cells = given(grads[1]) ? grads[1] : NULL,
			  .steps = output->sizes[0],
			  .reverse = reverse };

	if (output->ndim != 3 || cells->ndim != 3 || activated->ndim != 3)
		return tensor_fail(EINVAL, "_lstm_layer: saved tensors must have 3 dimensions");
	if (activated->sizes[0] != w.steps)
		return tensor_fail(EINVAL, "_lstm_layer: without save there is no gradient");
	/* Conjugates, and tensors of many samples, need the operators. */
	if (formula_is_differentiated() || dtype_is_complex(output->dtype) ||
	    thread()->modes.batch_level)
		return formula_vjp_all(layer_composed, &reverse, inputs, grads, 2, out);
	return walk_back_unconverted(out, &w);
}
