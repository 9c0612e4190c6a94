// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Calls of hooks (run_hooks.h), and the gradients that tensor_retain_grad() keeps. */
#include "autograd/engine/run_hooks.h"

#include "autograd/engine/gradient.h"
#include "autograd/graph/callback.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/meta.h"

#include <stdlib.h>

/* The functions of one kind, from first to last. Returns 0, or what the first one that failed returned. */
static int for_hooks(const tensor_node *n, enum hook_kind kind, uint32_t nr,
		     int (*call)(const struct tensor_hook *h, void *arg), void *arg)
{
	struct tensor_hook *few[HOOKS_FEW + 1], **hooks;
	int err = 0;

	hooks = hooks_snapshot(n->hooks, kind, nr, few);
	if (!hooks)
		return -ENOMEM;
	for (struct tensor_hook **h = hooks; *h; h++) {
		struct tensor_scope_guard scope = tensor_scope_enter();

		if (!err && !atomic_load(&(*h)->removed)) {
			struct callback before = callback_begin();

			err = callback_end(&before, call(*h, arg), "backward: a hook of %s failed",
					   n->type->name);
		}
		scope_leave(&scope);
		hook_unuse(*h);
	}
	if (hooks != few)
		free(hooks);
	return err;
}

/* Replaces *to (owned) by a tensor that a hook returned, which may be *to: a hook can change its shape in place. */
static int replace(const tensor_node *n, tensor **to, tensor *with, const struct output *like)
{
	unsigned layouts = LAYOUT_BIT(TENSOR_STRIDED) | LAYOUT_BIT(like->layout) |
			   accept_dual_gradients();
	tensor *before = *to;

	if (before)
		layouts |= LAYOUT_BIT(before->layout);
	if (with == before && (!with || output_same_shape(like, with)))
		return 0;
	if (with == tensor_none)
		with = NULL;
	if (with && output_check(like, layouts, with, "backward: a hook of %s must return",
				 n->type->name) < 0)
		return -EINVAL;
	*to = with ? tensor_get(with) : NULL;
	tensor_put(before);
	return 0;
}

struct gradient_call {
	const tensor_node *n;
	uint32_t nr;
	tensor **grad;
};

static int call_gradient(const struct tensor_hook *h, void *arg)
{
	const struct gradient_call *c = arg;
	tensor *now = *c->grad;

	if (!now)
		return 0;
	now = h->fn.gradient(now, h->ctx);
	if (!now)
		return -ECANCELED;
	return replace(c->n, c->grad, now, &c->n->outputs[c->nr]);
}

/* The metadata in which the gradient of output nr is kept, NULL if there is none; the list is locked. */
static struct autograd_meta *retained_meta(struct node_hooks *list, uint32_t nr)
{
	const struct output_hooks *o = hooks_of_output(list, nr);

	return o && o->retained ? o->retained->meta : NULL;
}

/* Replaces the kept gradient by `now` (consumed on success), if it is still `before`. */
static bool exchange_gradient(struct node_hooks *list, uint32_t nr, tensor *before, tensor *now)
{
	struct autograd_meta *m;
	bool same;

	node_lock_take(&list->lock);
	m = retained_meta(list, nr);
	same = m && m->grad == before;
	if (same)
		m->grad = now;
	node_lock_drop(&list->lock);
	if (same)
		tensor_put(before);
	return same;
}

static int keep_gradient(const tensor_node *n, uint32_t nr, tensor *grad)
{
	struct node_hooks *list = n->hooks;
	bool kept = false, there = true;

	/* Again if another thread kept its gradient meanwhile. */
	while (there && !kept) {
		const struct autograd_meta *m;
		tensor *before = NULL, *now;

		node_lock_take(&list->lock);
		m = retained_meta(list, nr);
		there = m;
		if (there && m->grad)
			before = tensor_get(m->grad);
		node_lock_drop(&list->lock);
		now = there ? gradient_sum(before, grad) : NULL;
		if (there && !now) {
			tensor_put(before);
			return -thread()->error.code;
		}
		kept = there && exchange_gradient(list, nr, before, now);
		if (!kept)
			tensor_put(now);
		tensor_put(before);
	}
	return 0;
}

int run_gradient_hooks(const tensor_node *n, uint32_t nr, tensor **grad)
{
	struct gradient_call c = { n, nr, grad };
	int err = for_hooks(n, HOOK_GRADIENT, nr, call_gradient, &c);

	if (!err && *grad)
		err = keep_gradient(n, nr, *grad);
	return err;
}

struct before_call {
	const tensor_node *n;
	tensor **grads;
};

static int call_before(const struct tensor_hook *h, void *arg)
{
	const struct before_call *c = arg;
	int n = c->n->noutputs, err;
	tensor **now = malloc(n * sizeof(*now));

	if (!now)
		return tensor_fail(ENOMEM, "backward: no memory for hooks");
	memcpy(now, c->grads, n * sizeof(*now));
	err = h->fn.before(now, n, h->ctx);
	for (int i = 0; i < n && err >= 0; i++)
		err = replace(c->n, &c->grads[i], now[i], &c->n->outputs[i]);
	free(now);
	return err < 0 ? err : 0;
}

int run_before_hooks(const tensor_node *n, tensor **grads)
{
	struct before_call c = { n, grads };

	return for_hooks(n, HOOK_BEFORE, 0, call_before, &c);
}

struct after_call {
	const tensor_node *n;
	tensor **grads;
	tensor *const *output_grads;
};

static int call_after(const struct tensor_hook *h, void *arg)
{
	const struct after_call *c = arg;
	int n = (int)c->n->nedges, err;
	tensor **now = malloc((n + 1) * sizeof(*now));

	if (!now)
		return tensor_fail(ENOMEM, "backward: no memory for hooks");
	if (n)
		memcpy(now, c->grads, n * sizeof(*now));
	err = h->fn.after(now, n, c->output_grads, c->n->noutputs, h->ctx);
	for (int i = 0; i < n && err >= 0; i++) {
		const struct edge *e = &c->n->edges[i];

		if (now[i] != c->grads[i] && !e->fn)
			err = tensor_fail(
				EINVAL,
				"backward: a hook of %s gave a gradient for input %d, which "
				"requires none",
				c->n->type->name, i);
		else if (e->fn)
			err = replace(c->n, &c->grads[i], now[i], &e->fn->outputs[e->nr]);
	}
	free(now);
	return err < 0 ? err : 0;
}

int run_after_hooks(const tensor_node *n, tensor **grads, tensor *const *output_grads)
{
	struct after_call c = { n, grads, output_grads };

	return for_hooks(n, HOOK_AFTER, 0, call_after, &c);
}

static int call_accumulated(const struct tensor_hook *h, void *arg)
{
	return h->fn.accumulated(arg, h->ctx);
}

int run_accumulated_hooks(const tensor_node *n)
{
	return for_hooks(n, HOOK_ACCUMULATED, 0, call_accumulated, n->leaf);
}
