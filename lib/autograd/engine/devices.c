// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tasks with nodes on other devices than the CPU. The thread of a device runs the nodes of the device. The caller runs
 * those of the CPU, and waits while none is ready. If the caller is the thread of a device, because a function of the
 * program that a node called runs a backward, it also runs the nodes of its own device: no other thread has to be free
 * for them. While it waits for a third device, another thread takes its place.
 */
#include "autograd/engine/devices.h"

#include "autograd/engine/path.h"
#include "autograd/engine/queue.h"
#include "autograd/engine/run_node.h"
#include "autograd/engine/share.h"
#include "storage/devices.h"

/* ---- nodes on the threads of devices ---- */

/* Runs the node with the state of the caller's thread. 0, or -errno with the error set. */
static int run_for_caller(struct task *k, uint32_t index)
{
	struct task_share *s = k->share;
	struct autograd_thread *at = autograd_thread(thread());
	const tensor_node *n = k->states[index].node;
	struct tensor_scope_guard scope;
	struct carried mine;
	int err;

	if (!at)
		return -ENOMEM;
	at->device = n->outputs[share_output(n)].device;
	mine = carry_get();
	carry_set(&s->caller);
	scope = tensor_scope_enter();
	tensor_clear_error();
	/* Nodes that it records are later than all others. */
	if (at->seq < s->seq)
		at->seq = s->seq;
	err = task_run_node_in_stream(k, index);
	scope_leave(&scope);
	carry_set(&mine);
	return err;
}

/* The function of the queues' threads. */
static void run_on_device(struct task *k, uint32_t index)
{
	struct task_share *s = k->share;
	const struct autograd_thread *at;
	int err = share_lock(s);

	if (err)
		return;
	err = s->err;
	share_unlock(s);
	if (!err) {
		err = run_for_caller(k, index);
		if (err)
			share_fail(k, err);
	}
	if (share_lock(s) < 0)
		return;
	at = thread()->autograd;
	if (at && at->seq > s->last_seq)
		s->last_seq = at->seq;
	/* The caller may free the task as soon as the lock is released. */
	if (!--s->pending)
		pthread_cond_signal(&s->changed);
	share_unlock(s);
}

/* ---- planning ---- */

/* Starts the thread of the node's device if it needs one. Without threads the caller runs all nodes. */
static void start_thread(struct task_share *s, const tensor_node *n)
{
	tensor_device device = n->outputs[share_output(n)].device;

	if (share_is_own(s, device))
		return;
	/* Work of another thread would not be captured. */
	if (unlikely(device_captures(device))) {
		s->alone = true;
		s->waits = false;
		return;
	}
	s->waits = true;
	if (s->started.type && same_device(s->started, device))
		return;
	s->started = device;
	if (queue_start(device, run_on_device))
		return;
	tensor_clear_error();
	s->alone = true;
	s->waits = false;
}

static bool on_cpu(const tensor_node *n)
{
	return n->outputs[share_output(n)].device.type == TENSOR_CPU;
}

/* A thread that runs all nodes runs the latest one first, as without devices: no other one waits for it. */
static bool several_threads_run(const struct task *k)
{
	tensor_device first = { 0 };

	for (uint32_t i = 0; i < k->n; i++) {
		const tensor_node *n = k->states[i].node;
		tensor_device device = n->outputs[share_output(n)].device;

		if (!k->states[i].needed || n->leaf)
			continue;
		if (share_is_own(k->share, device))
			device = (tensor_device)TENSOR_DEVICE_CPU;
		if (first.type && !same_device(first, device))
			return true;
		first = device;
	}
	return false;
}

static int order_by_paths(struct task *k)
{
	if (!k->share->waits || !several_threads_run(k))
		return 0;
	k->share->paths = heaviest_paths(k);
	return k->share->paths ? 0 : -ENOMEM;
}

int devices_plan(struct task *k)
{
	int err = 0;

	for (uint32_t i = 0; i < k->n && !err; i++) {
		const struct node_state *s = &k->states[i];

		if ((!s->needed && s->capture < 0) || on_cpu(s->node))
			continue;
		if (!k->share)
			k->share = share_new();
		if (!k->share)
			return -ENOMEM;
		err = share_add_streams(k->share, s->node);
		if (!err && !s->node->leaf)
			start_thread(k->share, s->node);
	}
	return !err && k->share ? order_by_paths(k) : err;
}

/* ---- the caller ---- */

/* Runs nodes of the caller until none is left on any thread, or one failed. */
static int run_own(struct task *k)
{
	struct task_share *s = k->share;
	int err = share_lock(s);

	while (!err && !s->err && (s->ready.n || s->pending)) {
		uint32_t index;

		if (!s->ready.n) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		index = heap_pop(&s->ready).index;
		share_unlock(s);
		err = task_run_node_in_stream(k, index);
		if (err)
			share_fail(k, err);
		err = share_lock(s);
	}
	if (!err)
		share_unlock(s);
	return err;
}

/* After a failure: drops queued nodes and waits for those that run. */
static int end_others(struct task *k)
{
	struct task_share *s = k->share;
	int err = share_lock(s);

	if (err)
		return err;
	s->pending -= queue_drop(k);
	while (s->pending)
		pthread_cond_wait(&s->changed, &s->lock);
	err = s->err;
	share_unlock(s);
	return err;
}

static int run_and_wait(struct task *k, uint32_t nroots)
{
	struct task_share *s = k->share;
	int err = share_order_streams(s, false);

	if (!err)
		err = task_push_roots(k, nroots);
	if (err)
		share_fail(k, err);
	else
		err = run_own(k);
	return end_others(k) ?: err;
}

int devices_run(struct task *k, uint32_t nroots)
{
	struct task_share *s = k->share;
	struct tensor_thread *th = thread();
	struct autograd_thread *at = th->autograd;
	struct device_queue *lent = s->waits && s->own.type ? queue_of(s->own) : NULL;
	struct tensor_error error;
	int err = lent ? queue_lend(lent) : 0, streams;

	if (err)
		return err;
	s->seq = s->last_seq = at->seq;
	err = run_and_wait(k, nroots);
	if (lent)
		queue_return(lent);
	if (at->seq < s->last_seq)
		at->seq = s->last_seq;
	if (s->err)
		th->error = s->error;
	/* Also after a failure: leaves may have changed. */
	error = th->error;
	streams = share_order_streams(s, true);
	if (err)
		th->error = error;
	return err ?: streams;
}
