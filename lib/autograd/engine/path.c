// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Heaviest paths (path.h). The time of a node is not known before it runs. Its weight is the time that it takes at least: a call,
 * and one pass over the gradients of its outputs.
 */
#include "autograd/engine/path.h"

#include <stdlib.h>

/* The bytes that memory delivers while an operator without elements is dispatched and launched: about 10 GB/s for 6 us. */
#define BYTES_OF_A_CALL 65536.0

/* In bytes. A double: the bytes of expanded outputs, and sums of them, exceed every integer. */
static double weight_of(const tensor_node *n)
{
	double weight = BYTES_OF_A_CALL;

	for (unsigned i = 0; i < n->noutputs; i++) {
		const struct output *o = &n->outputs[i];
		double bytes = dtype_sizes[o->dtype];

		for (int d = 0; d < o->ndim; d++)
			bytes *= (double)o->sizes[d];
		weight += bytes;
	}
	return weight;
}

/* The states in an order in which each edge leads to a later one. missing: of each state, is consumed. Returns their number. */
static uint32_t topological_order(const struct task *k, uint32_t *missing, uint32_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		missing[i] = k->states[i].missing;
		if (!missing[i])
			order[n++] = i;
	}
	for (uint32_t at = 0; at < n; at++) {
		const tensor_node *from = k->states[order[at]].node;
		uint32_t nedges = followed_edges(k, from);

		for (uint32_t e = 0; e < nedges; e++) {
			int64_t to = from->edges[e].fn ? task_find(k, from->edges[e].fn) : -1;

			if (to >= 0 && !--missing[to])
				order[n++] = (uint32_t)to;
		}
	}
	return n;
}

/* The path of a state from those of the states that its edges lead to. */
static double path_from(const struct task *k, const struct node_state *s, const double *paths)
{
	uint32_t nedges = followed_edges(k, s->node);
	double most = 0;

	for (uint32_t e = 0; e < nedges; e++) {
		const tensor_node *fn = s->node->edges[e].fn;
		double path = fn ? paths[task_find(k, fn)] : 0;

		if (path > most)
			most = path;
	}
	return weight_of(s->node) + most;
}

double *heaviest_paths(const struct task *k)
{
	double *paths = calloc(k->n, sizeof(*paths));
	uint32_t *missing = malloc(k->n * sizeof(*missing));
	uint32_t *order = malloc(k->n * sizeof(*order));

	if (paths && missing && order) {
		for (uint32_t at = topological_order(k, missing, order); at-- > 0;)
			if (k->states[order[at]].needed)
				paths[order[at]] = path_from(k, &k->states[order[at]], paths);
	} else {
		tensor_fail(ENOMEM, "backward: no memory for %u nodes", k->n);
		free(paths);
		paths = NULL;
	}
	free(missing);
	free(order);
	return paths;
}
