// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "kernels/lapack/openblas.h"

#include "base/memory_left.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { BUFFERS_MAX = 32, FORK_WAITS_MS = 100 };
#define BUFFER_BYTES ((size_t)128 << 20)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void *(*alloc)(int position);
	void (*free)(void *buffer);
	int threads;	      /* that may call it at once */
	int workers;	      /* threads of its own, which take a buffer each when they start */
	int buffers, running; /* threads between begin and end */
	bool cut_off;	      /* by a fork, in the child */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- fork ---- */

/* No thread begins while the lock is held; those that run have some time to end. */
static void before_fork(void)
{
	struct timespec until;

	pthread_mutex_lock(&gate.lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FORK_WAITS_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while (gate.running && !pthread_cond_timedwait(&gate.changed, &gate.lock, &until))
		;
}

static void in_parent(void)
{
	pthread_mutex_unlock(&gate.lock);
}

static void in_child(void)
{
	gate.cut_off = gate.cut_off || gate.running;
	gate.running = 0;
	pthread_cond_init(&gate.changed, NULL);
	pthread_mutex_unlock(&gate.lock);
}

/* Not when OpenBLAS is loaded: a fork that has begun does not call handlers that are registered meanwhile. */
__attribute__((constructor)) static void close_in_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- buffers ---- */

/* The variant without threads computes wrong numbers if two threads call it at once. */
void openblas_find(void *library)
{
	int (*parallel)(void), (*workers)(void);

	*(void **)&parallel = dlsym(library, "openblas_get_parallel");
	*(void **)&workers = dlsym(library, "openblas_get_num_threads");
	if (!parallel || !workers)
		return;
	gate.threads = parallel() ? BUFFERS_MAX : 1;
	gate.workers = parallel() ? workers() : 0;
	*(void **)&gate.alloc = dlsym(library, "blas_memory_alloc");
	*(void **)&gate.free = dlsym(library, "blas_memory_free");
	if (!gate.free)
		gate.alloc = NULL;
}

/*
 * All are taken before one is given back, so that each is another one. For each there must also be memory for the
 * buffers of the workers.
 */
static void reserve_buffers(void)
{
	size_t bytes = BUFFER_BYTES * (1 + (size_t)gate.workers);
	int wanted = tensor_get_num_threads(), n = 0;
	void *taken[BUFFERS_MAX];

	if (wanted > gate.threads)
		wanted = gate.threads;
	while (n < wanted && memory_is_left(bytes))
		taken[n++] = gate.alloc(0);
	for (int i = 0; i < n; i++)
		gate.free(taken[i]);
	gate.buffers = n;
}

int openblas_begin(void)
{
	int err = 0;

	if (!gate.alloc)
		return 0;
	pthread_mutex_lock(&gate.lock);
	if (!gate.buffers)
		reserve_buffers();
	while (gate.buffers && gate.running >= gate.buffers)
		pthread_cond_wait(&gate.changed, &gate.lock);
	if (gate.cut_off)
		err = -EDEADLK;
	else if (!gate.buffers)
		err = -ENOMEM;
	else
		gate.running++;
	pthread_mutex_unlock(&gate.lock);
	return err;
}

void openblas_end(void)
{
	if (!gate.alloc)
		return;
	pthread_mutex_lock(&gate.lock);
	gate.running--;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}
