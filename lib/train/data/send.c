// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Batches to workers, and the buffers that workers may use again.
 *
 * A buffer is free when its storage has no reference but that of loader_buffer. The program may have
 * passed it on, though: to another process, which the mark `shared` of the buffer says, or to a child,
 * which fork_generation says. Such a buffer is dropped.
 */
#include "train/data/loader.h"

#include "storage/provider/provider.h"

#include <stdlib.h>
#include <sys/socket.h>

/* ---- buffers ---- */

void drop_fresh(struct loader_worker *w)
{
	for (; w->nfresh; w->nfresh--)
		if (w->fresh[w->nfresh - 1])
			storage_put(w->fresh[w->nfresh - 1]);
}

void drop_buffers(struct loader_worker *w)
{
	for (uint32_t i = 0; i < w->nbuffers; i++)
		if (w->buffers[i].storage)
			storage_put(w->buffers[i].storage);
	free(w->buffers);
	w->buffers = NULL;
	w->nbuffers = 0;
	drop_fresh(w);
}

static void return_buffer(struct loader_buffer *b)
{
	struct tensor_buffer *memory = tensor_storage_buffer(b->storage);

	b->state = BUFFER_BACK;
	if (memory->shared || memory->purgeable || b->storage->readonly ||
	    b->fork != atomic_load(&fork_generation)) {
		storage_put(b->storage);
		b->storage = NULL;
		b->state = BUFFER_DROP;
	}
}

static void recycle_worker(struct loader_worker *w)
{
	for (uint32_t i = 0; i < w->nbuffers; i++) {
		struct loader_buffer *b = &w->buffers[i];

		/* Acquire: the program's accesses come before the release of its reference. */
		if (b->state == BUFFER_OUT &&
		    atomic_load_explicit(&b->storage->refs, memory_order_acquire) == 1)
			return_buffer(b);
	}
}

void recycle_buffers(tensor_loader *l)
{
	for (int i = 0; i < l->options.workers; i++)
		recycle_worker(&l->workers[i]);
}

void return_outputs(struct loader_worker *w, const struct loader_output *outputs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		w->buffers[outputs[i].buffer].state = BUFFER_BACK;
}

struct loader_buffer *buffer_entry(struct loader_worker *w, uint32_t number)
{
	if (number >= w->nbuffers) {
		uint32_t n = number + 8;
		struct loader_buffer *more = realloc(w->buffers, n * sizeof(*more));

		if (!more)
			return NULL;
		memset(more + w->nbuffers, 0, (n - w->nbuffers) * sizeof(*more));
		w->buffers = more;
		w->nbuffers = n;
	}
	return &w->buffers[number];
}

/* ---- to workers ---- */

static void take_frees(struct loader_worker *w, struct loader_task *task)
{
	for (uint32_t i = 0; i < w->nbuffers && task->nfrees < FREES_MAX; i++) {
		if (w->buffers[i].state == BUFFER_BACK)
			task->frees[task->nfrees++] = i;
		else if (w->buffers[i].state == BUFFER_DROP)
			task->frees[task->nfrees++] = i | FREE_DROP;
	}
}

static void apply_frees(struct loader_worker *w, const struct loader_task *task)
{
	for (uint32_t i = 0; i < task->nfrees; i++)
		w->buffers[task->frees[i] & ~FREE_DROP].state =
			task->frees[i] & FREE_DROP ? BUFFER_NONE : BUFFER_WORKER;
}

/* The running worker with the fewest batches; NULL if each has enough. */
static struct loader_worker *least_busy(const tensor_loader *l)
{
	struct loader_worker *best = NULL;

	for (int i = 0; i < l->options.workers; i++) {
		struct loader_worker *w = &l->workers[i];

		if (w->pid && w->pending < l->options.prefetch &&
		    (!best || w->pending < best->pending))
			best = w;
	}
	return best;
}

/* False if the worker cannot take it now. */
static bool send_task(tensor_loader *l, struct loader_worker *w, int64_t batch)
{
	/* After set_state() batches begin at the position and are numbered on from there. */
	int64_t at = l->position + (batch - l->first) * l->options.batch_size;
	struct loader_task task = {
		.run = l->run, .seed = l->seed, .batch = batch, .epoch = l->epoch, .position = at
	};
	int64_t left = l->options.length - at;

	task.count = left < l->options.batch_size ? left : l->options.batch_size;
	take_frees(w, &task);
	if (send(w->socket, &task, sizeof(task), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(task))
		return false;
	apply_frees(w, &task);
	w->pending++;
	return true;
}

/* Batches that are left of the epoch. */
static int64_t batches_left(const tensor_loader *l)
{
	int64_t left = l->options.length - l->position, size = l->options.batch_size;

	return left / size + (left % size && !l->options.drop_last);
}

struct loader_slot *slot_of(const tensor_loader *l, int64_t batch)
{
	return &l->slots[batch % l->window];
}

void dispatch(tensor_loader *l)
{
	int64_t left = batches_left(l), end = l->first + (left < l->window ? left : l->window);

	for (; l->sent < end; l->sent++) {
		struct loader_slot *slot = slot_of(l, l->sent);
		struct loader_worker *w;

		if (slot->state != SLOT_EMPTY)
			continue;
		w = least_busy(l);
		if (!w || !send_task(l, w, l->sent))
			return;
		slot->state = SLOT_SENT;
		slot->worker = w;
	}
}

void cancel_batches(tensor_loader *l)
{
	for (int i = 0; i < l->window; i++) {
		struct loader_slot *slot = &l->slots[i];

		if (slot->state == SLOT_READY)
			return_outputs(slot->worker, slot->outputs,
				       (uint32_t)l->options.batch_outputs);
		slot->state = SLOT_EMPTY;
	}
	l->run++;
	if (l->board)
		atomic_store(&l->board->run, l->run);
	l->first = l->sent = 0;
}
