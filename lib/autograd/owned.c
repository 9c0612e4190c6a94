// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Values of the program that a tensor or a node alone keeps (tensor_visit_owned()). References are counted from the
 * root on: a node or tensor whose references were all found is owned by the root, and its own references are followed.
 * Others have another owner, and are left. So the cost is that of the owned part of the graph, and a reference that
 * another thread holds keeps it from what it is using.
 */
#include "autograd/function/function.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/meta.h"

#include <tensor/binding.h>

#include <stdlib.h>

/* A node, or a tensor, with several references. */
struct counted {
	const void *what;
	int64_t found;
};

struct object {
	tensor *t; /* or NULL */
	tensor_node *n;
};

struct visit {
	tensor_visit_fn fn;
	void *arg;
	struct object *todo; /* owned by the root, not followed yet */
	size_t ntodo, todo_cap;
	struct counted *table; /* open addressing; cap is a power of 2 */
	size_t ncounted, cap;
	int err;
};

/* ---- counting ---- */

static struct counted *find(struct counted *table, size_t cap, const void *what)
{
	size_t i = (size_t)((uintptr_t)what >> 4) * 0x9e3779b97f4a7c15u >> 20 & (cap - 1);

	while (table[i].what && table[i].what != what)
		i = (i + 1) & (cap - 1);
	return &table[i];
}

static int grow_table(struct visit *v)
{
	size_t cap = v->cap ? 2 * v->cap : 64;
	struct counted *table = calloc(cap, sizeof(*table));

	if (!table)
		return tensor_fail(ENOMEM, "visit_owned: no memory");
	for (size_t i = 0; i < v->cap; i++)
		if (v->table[i].what)
			*find(table, cap, v->table[i].what) = v->table[i];
	free(v->table);
	v->table = table;
	v->cap = cap;
	return 0;
}

/* A reference was found: true if it is the last of refs. */
static bool all_found(struct visit *v, const void *what, int64_t refs)
{
	struct counted *c;

	if (refs == 1)
		return true;
	if (2 * (v->ncounted + 1) > v->cap && (v->err = grow_table(v)) < 0)
		return false;
	c = find(v->table, v->cap, what);
	if (!c->what) {
		c->what = what;
		v->ncounted++;
	}
	return ++c->found == refs;
}

static void push(struct visit *v, struct object o)
{
	if (v->ntodo == v->todo_cap) {
		size_t cap = v->todo_cap ? 2 * v->todo_cap : 64;
		struct object *todo = realloc(v->todo, cap * sizeof(*todo));

		if (!todo) {
			v->err = tensor_fail(ENOMEM, "visit_owned: no memory");
			return;
		}
		v->todo = todo;
		v->todo_cap = cap;
	}
	v->todo[v->ntodo++] = o;
}

static void found_tensor(struct visit *v, tensor *t)
{
	if (t && t != tensor_none && all_found(v, t, tensor_use_count(t)))
		push(v, (struct object){ t, NULL });
}

static void found_node(struct visit *v, tensor_node *n)
{
	if (!n)
		return;
	if (n->leaf)
		found_tensor(v, n->leaf);
	else if (all_found(v, n, atomic_load_explicit(&n->refs, memory_order_relaxed)))
		push(v, (struct object){ NULL, n });
}

/* ---- what an owned object refers to ---- */

static void value(struct visit *v, void *ctx, void (*destroy)(void *ctx))
{
	if (destroy && !v->err)
		v->err = v->fn(ctx, destroy, v->arg);
}

/* A hook that runs has another user. */
static void hooks_at(struct visit *v, const struct hook_list *at)
{
	for (const struct tensor_hook *h = at->first; h; h = h->next)
		if (atomic_load_explicit(&h->users, memory_order_relaxed) == 1)
			value(v, h->ctx, h->destroy);
}

/* fn does not call the library, so the lists may stay locked. */
static void hooks(struct visit *v, struct node_hooks *list)
{
	if (!list)
		return;
	node_lock_take(&list->lock);
	for (int kind = 0; kind < HOOK_KINDS; kind++)
		hooks_at(v, &list->lists[kind]);
	hooks_at(v, &list->output.gradient);
	for (uint32_t i = 0; i < list->nmore; i++)
		hooks_at(v, &list->more[i].gradient);
	node_lock_drop(&list->lock);
}

/* Without the node's lock: a backward that uses the node has a reference to it or to what leads to it. */
static void node(struct visit *v, const tensor_node *n)
{
	hooks(v, n->hooks);
	if (n->type->destroy == function_node_destroy) {
		const struct function_node *f = (const struct function_node *)n;

		value(v, f->data, f->destroy);
	}
	for (uint32_t i = 0; i < n->nedges; i++)
		found_node(v, n->edges[i].fn);
	for (unsigned i = 0; i < n->nsaved; i++)
		if (!n->saved[i].is_packed)
			found_tensor(v, n->saved[i].t);
}

static void tensor_refs(struct visit *v, const tensor *t)
{
	const struct autograd_meta *m = meta_of(t);

	found_tensor(v, t->base);
	if (!m)
		return;
	found_tensor(v, m->grad);
	if (m->fn)
		found_node(v, m->fn);
	else
		hooks(v, meta_node(m)->hooks);
}

static int visit_all(struct visit *v)
{
	while (v->ntodo && !v->err) {
		struct object o = v->todo[--v->ntodo];

		if (o.t)
			tensor_refs(v, o.t);
		else
			node(v, o.n);
	}
	free(v->todo);
	free(v->table);
	return v->err;
}

TENSOR_EXPORT int tensor_visit_owned(tensor *t, tensor_visit_fn visit, void *arg)
{
	struct visit v = { .fn = visit, .arg = arg };

	/* Most are owned by others, too. */
	if (!tensor_given(t) || tensor_use_count(t) != 1)
		return 0;
	found_tensor(&v, t);
	return visit_all(&v);
}

TENSOR_EXPORT int tensor_node_visit_owned(tensor_node *n, tensor_visit_fn visit, void *arg)
{
	struct visit v = { .fn = visit, .arg = arg };

	found_node(&v, n);
	return visit_all(&v);
}
