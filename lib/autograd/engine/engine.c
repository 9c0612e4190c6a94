// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The engine: propagates gradients from the roots to the leaves, or to the requested inputs. A node
 * runs when a gradient, or the information that there is none, has arrived over every edge that
 * leads to it. A backward runs on the calling thread, which owns the task and its queue; nodes on other devices run on
 * the threads of these devices (devices.c).
 */
#include "autograd/engine/batched.h"
#include "autograd/engine/devices.h"
#include "autograd/engine/run_node.h"
#include "autograd/engine/share.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/view.h"

#include "family/factory.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- roots ---- */

static tensor *ones_for(const tensor *t)
{
	return call_ones((tensor_ints){ t->sizes, t->ndim },
			 TENSOR_OPTIONS(.dtype = t->dtype, .device = t->device));
}

/* The gradient of output i: the caller's, or 1; owned. NULL with the error set. */
static tensor *root_gradient(const struct engine_call *c, int64_t i)
{
	tensor *t = c->outputs.data[i], *g = c->output_grads ? c->output_grads[i] : NULL;
	struct output like;

	if (!g || g == tensor_none) {
		if (t->numel == 1)
			return ones_for(t);
		return tensor_fail_null(EINVAL,
					"backward: output %lld has shape %s and needs a "
					"gradient; only that of a single element is 1 by "
					"itself",
					(long long)i, SHAPE_STR(t));
	}
	like = output_like(t);
	if (output_check(&like,
			 LAYOUT_BIT(TENSOR_STRIDED) | LAYOUT_BIT(t->layout) | ALSO_INFERENCE |
				 accept_dual_gradients(),
			 g, "backward: the gradient of output %lld must be", (long long)i) < 0)
		return NULL;
	return tensor_get(g);
}

/* Visits the nodes of the outputs. held[] gets an edge for each output, which keeps the graph alive. */
static int visit_roots(struct task *k, struct edge *held)
{
	const struct engine_call *c = k->call;
	int64_t at;

	for (int64_t i = 0; i < c->outputs.len; i++) {
		tensor *g;

		held[i] = gradient_edge(c->outputs.data[i]);
		at = task_visit(k, held[i].fn);
		if (at < 0)
			return -thread()->error.code;
		g = root_gradient(c, i);
		if (!g || task_accumulate(k, (uint32_t)at, held[i].nr, g) < 0)
			return -thread()->error.code;
	}
	return 0;
}

static int run_task(struct task *k, struct edge *held)
{
	int err = visit_roots(k, held);
	uint32_t nroots = k->n;
	int64_t i;

	if (!err)
		err = task_plan(k);
	if (!err && unlikely(atomic_load_explicit(&streams_seen, memory_order_relaxed))) {
		err = devices_plan(k);
		if (!err && k->share)
			return devices_run(k, nroots);
	}
	if (!err)
		err = task_push_roots(k, nroots);
	while (!err && (i = ready_pop(k)) >= 0)
		err = task_run_node(k, (uint32_t)i);
	return err;
}

bool engine_at_end(void (*fn)(void *ctx), void *ctx)
{
	const struct autograd_thread *at = thread()->autograd;
	struct task *k = at ? at->current : NULL;
	struct at_end *e = k ? malloc(sizeof(*e)) : NULL;

	if (!e)
		return false;
	if (k->share && share_lock(k->share) < 0) {
		free(e);
		return false;
	}
	*e = (struct at_end){ fn, ctx, k->at_end };
	k->at_end = e;
	if (k->share)
		share_unlock(k->share);
	return true;
}

static void run_at_end(struct task *k)
{
	struct at_end *e;

	while ((e = k->at_end)) {
		k->at_end = e->next;
		e->fn(e->ctx);
		free(e);
	}
}

/* Forward mode over reverse mode: the gradients have tangents if an output, or a gradient of one, has one. */
static bool propagates_tangents(const struct engine_call *c)
{
	bool found = false;

	if (thread()->modes.exclude & FORWARD_BIT)
		return false;
	for (int64_t i = 0; i < c->outputs.len && !found; i++) {
		const tensor *g = c->output_grads ? c->output_grads[i] : NULL;

		found = tangent_of(c->outputs.data[i]) || (g && tangent_of(g));
	}
	return found;
}

static int run_here(const struct engine_call *call)
{
	struct tensor_thread *th = thread();
	struct tensor_scope_guard scope;
	uint32_t exclude = th->modes.exclude;
	bool enabled = th->modes.grad_enabled, inference = th->modes.inference;
	bool dual = th->modes.dual_gradients;
	struct edge few[4] = { 0 }, *held = few;
	struct task *k = task_new(call);
	int err;

	if (!k)
		return -ENOMEM;
	if (call->outputs.len > (int64_t)ARRAY_SIZE(few))
		held = calloc(call->outputs.len, sizeof(*held));
	if (call->inputs.len)
		k->captures = calloc(call->inputs.len, sizeof(*k->captures));
	scope = tensor_scope_enter();
	th->modes.grad_enabled = call->record;
	th->modes.inference = false;
	th->modes.exclude &= ~AUTOGRAD_BIT;
	th->modes.dual_gradients = propagates_tangents(call);
	err = held && (k->captures || !call->inputs.len) ?
		      run_task(k, held) :
		      tensor_fail(ENOMEM, "backward: no memory");
	if (unlikely(k->share))
		share_free(k);
	run_at_end(k);
	task_done(k);
	for (int64_t i = 0; held && i < call->outputs.len; i++)
		node_put(held[i].fn);
	if (held != few)
		free(held);
	th->modes.grad_enabled = enabled;
	th->modes.inference = inference;
	th->modes.dual_gradients = dual;
	th->modes.exclude = exclude;
	scope_leave(&scope);
	return err;
}

