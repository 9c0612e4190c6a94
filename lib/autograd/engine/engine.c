// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The engine: propagates gradients from the roots to the leaves, or to the requested inputs. A node
 * runs when a gradient, or the information that there is none, has arrived over every edge that
 * leads to it. A backward runs on the calling thread, which owns the task and its queue.
 */
#include "autograd/engine/anomaly.h"
#include "autograd/engine/gradient.h"
#include "autograd/engine/run_hooks.h"
#include "autograd/engine/task.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/saved.h"
#include "autograd/graph/view.h"

#include "base/trace.h"
#include "family/factory.h"

#include <pthread.h>
#include <stdlib.h>

/* Arguments of a node; on the stack unless the node has many. */
struct frame {
	tensor **in, **out; /* nedges of out: borrowed after apply, owned after fit_outputs() */
	tensor *buf[16];
};

static int frame_init(struct frame *f, const tensor_node *n)
{
	size_t need = n->noutputs + (size_t)n->nedges;

	f->in = f->buf;
	if (unlikely(need > ARRAY_SIZE(f->buf))) {
		f->in = malloc(need * sizeof(tensor *));
		if (!f->in)
			return tensor_fail(ENOMEM, "backward: no memory");
	}
	f->out = f->in + n->noutputs;
	for (uint32_t i = 0; i < n->nedges; i++)
		f->out[i] = NULL;
	return 0;
}

static void frame_free(struct frame *f)
{
	if (unlikely(f->in != f->buf))
		free(f->in);
}

static tensor **slot_of(struct node_state *s, uint32_t nr)
{
	if (likely(!nr))
		return &s->grad;
	if (!s->more)
		s->more = calloc(s->node->noutputs - 1, sizeof(tensor *));
	if (!s->more) {
		tensor_fail(ENOMEM, "backward: no memory");
		return NULL;
	}
	return &s->more[nr - 1];
}

/* Adds a gradient (consumed; NULL: undefined) to those that arrived for output nr of a node. */
static int accumulate(struct task *k, uint32_t to, uint32_t nr, tensor *grad)
{
	tensor **slot;

	if (!grad)
		return 0;
	slot = slot_of(&k->states[to], nr);
	if (unlikely(!slot)) {
		tensor_put(grad);
		return -ENOMEM;
	}
	*slot = *slot ? gradient_add(*slot, grad, k->call->record) : grad;
	return *slot ? 0 : -thread()->error.code;
}

/* Stores the arrived gradients for the inputs that request them. */
static void capture(struct task *k, const struct node_state *s)
{
	for (int32_t i = s->capture; i >= 0; i = k->captures[i].next) {
		uint32_t nr = k->captures[i].nr;
		tensor *g = !nr ? s->grad : s->more ? s->more[nr - 1] : NULL;

		k->call->grads[k->captures[i].input] = tensor_retain(g);
	}
}

static void close_scope(struct tensor_thread *th, uint32_t mark)
{
	while (th->scope_n > mark)
		tensor_put(th->scope[--th->scope_n]);
}

/* Moves the arrived gradients to in[]; false if none is defined. */
static bool take_inputs(struct node_state *s, tensor **in)
{
	bool any = s->grad;

	in[0] = s->grad;
	s->grad = NULL;
	for (unsigned i = 1; i < s->node->noutputs; i++) {
		in[i] = s->more ? s->more[i - 1] : NULL;
		any |= in[i] != NULL;
	}
	free(s->more);
	s->more = NULL;
	return any;
}

/* The bits of need for a node. */
static uint64_t wanted(const struct task *k, const tensor_node *n)
{
	bool all = !k->call->inputs.len;
	uint64_t need = 0;

	for (uint32_t i = 0; i < n->nedges; i++) {
		const tensor_node *fn = n->edges[i].fn;
		const struct node_state *to;

		if (!fn)
			continue;
		to = all ? NULL : &k->states[task_find(k, fn)];
		if (all || to->needed || to->capture >= 0)
			need |= 1ull << (i < 63 ? i : 63);
	}
	return need;
}

