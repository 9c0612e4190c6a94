// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Allocation of nodes. A node is one allocation, taken from lists of free blocks of the calling
 * thread. Freeing a node drops the references that it held, which may free a chain of a million
 * nodes: they go through a list instead of a recursion.
 */
#include "autograd/graph/hooks.h"
#include "autograd/graph/saved.h"

#include <stdlib.h>

static inline size_t round8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* AddressSanitizer watches allocations: every node is one of its own. */
#ifdef __SANITIZE_ADDRESS__
#define NODE_KEEP (-1)
#else
#define NODE_KEEP (MAGAZINE - 1)
#endif

static void *block_new(struct autograd_thread *at, size_t size, uint16_t *class)
{
	size_t c = (size - 1) / NODE_STEP;
	void *p;

	*class = c < NODE_CLASSES ? c : NODE_CLASSES;
	if (likely(c < NODE_CLASSES) && likely(at->nodes[c].n))
		return at->nodes[c].slot[--at->nodes[c].n];
	p = malloc(c < NODE_CLASSES ? (c + 1) * NODE_STEP : size);
	if (!p)
		tensor_fail(ENOMEM, "autograd: no memory for a node of %zu bytes", size);
	return p;
}

static void block_free(struct autograd_thread *at, void *p, unsigned class)
{
	if (likely(at && class < NODE_CLASSES && (int)at->nodes[class].n <= NODE_KEEP))
		at->nodes[class].slot[at->nodes[class].n++] = p;
	else
		free(p);
}

tensor_node *node_new(const struct node_type *type, size_t size, uint32_t nedges, unsigned nsaved,
		      unsigned noutputs, size_t nints)
{
	struct autograd_thread *at = autograd_thread(thread());
	size_t edges = round8(size), saved = edges + nedges * sizeof(struct edge);
	size_t outputs = saved + nsaved * sizeof(struct saved);
	size_t ints = outputs + noutputs * sizeof(struct output);
	uint16_t class;
	tensor_node *n;
	char *p;

	if (unlikely(!at))
		return NULL;
	p = block_new(at, ints + nints * sizeof(int64_t), &class);
	if (unlikely(!p))
		return NULL;
	n = (tensor_node *)p;
	memset(n, 0, sizeof(*n));
	n->refs = 1;
	n->type = type;
	n->seq = ++at->seq;
	n->nedges = nedges;
	n->nsaved = nsaved;
	n->noutputs = noutputs;
	n->size_class = class;
	n->edges = (struct edge *)(p + edges);
	n->saved = (struct saved *)(p + saved);
	n->outputs = (struct output *)(p + outputs);
	n->ints = (int64_t *)(p + ints);
	for (uint32_t i = 0; i < nedges; i++)
		n->edges[i] = (struct edge){ NULL, 0 };
	for (unsigned i = 0; i < nsaved; i++)
		n->saved[i] = (struct saved){ .source = SAVED_CONSTANT };
	if (unlikely(thread()->modes.anomaly))
		hooks_note_place(n);
	return n;
}

static void destroy(struct autograd_thread *at, tensor_node *n)
{
	if (unlikely(n->type->destroy))
		n->type->destroy(n);
	if (unlikely(n->hooks))
		hooks_free(n->hooks);
	for (unsigned i = 0; i < n->nsaved; i++)
		saved_drop(&n->saved[i]);
	for (uint32_t i = 0; i < n->nedges; i++)
		node_put(n->edges[i].fn);
	block_free(at, n, n->size_class);
}

/* Not a member of struct autograd_thread, whose allocation may have failed. */
static __thread struct {
	tensor_node *first;
	bool freeing;
} dying __attribute__((tls_model("initial-exec")));

void node_free(tensor_node *n)
{
	n->dying = dying.first;
	dying.first = n;
	if (dying.freeing)
		return;
	dying.freeing = true;
	while ((n = dying.first)) {
		dying.first = n->dying;
		destroy(thread()->autograd, n);
	}
	dying.freeing = false;
}

tensor_ints node_lengths(tensor_node *n, tensor_list list, int64_t dim)
{
	int64_t *to = n->ints;

	for (int64_t i = 0; i < list.len; i++) {
		const tensor *t = list.data[i];
		int64_t d = dim < 0 ? dim + t->ndim : dim;

		to[i] = d >= 0 && d < t->ndim ? t->sizes[d] : 0;
	}
	n->ints += list.len;
	return (tensor_ints){ to, list.len };
}
