// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The state of one backward (task.h). No function recurses: a graph may be a million nodes deep. */
#include "autograd/engine/task.h"

#include "autograd/graph/pack.h"

#include "base/init.h"

#include <stdlib.h>

#define KEEP_CAP 4096 /* the arrays of larger tasks are freed */

/* ---- memory ---- */

void task_free(struct task *k)
{
	free(k->states);
	free(k->ready.heap);
	free(k->captures);
	free(k->others.slot);
	free(k);
}

struct task *task_new(const struct engine_call *call)
{
	struct autograd_thread *at = autograd_thread(thread());
	struct task *k;

	if (!at)
		return NULL;
	k = at->spare ? at->spare : calloc(1, sizeof(*k));
	at->spare = NULL;
	if (!k) {
		tensor_fail(ENOMEM, "backward: no memory");
		return NULL;
	}
	k->call = call;
	k->outer = at->current;
	k->depth = k->outer ? k->outer->depth + 1 : 0;
	at->current = k;
	return k;
}

static void drop_grads(struct node_state *s)
{
	tensor_put(s->grad);
	for (unsigned i = 1; s->more && i < s->node->noutputs; i++)
		tensor_put(s->more[i - 1]);
	free(s->more);
}

void task_done(struct task *k)
{
	struct autograd_thread *at = thread()->autograd;

	for (uint32_t i = 0; i < k->n; i++) {
		struct node_state *s = &k->states[i];

		if (unlikely(s->grad || s->more))
			drop_grads(s);
		if (likely(s->claimed))
			atomic_store_explicit(&s->node->task, NULL, memory_order_release);
	}
	at->current = k->outer;
	k->n = k->ready.nheap = 0;
	if (unlikely(k->captures || k->others.slot)) {
		free(k->captures);
		free(k->others.slot);
		k->captures = NULL;
		memset(&k->others, 0, sizeof(k->others));
	}
	if (at->spare || k->cap > KEEP_CAP)
		task_free(k);
	else
		at->spare = k;
}

static int grow(struct task *k)
{
	uint32_t cap = k->cap ? 2 * k->cap : 64;
	void *p;

	if (cap > INT32_MAX)
		return tensor_fail(EOVERFLOW, "backward: more than %d nodes", INT32_MAX);
	p = realloc(k->states, cap * sizeof(*k->states));
	if (!p)
		goto no_memory;
	k->states = p;
	p = realloc(k->ready.heap, cap * sizeof(*k->ready.heap));
	if (!p)
		goto no_memory;
	k->ready.heap = p;
	k->cap = cap;
	return 0;
no_memory:
	return tensor_fail(ENOMEM, "backward: no memory for %u nodes", cap);
}

/* ---- nodes that another task claimed: a hash table with open addressing ---- */

static uint32_t hash(const tensor_node *n, uint32_t cap)
{
	return (uint32_t)(((uintptr_t)n >> 6) * 0x9e3779b97f4a7c15ull >> 32) & (cap - 1);
}

static int64_t others_find(const struct task *k, const tensor_node *n)
{
	uint32_t at;

	if (likely(!k->others.n))
		return -1;
	for (at = hash(n, k->others.cap); k->others.slot[at]; at = (at + 1) & (k->others.cap - 1))
		if (k->states[k->others.slot[at] - 1].node == n)
			return k->others.slot[at] - 1;
	return -1;
}

static void others_put(struct task *k, const tensor_node *n, uint32_t index)
{
	uint32_t at = hash(n, k->others.cap);

	while (k->others.slot[at])
		at = (at + 1) & (k->others.cap - 1);
	k->others.slot[at] = index + 1;
	k->others.n++;
}

static int others_add(struct task *k, const tensor_node *n, uint32_t index)
{
	uint32_t cap = k->others.cap ? 2 * k->others.cap : 64, *old = k->others.slot;
	uint32_t old_cap = k->others.cap;

	if (2 * k->others.n >= k->others.cap) {
		k->others.slot = calloc(cap, sizeof(*old));
		if (!k->others.slot) {
			k->others.slot = old;
			return tensor_fail(ENOMEM, "backward: no memory");
		}
		k->others.cap = cap;
		k->others.n = 0;
		for (uint32_t i = 0; i < old_cap; i++)
			if (old[i])
				others_put(k, k->states[old[i] - 1].node, old[i] - 1);
		free(old);
	}
	others_put(k, n, index);
	return 0;
}

int64_t task_find(const struct task *k, const tensor_node *n)
{
	if (likely(atomic_load_explicit(&n->task, memory_order_relaxed) == k))
		return n->task_index;
	return others_find(k, n);
}

int64_t task_visit(struct task *k, tensor_node *n)
{
	int64_t i = task_find(k, n);
	struct task *nobody = NULL;
	struct node_state *s;

	if (i >= 0)
		return i;
	if (unlikely(k->n == k->cap) && grow(k) < 0)
		return -1;
	i = k->n;
	s = &k->states[i];
	*s = (struct node_state){ .node = n, .capture = -1 };
	s->claimed = atomic_compare_exchange_strong_explicit(
		&n->task, &nobody, k, memory_order_acq_rel, memory_order_relaxed);
	k->n++;
	if (likely(s->claimed))
		n->task_index = (uint32_t)i;
	else if (others_add(k, n, (uint32_t)i) < 0)
		return -1;
	return i;
}