/* Checks and converts the gradients that the node returned; out[] becomes owned. */
static int fit_outputs(const tensor_node *n, tensor **out, uint64_t need)
{
	int err = 0;

	for (uint32_t i = 0; i < n->nedges; i++) {
		bool want = n->edges[i].fn && need >> (i < 63 ? i : 63) & 1;

		if (err < 0 || !want || !out[i] || out[i] == tensor_none) {
			out[i] = NULL;
			continue;
		}
		out[i] = gradient_fit(n, i, out[i], n->edges[i].fn, n->edges[i].nr);
		if (!out[i])
			err = -thread()->error.code;
	}
	return err;
}

/* Computes f->out from f->in; owned, NULL after a failure. */
static int run_formula(tensor_node *n, struct frame *f, uint64_t need)
{
	struct tensor_thread *th = thread();
	int err = n->type->apply(n, f->in, f->out, need) < 0 ? -(th->error.code ?: EINVAL) : 0;

	if (err == 0)
		err = fit_outputs(n, f->out, need);
	else
		memset(f->out, 0, n->nedges * sizeof(tensor *));
	if (likely(!th->anomaly))
		return err;
	if (!err)
		return anomaly_check(n, f->out);
	anomaly_explain(n);
	return err;
}

static int apply(const struct task *k, tensor_node *n, struct frame *f, uint64_t need)
{
	struct tensor_thread *th = thread();
	struct autograd_thread *at = th->autograd;
	const struct running here = { n, at->running };
	uint32_t mark = th->scope_n;
	bool locked = !n->type->unlocked;
	int err;

	if (unlikely(here.outer) && locked && node_is_running(at, n))
		return tensor_fail(
			EDEADLK,
			"backward of %s: a function that it called runs backward through the same node",
			n->type->op);
	if (likely(locked)) {
		node_lock_take(&n->lock);
		at->running = &here;
	}
	err = run_formula(n, f, need);
	if (err == 0 && !k->call->keep) {
		if (unlikely(!locked)) {
			node_lock_take(&n->lock);
			at->running = &here;
		}
		locked = true;
		node_release(n);
	}
	if (likely(locked)) {
		at->running = here.outer;
		node_lock_drop(&n->lock);
	}
	close_scope(th, mark);
	return err;
}

/* Runs the hooks on the gradients that arrived for the outputs of a node. */
static int arrived_hooks(struct node_state *s)
{
	int err = s->grad ? run_gradient_hooks(s->node, 0, &s->grad) : 0;

	for (unsigned i = 1; !err && s->more && i < s->node->noutputs; i++)
		if (s->more[i - 1])
			err = run_gradient_hooks(s->node, i, &s->more[i - 1]);
	return err;
}

static int run_hooked_leaf(const struct task *k, tensor_node *n, tensor *grad)
{
	tensor *seen = NULL;
	int err = run_before_hooks(n, &grad);

	if (err || !grad) {
		tensor_put(grad);
		return err;
	}
	if (hooks_any(n->hooks, HOOK_AFTER))
		seen = tensor_get(grad);
	err = gradient_accumulate(n, grad, k->call->record);
	if (!err && seen)
		err = run_after_hooks(n, NULL, &seen);
	tensor_put(seen);
	return err ?: run_accumulated_hooks(n);
}

/* The node of a leaf: accumulates its gradient. */
static int run_leaf(const struct task *k, struct node_state *s)
{
	tensor *grad = s->grad;

	s->grad = NULL;
	if (!grad)
		return 0;
	if (unlikely(s->node->hooks))
		return run_hooked_leaf(k, s->node, grad);
	return gradient_accumulate(s->node, grad, k->call->record);
}

static __attribute__((noinline)) int run_traced_leaf(const struct task *k, struct node_state *s)
{
	TRACE_SPAN("backward", s->node->type->name);
	return run_leaf(k, s);
}

/* All gradients of a node have arrived. Those of a leaf are accumulated at once, so that they are not kept
 * until the end; another node becomes ready. */
static int complete(struct task *k, uint32_t index)
{
	struct node_state *s = &k->states[index];
	int err = 0;

	if (!s->needed && s->capture < 0)
		return 0;
	if (!s->node->leaf) {
		ready_push(k, index);
		return 0;
	}
	if (unlikely(s->node->hooks))
		err = arrived_hooks(s);
	if (!err && s->capture >= 0)
		capture(k, s);
	if (err || !s->needed)
		return err;
	return trace_on() ? run_traced_leaf(k, s) : run_leaf(k, s);
}

