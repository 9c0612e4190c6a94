// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A heap of ready nodes (heap.h). */
#include "autograd/engine/heap.h"

#include "autograd/engine/share.h"

#include <stdlib.h>

static bool runs_before(const struct heap_node *a, const struct heap_node *b)
{
	if (a->depth != b->depth)
		return a->depth > b->depth;
	return a->path != b->path ? a->path > b->path : a->seq > b->seq;
}

static void sift_up(struct node_heap *h, struct heap_node e)
{
	uint32_t at;

	for (at = h->n++; at && runs_before(&e, &h->nodes[(at - 1) / 2]); at = (at - 1) / 2)
		h->nodes[at] = h->nodes[(at - 1) / 2];
	h->nodes[at] = e;
}

static bool grow(struct node_heap *h)
{
	uint32_t cap = h->cap ? 2 * h->cap : 64;
	struct heap_node *nodes = cap < INT32_MAX ? realloc(h->nodes, cap * sizeof(*nodes)) : NULL;

	if (!nodes)
		return false;
	h->nodes = nodes;
	h->cap = cap;
	return true;
}

bool heap_push(struct node_heap *h, struct task *k, uint32_t index)
{
	const double *paths = k->share->paths;

	if (h->n == h->cap && !grow(h))
		return false;
	sift_up(h, (struct heap_node){ k, paths ? paths[index] : 0, k->states[index].node->seq,
				       k->depth, index });
	return true;
}

struct heap_node heap_pop(struct node_heap *h)
{
	struct heap_node top = h->nodes[0], last = h->nodes[--h->n];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < h->n) {
		if (child + 1 < h->n && runs_before(&h->nodes[child + 1], &h->nodes[child]))
			child++;
		if (!runs_before(&h->nodes[child], &last))
			break;
		h->nodes[at] = h->nodes[child];
		at = child;
	}
	h->nodes[at] = last;
	return top;
}

uint32_t heap_drop(struct node_heap *h, const struct task *k)
{
	uint32_t n = h->n;

	h->n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (h->nodes[i].task != k)
			sift_up(h, h->nodes[i]);
	return n - h->n;
}
