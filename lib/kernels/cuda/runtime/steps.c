// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Steps of optimizers in a capture: a replay counts them, and computes the numbers that depend on the counts. */
#include "kernels/cuda/runtime/graph.h"

#include <stdlib.h>

static size_t place_of_count(const struct graph_count *table, size_t size, const tensor *t)
{
	size_t i = ((uintptr_t)t * 0x9e3779b97f4a7c15u >> 32) & (size - 1);

	while (table[i].t && table[i].t != t)
		i = (i + 1) & (size - 1);
	return i;
}

static bool grow_counts(struct tensor_cuda_graph *g)
{
	size_t size = g->counts_size ? 2 * g->counts_size : 64;
	struct graph_count *fresh;

	if (2 * g->ncounts < g->counts_size)
		return true;
	fresh = calloc(size, sizeof(*fresh));
	if (!fresh)
		return false;
	for (size_t i = 0; i < g->counts_size; i++)
		if (g->counts[i].t)
			fresh[place_of_count(fresh, size, g->counts[i].t)] = g->counts[i];
	free(g->counts);
	g->counts = fresh;
	g->counts_size = size;
	return true;
}

double capture_steps(const struct tensor_cuda_graph *g, const tensor *count)
{
	return g->counts ? g->counts[place_of_count(g->counts, g->counts_size, count)].steps : 0;
}

int cuda_capture_count(int device, tensor *count)
{
	struct tensor_cuda_graph *g = cuda_capture_of(cuda_current_stream(device));
	struct graph_count *at;

	if (!g)
		return 0;
	if (!grow_counts(g))
		return tensor_fail(ENOMEM, "optim_step: no memory");
	at = &g->counts[place_of_count(g->counts, g->counts_size, count)];
	if (!at->t) {
		at->t = tensor_retain(count);
		g->ncounts++;
	}
	at->steps++;
	return 0;
}

int cuda_capture_rates(const struct cuda_call *c, const struct optimizer_step *s,
		       const struct optimizer_item *items, int n, cuda_rates_of compute,
		       const double **rates)
{
	struct tensor_cuda_graph *g = c->capture;
	struct graph_rates *r;

	*rates = NULL;
	if (likely(!cuda_capturing(c)))
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return tensor_fail(ENOMEM, "%s: no memory", c->op);
	r->to = capture_outside_memory(g, c->op, 0, 2 * CUDA_STEP_ITEMS * sizeof(*r->to));
	if (!r->to) {
		free(r);
		return -tensor_last_error()->code;
	}
	r->step = *s;
	r->compute = compute;
	r->n = n;
	for (int i = 0; i < n; i++) {
		r->count[i] = items[i].count ? tensor_retain(items[i].count) : NULL;
		r->nth[i] = r->count[i] ? capture_steps(g, r->count[i]) + 1 : 1;
	}
	r->next = g->rates;
	g->rates = r;
	*rates = r->to;
	return 0;
}
