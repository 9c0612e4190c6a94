// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Runs the nodes of a backward (run_node.h). */
#include "autograd/engine/run_node.h"

#include "autograd/engine/anomaly.h"
#include "autograd/engine/gradient.h"
#include "autograd/engine/run_hooks.h"
#include "autograd/engine/share.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/saved.h"

#include "base/trace.h"

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

int task_accumulate(struct task *k, uint32_t to, uint32_t nr, tensor *grad)
{
	tensor **slot;

	if (!grad)
		return 0;
	slot = task_slot(&k->states[to], nr);
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
	if (unlikely(s->more)) {
		tensor **more = s->more;

		s->more = NULL; /* first: a fork in another thread may copy this state */
		free(more);
	}
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
	if (likely(!th->modes.anomaly))
		return err;
	if (!err)
		return anomaly_check(n, f->out);
	anomaly_explain(n);
	return err;
}

struct formula_of_node {
	struct formula_call call;
	const struct task *k;
	const tensor_node *n;
};

static tensor *sum_of_edge(const struct formula_call *call, unsigned i)
{
	const struct formula_of_node *f = (const struct formula_of_node *)call;
	const struct edge *e = &f->n->edges[i];
	const struct node_state *to;

	/* Other threads add to the sums of a task with several devices. */
	if (!e->fn || f->k->share)
		return NULL;
	to = &f->k->states[task_find(f->k, e->fn)];
	if (!e->nr)
		return to->grad;
	return to->more ? to->more[e->nr - 1] : NULL;
}

static int apply(const struct task *k, tensor_node *n, struct frame *f, uint64_t need)
{
	struct tensor_thread *th = thread();
	struct autograd_thread *at = th->autograd;
	const struct running here = { n, at->running };
	struct formula_of_node formula = { { .sum = sum_of_edge }, k, n };
	struct formula_call *owned = at->owned;
	uint32_t mark = th->scope_n;
	bool locked = !n->type->unlocked;
	int err;

	if (unlikely(here.outer) && locked && is_running(at, n))
		return tensor_fail(
			EDEADLK,
			"backward of %s: a function that it called runs backward through the same node",
			n->type->op);
	if (likely(locked)) {
		node_lock_take(&n->lock);
		at->running = &here;
	}
	/* Hooks after the node get the gradients that it received. */
	at->owned = !k->call->record && !n->hooks ? &formula.call : NULL;
	err = run_formula(n, f, need);
	at->owned = owned;
	if (formula.call.added) {
		tensor **sum = &f->out[formula.call.added - 1];

		tensor_put(*sum);
		*sum = NULL;
	}
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

static int complete_leaf(struct task *k, struct node_state *s)
{
	int err = 0;

	if (unlikely(s->node->hooks))
		err = arrived_hooks(s);
	if (!err && s->capture >= 0)
		capture(k, s);
	if (err || !s->needed)
		return err;
	return trace_on() ? run_traced_leaf(k, s) : run_leaf(k, s);
}

/* In the stream of the leaf. */
static __attribute__((noinline)) int complete_leaf_in_stream(struct task *k, struct node_state *s)
{
	struct stream_guard stream;
	int err = stream_enter(&stream, s->node->outputs[0].device, s->node->outputs[0].stream);

	if (err)
		return err;
	err = complete_leaf(k, s);
	stream_leave(&stream);
	return err;
}

int task_complete(struct task *k, uint32_t index)
{
	struct node_state *s = &k->states[index];

	if (!s->needed && s->capture < 0)
		return 0;
	if (unlikely(k->share))
		return s->node->leaf ? complete_leaf_in_stream(k, s) : share_push(k, index);
	if (s->node->leaf)
		return complete_leaf(k, s);
	ready_push(k, index);
	return 0;
}

/* propagate() for a task that several threads run. */
static __attribute__((noinline)) int propagate_shared(struct task *k, const tensor_node *n,
						      tensor **out)
{
	int err = 0;

	for (uint32_t i = 0; i < n->nedges; i++) {
		const struct edge *e = &n->edges[i];
		bool complete = false;
		uint32_t to;

		if (!e->fn)
			continue;
		to = (uint32_t)task_find(k, e->fn);
		if (err < 0)
			tensor_put(out[i]);
		else
			err = share_arrived(k, to, e->nr, out[i], &complete);
		if (complete)
			err = task_complete(k, to);
	}
	return err;
}

/* Accumulates out[] (consumed) at the ends of the edges. */
static int propagate(struct task *k, const tensor_node *n, tensor **out)
{
	int err = 0;

	if (unlikely(k->share))
		return propagate_shared(k, n, out);
	for (uint32_t i = 0; i < n->nedges; i++) {
		uint32_t to;

		if (!n->edges[i].fn)
			continue;
		to = (uint32_t)task_find(k, n->edges[i].fn);
		if (err < 0)
			tensor_put(out[i]);
		else
			err = task_accumulate(k, to, n->edges[i].nr, out[i]);
		if (!--k->states[to].missing && !err)
			err = task_complete(k, to);
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
	trace_span.node = k->states[index].node;
	return run_node(k, index);
}

int task_run_node_in_stream(struct task *k, uint32_t index)
{
	const tensor_node *n = k->states[index].node;
	const struct output *o = &n->outputs[share_output(n)];
	struct stream_guard stream;
	int err = stream_enter(&stream, o->device, o->stream);

	if (err)
		return err;
	err = task_run_node(k, index);
	stream_leave(&stream);
	return err;
}

int task_run_node(struct task *k, uint32_t index)
{
	return trace_on() ? run_traced_node(k, index) : run_node(k, index);
}

int task_push_roots(struct task *k, uint32_t nroots)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < nroots; i++)
		if (!k->states[i].missing)
			err = task_complete(k, i);
	return err;
}