/* Accumulates out[] (consumed) at the ends of the edges. */
static int propagate(struct task *k, const tensor_node *n, tensor **out)
{
	int err = 0;

	for (uint32_t i = 0; i < n->nedges; i++) {
		uint32_t to;

		if (!n->edges[i].fn)
			continue;
		to = (uint32_t)task_find(k, n->edges[i].fn);
		if (err < 0)
			tensor_put(out[i]);
		else
			err = accumulate(k, to, n->edges[i].nr, out[i]);
		if (!--k->states[to].missing && !err)
			err = complete(k, to);
	}
	return err;
}

static int run_node(struct task *k, uint32_t index)
{
	struct node_state *s = &k->states[index];
	tensor_node *n = s->node;
	struct frame f;
	int err = 0;
	bool any;

	if (unlikely(n->hooks))
		err = arrived_hooks(s);
	if (!err && s->capture >= 0)
		capture(k, s);
	if (err || !s->needed)
		return err;
	if (frame_init(&f, n) < 0)
		return -ENOMEM;
	any = take_inputs(s, f.in);
	if (any && unlikely(n->hooks)) {
		err = run_before_hooks(n, f.in);
		any = false;
		for (unsigned i = 0; i < n->noutputs; i++)
			any |= f.in[i] != NULL;
	}
	if (any && !err)
		err = apply(k, n, &f, wanted(k, n));
	if (any && !err && unlikely(n->hooks))
		err = run_after_hooks(n, f.out, f.in);
	for (unsigned i = 0; i < n->noutputs; i++)
		tensor_put(f.in[i]);
	if (!err)
		err = propagate(k, n, f.out);
	else
		for (uint32_t i = 0; i < n->nedges; i++)
			tensor_put(f.out[i]);
	frame_free(&f);
	return err;
}

/* A function of its own, so that only traced nodes need stack space for an event. */
static __attribute__((noinline)) int run_traced_node(struct task *k, uint32_t index)
{
	TRACE_SPAN("backward", k->states[index].node->type->name);
	return run_node(k, index);
}

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

	if (!g || g == tensor_none) {
		if (t->numel == 1)
			return ones_for(t);
		return tensor_fail_null(EINVAL,
					"backward: output %lld has shape %s and needs a "
					"gradient; only that of a single element is 1 by "
					"itself",
					(long long)i, SHAPE_STR(t));
	}
	if (!sizes_equal(t, g) || t->dtype != g->dtype)
		return tensor_fail_null(EINVAL,
					"backward: the gradient of output %lld must be %s "
					"of %s, got %s of %s",
					(long long)i, SHAPE_STR(t), tensor_dtype_name(t->dtype),
					SHAPE_STR(g), tensor_dtype_name(g->dtype));
	if (t->device.type != g->device.type || t->device.index != g->device.index)
		return tensor_fail_null(EINVAL,
					"backward: the gradient of output %lld is on "
					"another device",
					(long long)i);
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
		if (!g || accumulate(k, (uint32_t)at, held[i].nr, g) < 0)
			return -thread()->error.code;
	}
	return 0;
}

/* Roots that no other root leads to. */
static int push_roots(struct task *k, uint32_t nroots)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < nroots; i++)
		if (!k->states[i].missing)
			err = complete(k, i);
	return err;
}

static int run_task(struct task *k, struct edge *held)
{
	int err = visit_roots(k, held);
	uint32_t nroots = k->n;
	int64_t i;

	if (!err)
		err = task_plan(k);
	if (!err)
		err = push_roots(k, nroots);
	while (!err && (i = ready_pop(k)) >= 0)
		err = trace_on() ? run_traced_node(k, (uint32_t)i) : run_node(k, (uint32_t)i);
	return err;
}

