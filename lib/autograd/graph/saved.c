// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Saved tensors. A saved tensor is detached and shares memory and version counter with the
 * original. It holds no history, so it cannot close a cycle, also not after a later in-place change
 * of the original. Unpacking compares the version and, while a graph is being recorded, restores
 * the history: that of an input is the edge of the node, that of an output is the node.
 */
#include "autograd/graph/saved.h"

#include "autograd/graph/dual.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/meta.h"

#include "family/copy.h"

#include <stdlib.h>

/* ---- tangents ---- */

/* In forward mode a saved input has the tangent that it had in the call; that of an output is not known yet. */
static bool has_tangent(const tensor *t, int source)
{
	return unlikely(t->keys & FORWARD_BIT) && source > SAVED_OUTPUT(0);
}

static int set_tangent(struct saved *s, tensor *tangent)
{
	if (s->is_packed)
		s->packed->tangent = tensor_get(tangent);
	else if (dual_set(s->t, tangent) < 0)
		return -1;
	s->is_dual = true;
	return 0;
}

/* The history of the tangent may lead to the node itself, which would be a cycle. */
static int set_tangent_detached(struct saved *s, tensor *tangent)
{
	tensor *plain = tensor_new_detached(tangent);
	int err = plain ? set_tangent(s, plain) : -1;

	tensor_put(plain);
	s->detached_tangent = needs_grad(tangent);
	return err;
}

int node_save_tangent(tensor_node *n, unsigned k, tensor *tangent)
{
	bool detached = false;

	for (unsigned i = 0; i < n->nsaved; i++) {
		struct saved *s = &n->saved[i];

		if (s->source != SAVED_OUTPUT((int)k) || !s->t || s->is_dual)
			continue;
		if (set_tangent_detached(s, tangent) < 0)
			return -1;
		detached |= s->detached_tangent;
	}
	return detached;
}

tensor *(*saved_tangent_again)(tensor_node *n, unsigned k);

/* The tangent of a saved result with its history. The thread owns the lock of a node that it runs, and with it what the node keeps. */
static tensor *tangent_again(tensor_node *n, const struct saved *s)
{
	const struct node_hooks *hooks = n->hooks;

	if (s->source <= SAVED_OUTPUT(0) && hooks && hooks->tangents &&
	    is_running(thread()->autograd, n))
		return saved_tangent_again(n, (unsigned)(SAVED_OUTPUT(0) - s->source));
	return tensor_fail_null(
		EOPNOTSUPP,
		"backward of %s: a backward that propagates tangents cannot be recorded here, "
		"because the history of the tangent of a saved tensor was not kept",
		n->type->op);
}

/* The tensor `saved` of a slot, or one on the same memory with or without a tangent; borrowed from the node or in the
 * open scope. NULL with the error set. */
static tensor *with_tangent(tensor_node *n, const struct saved *s, tensor *saved)
{
	struct tensor_thread *th = thread();
	tensor *tangent = s->is_packed ? s->packed->tangent : s->t->tangent, *t;

	if (!th->modes.dual_gradients)
		return s->is_packed ? saved : scope_own(th, tensor_new_detached(saved));
	if (s->detached_tangent && th->modes.grad_enabled) {
		tangent = tangent_again(n, s);
		if (!tangent)
			return NULL;
	} else if (!s->is_packed) {
		return saved;
	}
	t = scope_own(th, tensor_new_detached(saved));
	return t && dual_set(t, tangent) == 0 ? t : NULL;
}

/* ---- saving ---- */

static int set_plain(struct saved *s, tensor *detached, tensor *of, int source)
{
	if (unlikely(!detached))
		return -1;
	*s = (struct saved){ { detached }, tensor_version(detached), source, false, false, false };
	return has_tangent(of, source) ? set_tangent(s, of->tangent) : 0;
}

static int set_packed(struct saved *s, struct pack_hooks *hooks, tensor *t, int source)
{
	struct packed *p = pack(hooks, t);

	if (!p)
		return -1;
	*s = (struct saved){ { .packed = p }, 0, source, true, false, false };
	return has_tangent(t, source) ? set_tangent(s, t->tangent) : 0;
}

int saved_set(struct saved *s, tensor *t, int source)
{
	struct pack_hooks *hooks = pack_hooks_of(thread());

	if (unlikely(hooks) && hooks->fn.pack)
		return set_packed(s, hooks, t, source);
	return set_plain(s, tensor_new_detached(t), t, source);
}

int node_save(tensor_node *n, int slot, tensor *t, int source)
{
	if (!t)
		return 0;
	if (unlikely(t->inference))
		return tensor_fail(
			EINVAL,
			"%s: a tensor that was made in inference mode cannot be saved for backward; "
			"use a clone",
			n->type->op);
	/* The history of an in-place result of a view is found by its place in the base. */
	if (source <= SAVED_OUTPUT(0) && unlikely(t->base))
		return set_plain(&n->saved[slot], tensor_new_detached(t), t, source);
	return saved_set(&n->saved[slot], t, source);
}

