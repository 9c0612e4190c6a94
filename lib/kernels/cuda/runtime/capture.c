// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* An open capture, as operators see it: the memory that they use, and the numbers that differ from replay to replay. */
#include "kernels/cuda/runtime/graph.h"

#include "kernels/cuda/launch_graph.h"

#include <stdlib.h>

/* ---- memory ---- */

int capture_outside(const struct tensor_cuda_graph *g, const char *op, struct cuda_call *c)
{
	int err = cuda_begin(c, op, g->device);

	c->capture = NULL;
	c->stream = g->before;
	return err;
}

static size_t place_of(struct tensor_storage *const *table, size_t size,
		       const struct tensor_storage *s)
{
	size_t i = ((uintptr_t)s * 0x9e3779b97f4a7c15u >> 32) & (size - 1);

	while (table[i] && table[i] != s)
		i = (i + 1) & (size - 1);
	return i;
}

static bool grow_held(struct tensor_cuda_graph *g)
{
	size_t size = g->held_size ? 2 * g->held_size : 256;
	struct tensor_storage **fresh;

	if (2 * g->nheld < g->held_size)
		return true;
	fresh = calloc(size, sizeof(*fresh));
	if (!fresh)
		return false;
	for (size_t i = 0; i < g->held_size; i++)
		if (g->held[i])
			fresh[place_of(fresh, size, g->held[i])] = g->held[i];
	free(g->held);
	g->held = fresh;
	g->held_size = size;
	return true;
}

void cuda_capture_hold(struct tensor_cuda_graph *g, struct tensor_storage *s)
{
	size_t i;

	if (!grow_held(g)) {
		g->lost = true;
		return;
	}
	i = place_of(g->held, g->held_size, s);
	if (g->held[i])
		return;
	storage_get(s);
	g->held[i] = s;
	g->nheld++;
}

void *capture_outside_memory(const struct tensor_cuda_graph *g, const char *op, int byte,
			     size_t nbytes)
{
	struct cuda_call c;
	void *data = NULL;
	int err = capture_outside(g, op, &c);

	if (err)
		return NULL;
	err = cuda_scratch(&c, nbytes, &data);
	if (!err) {
		err = cuda_check(op, cudaMemsetAsync(data, byte, nbytes, c.stream));
		if (err) {
			cuda_scratch_free(&c, data);
			data = NULL;
		}
	}
	cuda_end(&c, err);
	return data;
}

void capture_forget(struct tensor_cuda_graph *g)
{
	const struct cuda_call c = { .op = "cuda_graph_reset", .device = g->device };
	struct graph_rates *r;
	struct graph_check *k;

	while ((r = g->rates)) {
		g->rates = r->next;
		cuda_scratch_free(&c, r->to);
		for (int i = 0; i < r->n; i++)
			tensor_release(r->count[i]);
		free(r);
	}
	while ((k = g->checks)) {
		g->checks = k->next;
		cuda_scratch_free(&c, k->flag);
		free(k);
	}
	cuda_scratch_free(&c, g->words);
	for (int i = 0; i < g->ngenerators; i++)
		tensor_generator_release(g->generator[i].g);
	for (size_t i = 0; i < g->counts_size; i++)
		tensor_release(g->counts[i].t);
	for (size_t i = 0; i < g->held_size; i++)
		if (g->held[i])
			storage_put(g->held[i]);
	free(g->counts);
	free(g->held);
	g->words = NULL;
	g->counts = NULL;
	g->held = NULL;
	g->ngenerators = 0;
	g->ncounts = g->counts_size = g->nheld = g->held_size = 0;
	g->lost = false;
}

/* ---- checks of values ---- */

unsigned long long *cuda_capture_check(const struct cuda_call *c)
{
	struct tensor_cuda_graph *g = c->capture;
	struct graph_check *k = calloc(1, sizeof(*k));

	if (!k) {
		tensor_fail(ENOMEM, "%s: no memory", c->op);
		return NULL;
	}
	k->flag = capture_outside_memory(g, c->op, 0xff, 2 * sizeof(*k->flag));
	if (!k->flag) {
		free(k);
		return NULL;
	}
	k->op = c->op;
	k->next = g->checks;
	g->checks = k;
	return k->flag;
}

/* ---- random numbers ---- */

int cuda_take_random(int device, tensor_generator *generator, uint64_t n,
		     struct tensor_generator_state *at)
{
	struct tensor_cuda_graph *g = cuda_capture_of(cuda_current_stream(device));
	int i = 0;

	if (likely(!g))
		return 0;
	if (!generator)
		generator = tensor_default_generator();
	while (i < g->ngenerators && g->generator[i].g != generator)
		i++;
	if (i == g->ngenerators) {
		int err = tensor_fail(EINVAL,
				      "cuda_graph: random numbers of a generator that is not "
				      "registered with the graph; the capture has ended");

		cuda_capture_break(g);
		return err;
	}
	*at = (struct tensor_generator_state){ (uint64_t)i, g->generator[i].used };
	g->generator[i].used += n;
	return 1;
}

int cuda_random_at(const struct cuda_call *c, uint64_t *seed, const uint64_t **at)
{
	struct tensor_cuda_graph *g = c->capture;

	*at = NULL;
	if (likely(!cuda_capturing(c)))
		return 0;
	/* The state is not one of cuda_take_random(). */
	if (*seed >= (uint64_t)g->ngenerators)
		return cuda_refuse(c, "uses a generator that is not registered with the graph");
	if (!g->words)
		g->words = capture_outside_memory(g, c->op, 0,
						  2 * GRAPH_GENERATORS * sizeof(*g->words));
	if (!g->words)
		return -tensor_last_error()->code;
	*at = g->words + 2 * *seed;
	return 0;
}