bool engine_at_end(void (*fn)(void *ctx), void *ctx)
{
	const struct autograd_thread *at = thread()->autograd;
	struct at_end *e = at && at->current ? malloc(sizeof(*e)) : NULL;

	if (!e)
		return false;
	*e = (struct at_end){ fn, ctx, at->current->at_end };
	at->current->at_end = e;
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

static int run_here(const struct engine_call *call)
{
	struct tensor_thread *th = thread();
	struct tensor_scope_guard scope;
	uint32_t exclude = th->exclude;
	bool enabled = th->grad_enabled, inference = th->inference;
	struct edge few[8] = { 0 }, *held = few;
	struct task *k = task_new(call);
	int err;

	if (!k)
		return -ENOMEM;
	if (call->outputs.len > (int64_t)ARRAY_SIZE(few))
		held = calloc(call->outputs.len, sizeof(*held));
	if (call->inputs.len)
		k->captures = calloc(call->inputs.len, sizeof(*k->captures));
	scope = tensor_scope_enter();
	th->grad_enabled = call->record;
	th->inference = false;
	th->exclude &= ~AUTOGRAD_BIT;
	err = held && (k->captures || !call->inputs.len) ?
		      run_task(k, held) :
		      tensor_fail(ENOMEM, "backward: no memory");
	run_at_end(k);
	task_done(k);
	for (int64_t i = 0; held && i < call->outputs.len; i++)
		node_put(held[i].fn);
	if (held != few)
		free(held);
	th->grad_enabled = enabled;
	th->inference = inference;
	th->exclude = exclude;
	scope_leave(&scope);
	return err;
}

/* ---- backwards inside of backwards ---- */

/* A hook or a function of the program that calls backward uses the stack further; beyond this depth, that of another
 * thread. */
#define MOST_DEPTH 60

struct elsewhere {
	const struct engine_call *call;
	const struct tensor_thread *from;
	struct tensor_error error;
	int err;
};

static void *run_elsewhere(void *arg)
{
	struct elsewhere *e = arg;
	struct tensor_thread *th = thread();

	th->include = e->from->include;
	th->exclude = e->from->exclude;
	th->anomaly = e->from->anomaly;
	th->grad_enabled = e->from->grad_enabled;
	if (autograd_thread(th))
		((struct autograd_thread *)th->autograd)->running =
			((const struct autograd_thread *)e->from->autograd)->running;
	e->err = engine_run(e->call);
	e->error = th->error;
	return NULL;
}

/* Runs the backward on a thread that is made for it, and waits for it. */
static int run_on_new_stack(const struct engine_call *call)
{
	struct tensor_thread *th = thread();
	struct elsewhere e = { .call = call, .from = th };
	pthread_t id;
	int err = pthread_create(&id, NULL, run_elsewhere, &e);

	if (err)
		return tensor_fail(err,
				   "backward: no thread for a backward inside of %u others: %s",
				   MOST_DEPTH, strerror(err));
	pthread_join(id, NULL);
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
	if (unlikely(at->depth >= MOST_DEPTH))
		return run_on_new_stack(call);
	at->depth++;
	err = run_here(call);
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
		/* Its nodes saved tensors without tangents, so the tangents of the gradients would be wrong. */
		if (tangent_of(t) && !(thread()->exclude & FORWARD_BIT))
			return tensor_fail(
				EOPNOTSUPP,
				"backward: %s %lld has a tangent; backward of tensor_primal() "
				"and of tensor_tangent() is possible",
				what, (long long)i);
		if (view_stale(t) && view_refresh(t) < 0)
			return -thread()->error.code;
	}
	return 0;
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
	int err;

	if (flags & ~(TENSOR_RETAIN_GRAPH | TENSOR_CREATE_GRAPH))
		return tensor_fail(EINVAL, "backward: unknown flags %#x", flags);
	if (outputs.len < 1 || outputs.len > INT32_MAX || inputs.len > INT32_MAX)
		return tensor_fail(EINVAL, "backward: %lld outputs, %lld inputs",
				   (long long)outputs.len, (long long)inputs.len);
	if (inputs.len > 0 && !grads)
		return tensor_fail(EINVAL, "backward: grads is NULL, but there are inputs");
	for (int64_t i = 0; i < inputs.len; i++)
		grads[i] = NULL;
	err = check_tracked("output", outputs);
	if (!err)
		err = check_tracked("input", inputs);
	if (!err)
		err = engine_run(&call);
	if (!err)
		return scope_own_list(grads, inputs.len);
	for (int64_t i = 0; i < inputs.len; i++) {
		tensor_put(grads[i]);
		grads[i] = NULL;
	}
	return err;
}

TENSOR_EXPORT int tensor_backward(tensor *output)
{
	return tensor_backward_ex((tensor_list){ &output, 1 }, NULL, (tensor_list){ NULL, 0 }, NULL,
				  0);
}
