// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * All steps of an LSTM's layer as one operator. Composed of an operator for each step, every step's product would pack the
 * weights and add to their gradient.
 */
#include "ops/nn/rnn.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/rnn.h"
#include "family/shape.h"
#include "family/view.h"
#include "kernels/abi/lstm.h"

#define OP "_lstm_layer"

struct lstm_layer {
	int64_t steps, rows, size;
	bool reverse, save;
	tensor *output, *cells; /* [steps, rows, size] */
	tensor *activated;	/* [steps, rows, 4 * size]; of one step unless save */
	tensor *state; /* cell state for the kernel, f32 [rows, size]; NULL: by operators */
	struct rnn_matrix w_hh_t;
};

static int check_shape(const char *name, const tensor *t, int ndim, const int64_t *sizes)
{
	bool fits = t->ndim == ndim;

	for (int d = 0; fits && d < ndim; d++)
		fits = t->sizes[d] == sizes[d];
	return fits ? 0 :
		      tensor_fail(EINVAL, OP ": %s of shape %s does not fit the gates", name,
				  SHAPE_STR(t));
}

static int check_inputs(tensor_list in)
{
	static const char *const names[] = { "gates", "hx", "cx", "w_hh" };
	const tensor *gates;
	int64_t size;

	if (in.len != INPUTS)
		return tensor_fail(EINVAL, OP ": 4 inputs are needed, got %lld", (long long)in.len);
	gates = in.data[GATES];
	if (gates->ndim != 3 || !gates->sizes[0] || gates->sizes[2] % 4)
		return tensor_fail(EINVAL, OP ": gates must have shape [t, n, 4 * h], got %s",
				   SHAPE_STR(gates));
	for (int i = HX; i < INPUTS; i++)
		if (in.data[i]->dtype != gates->dtype)
			return tensor_fail(EINVAL, OP ": %s of dtype %s, gates of %s", names[i],
					   tensor_dtype_name(in.data[i]->dtype),
					   tensor_dtype_name(gates->dtype));
	size = gates->sizes[2] / 4;
	for (int i = HX; i <= CX; i++)
		if (check_shape(names[i], in.data[i], 2, (int64_t[]){ gates->sizes[1], size }) < 0)
			return error_code();
	return check_shape("w_hh", in.data[W_HH], 2, (int64_t[]){ 4 * size, size });
}

bool lstm_has_kernel(const tensor *t)
{
	const uint32_t plain = KEY_BIT(TENSOR_KEY_CPU) | KEY_BIT(TENSOR_KEY_CUDA) | AUTOGRAD_BIT;

	return !(t->keys & ~plain) && !t->ext && kernels_lstm_step.fn[backend_key(t)] &&
	       (t->dtype == TENSOR_F32 || dtype_is_reduced_float(t->dtype));
}

/* ---- products ---- */

struct rnn_matrix rnn_matrix_of(tensor *w, int64_t rows, int64_t steps)
{
	struct rnn_matrix m = { w, NULL };
	mm_pack_kernel pack;

	if (!w || steps < 2 || !lstm_has_kernel(w))
		return m;
	pack = (mm_pack_kernel)kernels_mm_pack.fn[backend_key(w)];
	if (!pack) /* the backend's products need no packed matrix */
		return m;
	if (pack(w, rows, &m.packed) < 0)
		m.w = NULL;
	else if (m.packed)
		tensor_scope_add(m.packed);
	return m;
}

tensor *rnn_multiply(const struct rnn_matrix *m, tensor *out, tensor *add, tensor *a)
{
	mm_packed_kernel fn = (mm_packed_kernel)kernels_mm_packed.fn[backend_key(out)];

	if (!m->packed || out->dtype != m->w->dtype || a->dtype != m->w->dtype ||
	    a->sizes[1] != m->w->sizes[0] || out->sizes[1] != m->w->sizes[1])
		return add ? tensor_addmm_out(out, add, a, m->w) : tensor_mm_out(out, a, m->w);
	if (add && !tensor_copy_(out, add))
		return NULL;
	return fn(out, a, m->w, m->packed, add ? 1 : 0) < 0 ? NULL : out;
}

/* ---- forward ---- */

