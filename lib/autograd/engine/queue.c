// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Ready queues and threads of devices (queue.h). One lock protects all of them; no function is called with it held. */
#include "autograd/engine/queue.h"

#include "autograd/engine/heap.h"
#include "autograd/graph/lock.h"
#include "autograd/graph/stream.h"

#include "base/init.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Never freed: a sleeping thread refers to it. */
struct device_queue {
	tensor_device device;
	queue_run run;
	pthread_cond_t work;
	struct node_heap ready;
	unsigned active; /* threads that serve the queue; those that lent it are not counted */
	struct device_queue *next;
};

static struct {
	pthread_mutex_t lock;
	struct device_queue *first;
} queues = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- threads ---- */

static void *serve(void *arg)
{
	const uint32_t epoch = node_lock_epoch;
	struct device_queue *q = arg;
	struct heap_node e;

	pthread_mutex_lock(&queues.lock);
	for (;;) {
		while (!q->ready.n && q->active == 1)
			pthread_cond_wait(&q->work, &queues.lock);
		/* The thread that lent the queue has returned. */
		if (q->active > 1)
			break;
		e = heap_pop(&q->ready);
		pthread_mutex_unlock(&queues.lock);
		q->run(e.task, e.index);
		/* The node forked, and this is the child, whose only thread ends here. */
		if (epoch != node_lock_epoch)
			return NULL;
		pthread_mutex_lock(&queues.lock);
	}
	q->active--;
	pthread_mutex_unlock(&queues.lock);
	return NULL;
}

/* With the lock held. 0, or an error number. */
static int start_thread(struct device_queue *q)
{
	char device[32], name[16];
	pthread_t t;
	int err = pthread_create(&t, NULL, serve, q);

	if (err)
		return err;
	snprintf(name, sizeof(name), "tensor-%.8s", device_name(q->device, device, sizeof(device)));
	pthread_setname_np(t, name);
	pthread_detach(t);
	q->active++;
	return 0;
}

static struct device_queue *find(tensor_device device)
{
	struct device_queue *q = queues.first;

	while (q && !same_device(q->device, device))
		q = q->next;
	return q;
}

static struct device_queue *add(tensor_device device, queue_run run)
{
	struct device_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->device = device;
	q->run = run;
	pthread_cond_init(&q->work, NULL);
	q->next = queues.first;
	queues.first = q;
	return q;
}

struct device_queue *queue_start(tensor_device device, queue_run run)
{
	struct device_queue *q;
	int err = 0;

	pthread_mutex_lock(&queues.lock);
	q = find(device);
	if (!q)
		q = add(device, run);
	if (!q)
		err = ENOMEM;
	else if (!q->active)
		err = start_thread(q);
	pthread_mutex_unlock(&queues.lock);
	if (!err)
		return q;
	tensor_fail(err, "backward: no thread for a device: %s", strerror(err));
	return NULL;
}

struct device_queue *queue_of(tensor_device device)
{
	struct device_queue *q;

	pthread_mutex_lock(&queues.lock);
	q = find(device);
	pthread_mutex_unlock(&queues.lock);
	return q;
}

int queue_lend(struct device_queue *q)
{
	int err = 0;

	pthread_mutex_lock(&queues.lock);
	if (q->active == 1)
		err = start_thread(q);
	if (!err)
		q->active--;
	pthread_mutex_unlock(&queues.lock);
	return err ? tensor_fail(err, "backward: no thread for a device: %s", strerror(err)) : 0;
}

void queue_return(struct device_queue *q)
{
	pthread_mutex_lock(&queues.lock);
	q->active++;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&queues.lock);
}

/*
 * The thread of a device waits for the lock of a node or checkpoint. Its owner may wait for nodes of the device: in a
 * function that it runs with the lock held, a backward.
 */
static bool lend_while_locked(void)
{
	const struct autograd_thread *at = thread()->autograd;
	struct device_queue *q = at && at->device.type ? queue_of(at->device) : NULL;
	const struct tensor_error error = *tensor_last_error();
	int err = q ? queue_lend(q) : 0;

	if (err)
		thread()->error = error;
	return q && !err;
}

static void return_after_lock(void)
{
	queue_return(queue_of(((const struct autograd_thread *)thread()->autograd)->device));
}

/* ---- nodes ---- */

int queue_push(struct device_queue *q, struct task *k, uint32_t index)
{
	bool space;

	pthread_mutex_lock(&queues.lock);
	space = heap_push(&q->ready, k, index);
	pthread_cond_signal(&q->work);
	pthread_mutex_unlock(&queues.lock);
	return space ? 0 : tensor_fail(ENOMEM, "backward: no memory for a device's queue");
}

uint32_t queue_drop(const struct task *k)
{
	uint32_t n = 0;

	pthread_mutex_lock(&queues.lock);
	for (struct device_queue *q = queues.first; q; q = q->next)
		n += heap_drop(&q->ready, k);
	pthread_mutex_unlock(&queues.lock);
	return n;
}

/* ---- fork ---- */

static void lock_queues(void)
{
	pthread_mutex_lock(&queues.lock);
}

static void unlock_queues(void)
{
	pthread_mutex_unlock(&queues.lock);
}

static void forget_threads(void)
{
	for (struct device_queue *q = queues.first; q; q = q->next) {
		pthread_cond_init(&q->work, NULL);
		q->active = 0;
		q->ready.n = 0;
	}
	pthread_mutex_unlock(&queues.lock);
}

INIT(INIT_DEVICE_QUEUES) static void set_up(void)
{
	pthread_atfork(lock_queues, unlock_queues, forget_threads);
	node_lock_waits = (struct node_lock_waits){ lend_while_locked, return_after_lock };
}
