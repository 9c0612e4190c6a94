/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The history of a tensor: its metadata and the edge that leads to the node that computed it. */
#ifndef TENSOR_AUTOGRAD_META_H
#define TENSOR_AUTOGRAD_META_H

#include "autograd/graph/node.h"

/* With acquire: another thread may replace the metadata of a stale view. */
static inline const struct autograd_meta *meta_of(const tensor *t)
{
	return __atomic_load_n(&t->autograd_meta, __ATOMIC_ACQUIRE);
}

/* The node that the gradient of m's tensor goes to. */
static inline tensor_node *meta_node(const struct autograd_meta *m)
{
	return m->fn ? m->fn : &((struct leaf_meta *)m)->node;
}

static inline bool needs_grad(const tensor *t)
{
	return t->keys & AUTOGRAD_BIT && meta_of(t)->tracked;
}

static inline bool differentiable(const tensor *t)
{
	return dtype_is_float(t->dtype) || dtype_is_complex(t->dtype);
}

/* The edge to the node that computed t, with an owned node; t is tracked and not stale. */
static inline struct edge gradient_edge(tensor *t)
{
	const struct autograd_meta *m = meta_of(t);
	tensor_node *fn = meta_node(m);

	node_get(fn);
	return (struct edge){ fn, m->fn ? m->nr : 0 };
}

static inline void node_edge(tensor_node *n, uint32_t i, tensor *t)
{
	n->edges[i] = gradient_edge(t);
}

void node_list_edges(tensor_node *n, uint32_t first, tensor_list list);

/* Makes t output 0 of n; t takes over the reference of node_new(). */
static inline void node_result(tensor_node *n, tensor *t)
{
	node_describe(n, 0, t);
	n->meta.fn = n;
	n->meta.tracked = true;
	n->meta.inside_node = true;
	n->meta.view_version = storage_version(t->storage);
	t->autograd_meta = &n->meta;
	t->keys |= AUTOGRAD_BIT;
}

/* Makes t output nr >= 1, after node_result(). 0, or -1 with the error set. */
int node_result_more(tensor_node *n, unsigned nr, tensor *t);

/* Allocates metadata with an AccumulateGrad node for t, which has none. NULL with the error set. */
struct leaf_meta *meta_new(tensor *t);
/* As meta_new(), for a tensor that is output nr of fn. */
struct leaf_meta *meta_new_output(tensor *t, tensor_node *fn, uint32_t nr);
/* Frees metadata and what it retired. */
void meta_free(struct autograd_meta *m);
/* Moves the history of from, which has one, to t. */
void history_take(tensor *t, tensor *from);
/* Makes t output nr of n, also if t has metadata. 0, or -1 with the error set. */
int history_set(tensor *t, tensor_node *n, unsigned nr);
/* Makes n, whose reference is consumed, the node that computed t. */
void history_replace(tensor *t, tensor_node *n);

#endif
