// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Metadata of tensors: allocation, release, replacement. */
#include "autograd/graph/meta.h"

#include "autograd/graph/hooks.h"

#include <stdlib.h>

static const struct node_type accumulate_type = { .name = "AccumulateGrad", .op = "a leaf" };

static void accumulate_init(struct leaf_meta *m, tensor *leaf)
{
	m->node.type = &accumulate_type;
	m->node.leaf = leaf;
	m->node.noutputs = 1;
	m->node.outputs = &m->output;
	m->output = output_like(leaf);
}

struct leaf_meta *meta_new(tensor *t)
{
	struct leaf_meta *m = calloc(1, sizeof(*m));

	if (!m) {
		tensor_fail(ENOMEM, "autograd: no memory for a tensor's metadata");
		return NULL;
	}
	accumulate_init(m, t);
	t->autograd_meta = &m->meta;
	return m;
}

struct leaf_meta *meta_new_output(tensor *t, tensor_node *fn, uint32_t nr)
{
	struct leaf_meta *m = meta_new(t);

	if (!m)
		return NULL;
	node_get(fn);
	m->meta.fn = fn;
	m->meta.nr = nr;
	m->meta.tracked = true;
	t->keys |= AUTOGRAD_BIT;
	return m;
}

int node_result_more(tensor_node *n, unsigned nr, tensor *t)
{
	struct leaf_meta *m = meta_new_output(t, n, nr);

	if (!m)
		return -1;
	node_describe(n, nr, t);
	m->meta.view_version = tensor_version(t);
	return 0;
}

void node_list_edges(tensor_node *n, uint32_t first, tensor_list list)
{
	for (int64_t i = 0; i < list.len; i++)
		if (needs_grad(list.data[i]))
			n->edges[first + i] = gradient_edge(list.data[i]);
}

static void leaf_meta_free(struct leaf_meta *m)
{
	if (unlikely(m->node.hooks))
		hooks_free(m->node.hooks);
	free(m);
}

void meta_free(struct autograd_meta *m)
{
	struct autograd_meta *next;

	for (; m; m = next) {
		tensor_node *fn = m->fn;
		tensor *grad;

		/* First: a backward on another thread may be storing a gradient. */
		if (unlikely(m->retains_grad))
			hooks_forget(m);
		grad = m->grad;
		next = m->retired;
		m->grad = NULL;
		m->retired = NULL;
		if (!m->inside_node)
			leaf_meta_free((struct leaf_meta *)m);
		tensor_put(grad);
		node_put(fn);
	}
}

/* Gives the gradient of the tensor, which its metadata `from` has, to the metadata `to`. */
static void keep_grad(struct autograd_meta *from, struct autograd_meta *to)
{
	if (unlikely(from->grad)) {
		to->grad = from->grad;
		from->grad = NULL;
	}
	if (unlikely(from->retains_grad)) {
		hooks_forget(from);
		hooks_retain_again(to);
	}
}

/*
 * Replaces the metadata of t. Only one thread changes memory at a time, so a reader of what was
 * replaced before the last change has finished, and that is freed. Metadata of leaves stays,
 * because edges lead to the node inside it.
 */
static void replace_meta(tensor *t, struct autograd_meta *now)
{
	struct autograd_meta *m, **p = &now->retired;

	now->retired = t->autograd_meta;
	if (now->retired) {
		keep_grad(now->retired, now);
		p = &now->retired->retired;
	}
	while ((m = *p)) {
		if (!m->fn) {
			p = &m->retired;
			continue;
		}
		*p = m->retired;
		m->retired = NULL;
		meta_free(m);
	}
	__atomic_store_n(&t->autograd_meta, now, __ATOMIC_RELEASE);
}

void history_take(tensor *t, tensor *from)
{
	replace_meta(t, from->autograd_meta);
	from->autograd_meta = NULL;
	from->keys &= ~AUTOGRAD_BIT;
	/* Not written if set: another thread may be reading it. */
	if (!(t->keys & AUTOGRAD_BIT))
		t->keys |= AUTOGRAD_BIT;
}

void history_replace(tensor *t, tensor_node *n)
{
	struct autograd_meta *old = t->autograd_meta;
	tensor_node *fn;
	bool retained;

	if (!old || old->inside_node) {
		node_result(n, t);
		if (old) {
			keep_grad(old, &n->meta);
			n->meta.retired = old->retired;
			old->retired = NULL;
			meta_free(old);
		}
		return;
	}
	node_describe(n, 0, t);
	retained = old->retains_grad;
	if (unlikely(retained))
		hooks_forget(old);
	fn = old->fn;
	old->fn = n;
	old->nr = 0;
	if (unlikely(retained))
		hooks_retain_again(old);
	old->tracked = true;
	t->keys |= AUTOGRAD_BIT;
	node_put(fn);
}

int history_set(tensor *t, tensor_node *n, unsigned nr)
{
	struct autograd_meta *old = t->autograd_meta;
	struct leaf_meta *m;

	if (nr == 0) {
		node_get(n);
		history_replace(t, n);
		return 0;
	}
	m = meta_new_output(t, n, nr);
	if (!m) {
		t->autograd_meta = old;
		return -1;
	}
	node_describe(n, nr, t);
	m->meta.view_version = tensor_version(t);
	if (old) {
		t->autograd_meta = old;
		replace_meta(t, &m->meta);
	}
	return 0;
}

static bool requires_grad(const tensor *t)
{
	return needs_grad(t);
}

static const void *node_id(const tensor *t)
{
	return needs_grad(t) ? meta_of(t)->fn : NULL;
}

INIT(INIT_HOOKS) static void set_hooks(void)
{
	tensor_autograd_hooks.node = node_id;
	tensor_autograd_hooks.requires_grad = requires_grad;
	tensor_autograd_hooks.free_meta = meta_free;
}