static bool activate(const struct lstm_layer *l, tensor *a, tensor *before, tensor *c, tensor *h)
{
	tensor *g[4];

	if (!tensor_sigmoid_(tensor_narrow(a, 1, 0, 2 * l->size)) ||
	    tensor_chunk(a, 4, 1, g, 4) < 0 || !tensor_tanh_(g[2]) || !tensor_sigmoid_(g[3]))
		return false;
	c = tensor_mul_out(c, g[1], before);
	return tensor_add_(c, tensor_mul_out(h, g[0], g[2])) && tensor_tanh_out(h, c) &&
	       tensor_mul_(h, g[3]);
}

static bool step(const struct lstm_layer *l, int64_t t, tensor *gates, tensor *h, tensor *c)
{
	tensor *a = tensor_select(l->activated, 0, l->save ? t : 0);
	tensor *cells = tensor_select(l->cells, 0, t), *output = tensor_select(l->output, 0, t);
	tensor *of_input = tensor_select(gates, 0, t);

	if (!a || !cells || !output || !of_input || !h || !c ||
	    !rnn_multiply(&l->w_hh_t, a, of_input, h))
		return false;
	if (!l->state)
		return activate(l, a, c, cells, output);
	return ((lstm_step_kernel)kernels_lstm_step.fn[backend_key(a)])(a, l->state, cells,
									output) == 0;
}

/* The state before step t, of `states` or the first. */
static tensor *before(const struct lstm_layer *l, tensor *states, tensor *first, int64_t t)
{
	t += l->reverse ? 1 : -1;
	return t < 0 || t == l->steps ? first : tensor_select(states, 0, t);
}

static int forward(struct lstm_layer *l, tensor_list in)
{
	tensor_options like =
		TENSOR_OPTIONS(.dtype = in.data[GATES]->dtype, .device = in.data[GATES]->device);
	bool by_kernel = true;

	for (int i = 0; i < INPUTS; i++)
		by_kernel &= lstm_has_kernel(in.data[i]);
	l->w_hh_t = rnn_matrix_of(tensor_contiguous(tensor_t(in.data[W_HH])), l->rows, l->steps);
	l->output = tensor_empty(TENSOR_INTS(l->steps, l->rows, l->size), like);
	l->cells = tensor_empty(TENSOR_INTS(l->steps, l->rows, l->size), like);
	l->activated =
		tensor_empty(TENSOR_INTS(l->save ? l->steps : 1, l->rows, 4 * l->size), like);
	if (!l->w_hh_t.w || !l->output || !l->cells || !l->activated)
		return error_code();
	if (by_kernel) {
		l->state = tensor_empty(TENSOR_INTS(l->rows, l->size),
					TENSOR_OPTIONS(.dtype = TENSOR_F32, .device = like.device));
		if (!l->state || !tensor_copy_(l->state, in.data[CX]))
			return error_code();
	}
	for (int64_t k = 0; k < l->steps; k++) {
		struct tensor_scope_guard guard = tensor_scope_enter();
		int64_t t = l->reverse ? l->steps - 1 - k : k;
		bool done = step(l, t, in.data[GATES], before(l, l->output, in.data[HX], t),
				 before(l, l->cells, in.data[CX], t));

		scope_leave(&guard);
		if (!done)
			return error_code();
	}
	return 0;
}

int explicit_lstm_layer(tensor_list inputs, bool reverse, bool save, tensor **output,
			tensor **cells, tensor **activated)
{
	struct op_result results[] = { { output, NULL }, { cells, NULL }, { activated, NULL } };
	struct tensor_scope_guard guard;
	struct lstm_layer l;
	int err;

	*output = *cells = *activated = NULL;
	if (check_inputs(inputs) < 0)
		return error_code();
	l = (struct lstm_layer){ .steps = inputs.data[GATES]->sizes[0],
				 .rows = inputs.data[GATES]->sizes[1],
				 .size = inputs.data[GATES]->sizes[2] / 4,
				 .reverse = reverse,
				 .save = save };
	guard = tensor_scope_enter();
	err = forward(&l, inputs);
	results[0].made = l.output;
	results[1].made = l.cells;
	results[2].made = l.activated;
	return results_leave(&guard, results, 3, err);
}
