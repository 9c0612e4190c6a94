// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions that the host calls when queued work is done: they release memory that a copy or another library's tensor used. */
#include "kernels/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <tensor/binding.h>

struct later {
	struct later *next;  /* of the same stream, queued later */
	struct later *last;  /* of a stream's first entry */
	struct later *other; /* of a stream's first entry: that of another stream */
	void (*fn)(void *arg);
	void *arg;
	cudaEvent_t done;
	cudaStream_t stream;
	int device;
};

/* The first entry of each stream. The others are done after it: thousands may wait. */
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
	struct later *l = *to = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return 0;
	l->stream = c->stream;
	l->device = c->device;
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

static void append_locked(struct later *l)
{
	struct later **at = &waiting;

	while (*at && ((*at)->stream != l->stream || (*at)->device != l->device))
		at = &(*at)->other;
	if (*at)
		(*at)->last->next = l;
	else
		*at = l;
	(*at)->last = l;
}

/* Takes the first entry of a stream out. */
static struct later *take_locked(struct later **at)
{
	struct later *l = *at, *next = l->next;

	if (next) {
		next->last = l->last;
		next->other = l->other;
	}
	*at = next ? next : l->other;
	l->next = NULL;
	return l;
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
	append_locked(l);
	unlock_list();
	return 0;
}

/* Functions of other libraries may call this one. The caller's error record stays. */
static void call_all(struct later *l)
{
	const struct tensor_error before = *tensor_last_error();
	struct later *next;

	for (; l; l = next) {
		next = l->next;
		cudaEventDestroy(l->done);
		l->fn(l->arg);
		free(l);
	}
	if (before.code) {
		tensor_set_error(before.code, "%s", before.text);
		tensor_set_error_binding(before.binding);
	} else {
		tensor_clear_error();
	}
}

void cuda_reap(void)
{
	const enum cudaStreamCaptureMode before = cuda_relax();
	struct later *done = NULL, **end = &done, **at = &waiting;

	lock_list();
	while (*at) {
		if (cudaEventQuery((*at)->done) == cudaErrorNotReady) {
			at = &(*at)->other;
			continue;
		}
		*end = take_locked(at);
		end = &(*end)->next;
	}
	unlock_list();
	cudaGetLastError(); /* clears cudaErrorNotReady */
	cuda_unrelax(before);
	if (done)
		call_all(done);
}

int cuda_quiesce(const char *op, int device)
{
	struct cuda_call c;
	int err = cuda_begin(&c, op, device);

	if (err)
		return err;
	err = cuda_end(&c, cuda_wait_device(op, device));
	cuda_reap(); /* after an error of the device, too: nothing uses its memory any more */
	return err;
}
