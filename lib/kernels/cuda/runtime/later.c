// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* What the host does when queued work is done: it releases memory that a copy or another library's tensor used. */
#include "kernels/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>

struct later {
	struct later *next;
	void (*fn)(void *arg);
	void *arg;
	cudaEvent_t done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct later *waiting;

static void lock_list(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_list(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void later_init(void)
{
	pthread_atfork(lock_list, unlock_list, unlock_list);
}

/* An entry whose event is recorded in the call's stream. 0 or -errno; NULL without memory. */
static int entry_new(const struct cuda_call *c, struct later **to)
{
	struct later *l = *to = malloc(sizeof(*l));
	int err;

	if (!l)
		return 0;
	err = cuda_check(c->op, cudaEventCreateWithFlags(&l->done, cudaEventDisableTiming));
	if (err)
		goto free_entry;
	err = cuda_check(c->op, cudaEventRecord(l->done, c->stream));
	if (!err)
		return 0;
	cudaEventDestroy(l->done);
free_entry:
	free(l);
	*to = NULL;
	return err;
}

int cuda_call_later(const struct cuda_call *c, void (*fn)(void *arg), void *arg)
{
	struct later *l;
	int err = entry_new(c, &l);

	if (!l) {
		const int failed = cuda_check(c->op, cudaStreamSynchronize(c->stream));

		fn(arg);
		return err ? err : failed;
	}
	l->fn = fn;
	l->arg = arg;
	lock_list();
	l->next = waiting;
	waiting = l;
	unlock_list();
	return 0;
}

void cuda_reap(void)
{
	const enum cudaStreamCaptureMode before = cuda_relax();
	struct later *done = NULL, **at = &waiting, *l;

	lock_list();
	while ((l = *at)) {
		if (cudaEventQuery(l->done) == cudaErrorNotReady) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		l->next = done;
		done = l;
	}
	unlock_list();
	cudaGetLastError(); /* clears cudaErrorNotReady */
	cuda_unrelax(before);
	while ((l = done)) {
		done = l->next;
		cudaEventDestroy(l->done);
		l->fn(l->arg);
		free(l);
	}
}