/* The call changes the tangent as well; its history up to here does not lead to the node. */
static int save_tangent_copy(struct saved *s, tensor *tangent)
{
	tensor *copy = call_clone(tangent, TENSOR_PRESERVE_FORMAT);
	tensor *plain = copy ? tensor_new_detached(copy) : NULL;
	int err = plain ? 0 : -1;

	if (plain && needs_grad(tangent)) {
		const struct autograd_meta *m = meta_of(tangent);

		if (!meta_new_output(plain, meta_node(m), m->fn ? m->nr : 0))
			err = -1;
	}
	if (!err)
		err = set_tangent(s, plain);
	tensor_put(plain);
	tensor_put(copy);
	return err;
}

int node_save_copy(tensor_node *n, int slot, tensor *t, int source)
{
	struct pack_hooks *hooks = pack_hooks_of(thread());
	tensor *copy = call_clone(t, TENSOR_PRESERVE_FORMAT);
	int err;

	if (likely(!hooks) || !hooks->fn.pack || !copy) {
		err = copy ? set_plain(&n->saved[slot], copy, copy, source) : -1;
	} else {
		err = set_packed(&n->saved[slot], hooks, copy, source);
		tensor_put(copy);
	}
	return !err && has_tangent(t, source) ? save_tangent_copy(&n->saved[slot], t->tangent) :
						err;
}

const char *node_saved_name(const tensor_node *n, int slot)
{
	const char *const *name = n->type->saved_names;

	if (!name)
		return "saved";
	while (slot-- > 0 && name[1])
		name++;
	return *name;
}

/* saved as a tensor with the history of s; owned. NULL with the error set. */
static tensor *with_history(tensor_node *n, const struct saved *s, tensor *saved)
{
	struct edge e = { n, SAVED_OUTPUT(0) - s->source };
	tensor *t;

	if (s->source >= 0)
		e = n->edges[s->source];
	else if (s->source != SAVED_CONSTANT && n->within)
		return n->within->type->output_with_history(n->within, saved);
	t = tensor_new_detached(saved);
	if (t && unlikely(saved->keys & FORWARD_BIT) && dual_set(t, saved->tangent) < 0)
		goto failed;
	if (!t || s->source == SAVED_CONSTANT || !e.fn || !differentiable(t))
		return t;
	if (!meta_new_output(t, e.fn, e.nr))
		goto failed;
	return t;
failed:
	tensor_put(t);
	return NULL;
}

tensor *node_unpack(tensor_node *n, int slot)
{
	struct saved *s = &n->saved[slot];
	struct tensor_thread *th = thread();
	tensor *t;

	if (unlikely(s->is_packed)) {
		t = packed_unpack(s->packed, n->type->op);
		if (t && unlikely(s->is_dual))
			t = with_tangent(n, s, t);
		return t && th->modes.grad_enabled ? scope_own(th, with_history(n, s, t)) : t;
	}
	if (unlikely(!s->t)) {
		if (!n->released)
			return tensor_none;
		return tensor_fail_null(EINVAL,
					"backward of %s (%s): saved tensors were freed by "
					"an earlier backward; pass TENSOR_RETAIN_GRAPH to "
					"that one to go through the graph again",
					n->type->op, n->type->name);
	}
	if (unlikely(tensor_version(s->t) != s->version))
		return tensor_fail_null(EINVAL,
					"backward of %s (%s): saved tensor %s %s was "
					"changed in place: expected version %u, found %u",
					n->type->op, n->type->name, node_saved_name(n, slot),
					SHAPE_STR(s->t), s->version, tensor_version(s->t));
	t = s->t;
	if (unlikely(s->is_dual)) {
		t = with_tangent(n, s, t);
		if (!t)
			return NULL;
	}
	if (unlikely(th->modes.grad_enabled))
		return scope_own(th, with_history(n, s, t));
	return t;
}

int node_save_list(tensor_node *n, int first, tensor_list list, int source)
{
	for (int64_t i = 0; i < list.len; i++) {
		tensor *t = list.data[i] == tensor_none ? NULL : list.data[i];
		int from = source >= 0 && t && meta_of(t) ? source + (int)i : SAVED_CONSTANT;

		if (node_save(n, first + (int)i, t, from) < 0)
			return -1;
	}
	return 0;
}

int node_unpack_list(tensor_node *n, int first, tensor_list list)
{
	tensor **to = (tensor **)list.data;

	for (int64_t i = 0; i < list.len; i++) {
		to[i] = node_unpack(n, first + (int)i);
		if (unlikely(!to[i]))
			return -1;
	}
	return 0;
}

const char *node_string(const char *s)
{
	static const char *known[64];
	size_t i = 0;

	if (!s)
		return NULL;
	autograd_lock();
	while (i < ARRAY_SIZE(known) && known[i] && strcmp(known[i], s))
		i++;
	if (i < ARRAY_SIZE(known) && !known[i])
		known[i] = strdup(s);
	autograd_unlock();
	return i < ARRAY_SIZE(known) ? known[i] : NULL;
}

void node_release(tensor_node *n)
{
	for (unsigned i = 0; i < n->nsaved; i++) {
		struct saved s = n->saved[i];

		/* tensor_node_saved() reads it without the lock. */
		__atomic_store_n(&n->saved[i].t, NULL, __ATOMIC_RELAXED);
		n->saved[i].is_packed = n->saved[i].is_dual = false;
		saved_drop(&s);
	}
	if (n->hooks)
		hooks_drop_tangents(n->hooks);
	if (n->type->release)
		n->type->release(n);
	n->released = true;
}