tensor **task_slot_of_more(struct node_state *s, uint32_t nr)
{
	if (!s->more)
		s->more = calloc(s->node->noutputs - 1, sizeof(tensor *));
	if (s->more)
		return &s->more[nr - 1];
	tensor_fail(ENOMEM, "backward: no memory");
	return NULL;
}

/* ---- planning ---- */

/* Reverse edges: the edges into state i begin at states from[start[i]] to from[start[i + 1] - 1]. */
static void reverse_edges(const struct task *k, uint64_t *start, uint32_t *from)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		sum += k->states[i].missing;
		start[i] = sum; /* the end; the loop below moves it to the beginning */
	}
	start[k->n] = sum;
	for (uint32_t i = 0; i < k->n; i++) {
		const tensor_node *n = k->states[i].node;
		uint32_t nedges = followed_edges(k, n);

		for (uint32_t e = 0; e < nedges; e++)
			if (n->edges[e].fn)
				from[--start[task_find(k, n->edges[e].fn)]] = i;
	}
}

/* Marks the nodes on paths from the roots to requested inputs. */
static int mark_needed(struct task *k, uint64_t nedges)
{
	uint64_t *start = malloc((k->n + 1) * sizeof(*start));
	uint32_t *from = malloc((nedges + 1) * sizeof(*from));
	uint32_t *stack = malloc((k->n + 1) * sizeof(*stack)), depth = 0;
	int err = 0;

	if (!start || !from || !stack) {
		err = tensor_fail(ENOMEM, "backward: no memory");
		goto out;
	}
	reverse_edges(k, start, from);
	for (uint32_t i = 0; i < k->n; i++)
		if (k->states[i].capture >= 0)
			stack[depth++] = i;
	while (depth) {
		uint32_t i = stack[--depth];

		for (uint64_t e = start[i]; e < start[i + 1]; e++) {
			struct node_state *s = &k->states[from[e]];

			/* A node with a capture was pushed above. */
			if (!s->needed && s->capture < 0)
				stack[depth++] = from[e];
			s->needed = true;
		}
	}
out:
	free(start);
	free(from);
	free(stack);
	return err;
}

int task_plan(struct task *k)
{
	bool all = !k->call->inputs.len;
	uint64_t all_edges = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		const tensor_node *n = k->states[i].node;
		uint32_t nedges = followed_edges(k, n);

		k->states[i].needed = all;
		for (uint32_t e = 0; e < nedges; e++) {
			int64_t to;

			if (!n->edges[e].fn)
				continue;
			to = task_visit(k, n->edges[e].fn);
			if (to < 0)
				return -thread()->error.code;
			k->states[to].missing++;
			all_edges++;
		}
	}
	if (all)
		return 0;
	for (int64_t i = 0; i < k->call->inputs.len; i++) {
		tensor *input = k->call->inputs.data[i];
		const struct autograd_meta *m = meta_of(input);
		int64_t at = task_find(k, meta_node(m));

		k->captures[i] = (struct capture){ m->fn ? m->nr : 0, (int32_t)i, -1 };
		if (at < 0)
			continue;
		k->captures[i].next = k->states[at].capture;
		k->states[at].capture = (int32_t)i;
	}
	return mark_needed(k, all_edges);
}

/* ---- ready queue ---- */

void ready_push(struct task *k, uint32_t index)
{
	struct ready_queue *q = &k->ready;
	struct ready r = { k->states[index].node->seq, index };
	uint32_t at;

	for (at = q->nheap++; at && q->heap[(at - 1) / 2].seq < r.seq; at = (at - 1) / 2)
		q->heap[at] = q->heap[(at - 1) / 2];
	q->heap[at] = r;
}

int64_t ready_pop(struct task *k)
{
	struct ready_queue *q = &k->ready;
	struct ready last;
	uint32_t top, at = 0, child;

	if (!q->nheap)
		return -1;
	top = q->heap[0].index;
	last = q->heap[--q->nheap];
	while ((child = 2 * at + 1) < q->nheap) {
		if (child + 1 < q->nheap && q->heap[child + 1].seq > q->heap[child].seq)
			child++;
		if (q->heap[child].seq <= last.seq)
			break;
		q->heap[at] = q->heap[child];
		at = child;
	}
	q->heap[at] = last;
	return top;
}

/* ---- end of a thread ---- */

static void autograd_thread_exit(struct tensor_thread *th)
{
	struct autograd_thread *at = th->autograd;

	if (!at)
		return;
	for (int c = 0; c < NODE_CLASSES; c++)
		while (at->nodes[c].n)
			free(at->nodes[c].slot[--at->nodes[c].n]);
	pack_hooks_unwind(at, NULL);
	if (at->spare)
		task_free(at->spare);
	free(at);
	th->autograd = NULL;
}

INIT(INIT_HOOKS) static void set_exit(void)
{
	thread_on_exit(THREAD_EXIT_AUTOGRAD, autograd_thread_exit);
}
