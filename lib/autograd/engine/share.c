// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* State of a task that several threads run (share.h). Lock order: that of a task, then that of the queues. */
#include "autograd/engine/share.h"

#include "autograd/engine/gradient.h"
#include "autograd/engine/queue.h"
#include "autograd/graph/lock.h"

#include <stdlib.h>

/* ---- memory ---- */

struct task_share *share_new(void)
{
	struct task_share *s = calloc(1, sizeof(*s));

	if (!s) {
		tensor_fail(ENOMEM, "backward: no memory");
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->epoch = node_lock_epoch;
	s->caller = carry_for_others();
	s->own = ((const struct autograd_thread *)thread()->autograd)->device;
	return s;
}

void share_free(struct task *k)
{
	struct task_share *s = k->share;

	k->share = NULL;
	/* In a child the lock may have an owner and the condition a waiter that do not exist. */
	if (s->epoch == node_lock_epoch) {
		pthread_mutex_destroy(&s->lock);
		pthread_cond_destroy(&s->changed);
	}
	free(s->streams);
	free(s->ready.nodes);
	free(s->paths);
	free(s);
}

int share_lock(struct task_share *s)
{
	if (unlikely(s->epoch != node_lock_epoch))
		return tensor_fail(ECANCELED,
				   "backward: the process was forked inside of it, and the "
				   "threads of the devices are in the parent");
	pthread_mutex_lock(&s->lock);
	return 0;
}

void share_unlock(struct task_share *s)
{
	pthread_mutex_unlock(&s->lock);
}

void share_fail(struct task *k, int err)
{
	struct task_share *s = k->share;

	if (share_lock(s) < 0)
		return;
	if (!s->err) {
		s->err = err;
		s->error = *tensor_last_error();
	}
	share_unlock(s);
}

/* ---- ready nodes ---- */

unsigned share_output(const tensor_node *n)
{
	for (unsigned i = 0; i < n->noutputs; i++)
		if (n->outputs[i].device.type != TENSOR_CPU)
			return i;
	return 0;
}

bool share_is_own(const struct task_share *s, tensor_device device)
{
	return device.type == TENSOR_CPU || s->alone || same_device(device, s->own);
}

int share_push(struct task *k, uint32_t index)
{
	struct task_share *s = k->share;
	const tensor_node *n = k->states[index].node;
	tensor_device device = n->outputs[share_output(n)].device;
	bool own = share_is_own(s, device);
	int err = share_lock(s);

	if (err)
		return err;
	if (own) {
		if (!heap_push(&s->ready, k, index))
			err = tensor_fail(ENOMEM, "backward: no memory for ready nodes");
		pthread_cond_signal(&s->changed);
	} else if (!s->err) {
		err = queue_push(queue_of(device), k, index);
		s->pending += !err;
	}
	share_unlock(s);
	return err;
}

/* ---- gradients ---- */

/* With the lock held: puts the gradient where no other one is, or takes that one out. */
static int store(struct node_state *to, uint32_t nr, tensor **grad, tensor **other)
{
	tensor **slot = task_slot(to, nr);

	*other = NULL;
	if (!slot)
		return -ENOMEM;
	*other = *slot;
	*slot = *other ? NULL : *grad;
	if (!*other)
		*grad = NULL;
	return 0;
}

/* Sums are computed without the lock: whoever finds a gradient takes it and comes back with the sum. */
static int add(struct task *k, struct node_state *to, uint32_t nr, tensor *grad, bool *complete)
{
	struct task_share *s = k->share;
	tensor *other = NULL;
	int err;

	do {
		if (other)
			grad = gradient_add(other, grad, k->call->record);
		if (other && !grad)
			return -thread()->error.code;
		other = NULL;
		err = share_lock(s);
		if (err)
			break;
		if (grad)
			err = store(to, nr, &grad, &other);
		*complete = !err && !other && !--to->missing;
		share_unlock(s);
	} while (other);
	tensor_put(grad);
	return err;
}

int share_arrived(struct task *k, uint32_t to, uint32_t nr, tensor *grad, bool *complete)
{
	struct node_state *s = &k->states[to];
	const struct output *o = &s->node->outputs[nr];
	const struct tensor_streams *f = grad ? device_streams(o->device) : NULL;
	struct stream_guard guard = { NULL };
	int err = 0;

	*complete = false;
	if (f)
		err = stream_order(o->device, f->current(o->device), stream_handle(o->stream)) ?:
			      stream_enter(&guard, o->device, o->stream);
	if (err) {
		tensor_put(grad);
		return err;
	}
	err = add(k, s, nr, grad, complete);
	stream_leave(&guard);
	return err;
}

/* ---- streams ---- */

static bool has_stream(const struct task_share *s, tensor_device device, uint32_t nr)
{
	for (uint32_t i = s->nstreams; i-- > 0;)
		if (s->streams[i].nr == nr && same_device(s->streams[i].device, device))
			return true;
	return false;
}

int share_add_streams(struct task_share *s, const tensor_node *n)
{
	for (unsigned i = 0; i < n->noutputs; i++) {
		const struct output *o = &n->outputs[i];

		if (o->device.type == TENSOR_CPU || has_stream(s, o->device, o->stream))
			continue;
		if (s->nstreams == s->cap) {
			uint32_t cap = s->cap ? 2 * s->cap : 8;
			struct used_stream *p = realloc(s->streams, cap * sizeof(*p));

			if (!p)
				return tensor_fail(ENOMEM, "backward: no memory");
			s->streams = p;
			s->cap = cap;
		}
		s->streams[s->nstreams++] = (struct used_stream){ o->device, o->stream };
	}
	return 0;
}

int share_order_streams(const struct task_share *s, bool end)
{
	int err = 0;

	for (uint32_t i = 0; i < s->nstreams && !err; i++) {
		const struct tensor_streams *f = device_streams(s->streams[i].device);
		void *there = stream_handle(s->streams[i].nr), *here;

		if (!f)
			continue;
		here = f->current(s->streams[i].device);
		err = end ? stream_order(s->streams[i].device, there, here) :
			    stream_order(s->streams[i].device, here, there);
	}
	return err;
}
