// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operations that the device has not carried out yet. A thread of the group, the watcher, releases their tensors when it
 * has. If a rank has died, or the time of an operation is over, the watcher aborts NCCL: its kernels would wait for ever,
 * and with them every program that waits for the device.
 */
#include "group/nccl/nccl.h"

#include "core/plugin_tensor.h"

#include <signal.h>
#include <stdlib.h>

#define FIRST_NAP_NS INT64_C(50000)
#define LAST_NAP_NS  INT64_C(5000000)
#define ABORTED_NS   INT64_C(10000000000) /* for the device to end what was aborted */

/* ---- one operation ---- */

struct operation *operation_new(struct nccl *n, const char *name, cudaStream_t stream)
{
	struct operation *o = calloc(1, sizeof(*o));
	int before, err;

	if (!o) {
		tensor_fail(ENOMEM, "%s: no memory", name);
		return NULL;
	}
	o->refs = 1;
	o->name = name;
	o->device = n->device;
	o->stream = stream;
	before = nccl_enter(n->device);
	err = cuda_failed(n->group, cudaEventCreateWithFlags(&o->done, cudaEventDisableTiming),
			  "cudaEventCreateWithFlags");
	nccl_leave(n->device, before);
	if (!err)
		return o;
	free(o);
	return NULL;
}

void operation_put(struct operation *o)
{
	if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
		return;
	if (o->ready)
		cudaEventDestroy(o->ready);
	cudaEventDestroy(o->done);
	tensor_plugin_put(o->parts);
	for (int i = 0; i < 4; i++)
		tensor_plugin_put(o->tensors[i]);
	free(o);
}

/* An error of the device ends what runs on it, too. */
bool operation_is_done(const struct operation *o)
{
	int before = nccl_enter(o->device);
	cudaError_t state = o->recorded ? cudaEventQuery(o->done) : cudaSuccess;

	if (state != cudaSuccess)
		cudaGetLastError();
	nccl_leave(o->device, before);
	return state != cudaErrorNotReady;
}

/* ---- the watcher ---- */

/* Whether the operation does not go on: ends the group with the error. */
static bool has_failed(struct nccl *n, const struct operation *o)
{
	int64_t timeout = n->group->timeout_ns;

	if (nccl_has_ended(n->group))
		return true;
	if (communicator_state(n, o->name) < 0 || host_lost(n, false) < 0)
		return true;
	if (timeout < 0 || nccl_now() - o->since <= timeout)
		return false;
	group_fail_late(n->group, "the device has not carried it out", "");
	return true;
}

/* Takes the first operation out of the list if it is done. */
static struct operation *take_done(struct nccl *n)
{
	struct operation *o = n->running;

	if (!o || !operation_is_done(o))
		return NULL;
	n->running = o->next;
	if (!o->next)
		n->last = &n->running;
	return o;
}

/* Waits for the first operation. False: the device does not end it even after an abort. */
static bool wait_for_first(struct nccl *n)
{
	int64_t nap = FIRST_NAP_NS, aborted = 0;
	struct operation *first = n->running, *o = NULL;

	while (!o) {
		o = take_done(n);
		pthread_mutex_unlock(&n->lock);
		if (!o && !aborted && nap == LAST_NAP_NS && has_failed(n, first)) {
			communicator_abort(n);
			group_leave(n->group);
			aborted = nccl_now();
		}
		operation_put(o);
		if (!o)
			nccl_nap(nap);
		pthread_mutex_lock(&n->lock);
		if (aborted && nccl_now() - aborted > ABORTED_NS)
			return false;
		nap = 2 * nap < LAST_NAP_NS ? 2 * nap : LAST_NAP_NS;
	}
	return true;
}

static void *watcher(void *arg)
{
	struct nccl *n = arg;
	bool goes_on = true;

	pthread_mutex_lock(&n->lock);
	while (goes_on && (n->running || !n->stop))
		if (n->running)
			goes_on = wait_for_first(n);
		else
			pthread_cond_wait(&n->changed, &n->lock);
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* The caller holds lock. */
static void need_watcher(struct nccl *n)
{
	sigset_t all, before;

	if (n->has_watcher)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	n->has_watcher = !pthread_create(&n->watcher, NULL, watcher, n);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- all of them ---- */

static void keep_tensors(struct operation *o, tensor_request *r)
{
	tensor **all[] = { &r->out_tensor, &r->in_tensor, &r->out_packed, &r->in_packed };

	for (int i = 0; i < 4; i++) {
		o->tensors[i] = *all[i];
		*all[i] = NULL;
	}
}

int operation_run(struct nccl *n, struct operation *o, tensor_request *r)
{
	int before = nccl_enter(n->device);
	int err = cuda_failed(n->group, cudaEventRecord(o->done, o->stream), "cudaEventRecord");

	nccl_leave(n->device, before);
	o->recorded = !err;
	o->since = nccl_now();
	keep_tensors(o, r);
	atomic_fetch_add(&o->refs, 1);
	pthread_mutex_lock(&n->lock);
	need_watcher(n);
	if (n->has_watcher) {
		*n->last = o;
		n->last = &o->next;
		pthread_cond_signal(&n->changed);
	}
	pthread_mutex_unlock(&n->lock);
	if (!n->has_watcher) {
		cudaEventSynchronize(o->done);
		operation_put(o);
	}
	return err;
}

void operations_end(struct nccl *n)
{
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
	if (n->has_watcher)
		pthread_join(n->watcher, NULL);
	n->has_watcher = false;
}