/* ---- backwards inside of backwards ---- */

/* A hook or a function of the program that calls backward uses the stack further; beyond this depth, that of another
 * thread. */
#define MOST_DEPTH 60
/* A function that calls backward through itself without end must not use all threads of the machine. */
#define MOST_NESTED (100 * MOST_DEPTH)

struct elsewhere {
	const struct engine_call *call;
	struct carried from;
	tensor_device device;
	uint64_t seq; /* of the nodes that were recorded last */
	unsigned nested;
	struct tensor_error error;
	int err;
};

static void *run_elsewhere(void *arg)
{
	struct elsewhere *e = arg;
	struct tensor_thread *th = thread();
	struct autograd_thread *at = autograd_thread(th);

	e->err = -ENOMEM;
	if (at) {
		struct carried mine = carry_get();

		at->device = e->device;
		at->seq = e->seq;
		at->nested = e->nested;
		carry_set(&e->from);
		e->err = engine_run(e->call);
		carry_set(&mine);
		e->seq = at->seq;
	}
	e->error = th->error;
	return NULL;
}

/* Runs the backward on a thread that is made for it, and waits for it. */
static int run_on_new_stack(const struct engine_call *call)
{
	struct tensor_thread *th = thread();
	struct autograd_thread *at = th->autograd;
	struct elsewhere e = {
		.call = call,
		.from = carry_for_others(),
		.device = at->device,
		.seq = at->seq,
		.nested = at->nested,
	};
	pthread_t id;
	int err = pthread_create(&id, NULL, run_elsewhere, &e);

	if (err)
		return tensor_fail(err,
				   "backward: no thread for a backward inside of %u others: %s",
				   MOST_DEPTH, strerror(err));
	pthread_join(id, NULL);
	at->seq = e.seq;
	if (e.err)
		th->error = e.error;
	return e.err;
}

int engine_run(const struct engine_call *call)
{
	struct autograd_thread *at = autograd_thread(thread());
	int err;

	if (!at)
		return -ENOMEM;
	if (unlikely(at->nested >= MOST_NESTED))
		return tensor_fail(EDEADLK, "backward: %d backwards inside of one another",
				   MOST_NESTED);
	if (unlikely(at->depth >= MOST_DEPTH))
		return run_on_new_stack(call);
	at->depth++;
	at->nested++;
	err = run_here(call);
	at->nested--;
	at->depth--;
	return err;
}

/* ---- public functions ---- */

static int check_tracked(const char *what, tensor_list list)
{
	for (int64_t i = 0; i < list.len; i++) {
		tensor *t = list.data[i];

		if (tensor_absent("backward", t))
			return -thread()->error.code;
		if (!needs_grad(t))
			return tensor_fail(EINVAL, "backward: %s %lld does not require a gradient",
					   what, (long long)i);
		if (view_stale(t) && view_refresh(t) < 0)
			return -thread()->error.code;
	}
	return 0;
}

int engine_backward(const struct engine_call *call)
{
	tensor_list inputs = call->inputs;
	int err;

	for (int64_t i = 0; i < inputs.len; i++)
		call->grads[i] = NULL;
	err = check_tracked("output", call->outputs);
	if (!err)
		err = check_tracked("input", inputs);
	if (!err)
		err = engine_run(call);
	if (!err)
		return scope_own_list(call->grads, inputs.len);
	for (int64_t i = 0; i < inputs.len; i++) {
		tensor_put(call->grads[i]);
		call->grads[i] = NULL;
	}
	return err;
}

TENSOR_EXPORT int tensor_backward_ex(tensor_list outputs, tensor *const *output_grads,
				     tensor_list inputs, tensor **grads, unsigned flags)
{
	struct engine_call call = {
		.outputs = outputs,
		.inputs = inputs,
		.output_grads = output_grads,
		.grads = grads,
		.record = flags & TENSOR_CREATE_GRAPH,
		.keep = flags & (TENSOR_RETAIN_GRAPH | TENSOR_CREATE_GRAPH),
	};

	if (unlikely(flags & TENSOR_GRADS_BATCHED))
		return backward_batched(tensor_backward_ex, outputs, output_grads, inputs, grads,
					flags & ~TENSOR_GRADS_BATCHED);
	if (flags & ~(TENSOR_RETAIN_GRAPH | TENSOR_CREATE_GRAPH))
		return tensor_fail(EINVAL, "backward: unknown flags %#x", flags);
	if (outputs.len < 1 || outputs.len > INT32_MAX || inputs.len > INT32_MAX)
		return tensor_fail(EINVAL, "backward: %lld outputs, %lld inputs",
				   (long long)outputs.len, (long long)inputs.len);
	if (inputs.len > 0 && !grads)
		return tensor_fail(EINVAL, "backward: grads is NULL, but there are inputs");
	return engine_backward(&call);
}

TENSOR_EXPORT int tensor_backward(tensor *output)
{
	return tensor_backward_ex((tensor_list){ &output, 1 }, NULL, (tensor_list){ NULL, 0 }, NULL,
				  0);
}
