/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A trim of device memory that lasts as long as a test wants: the emulation trim_calls a function before memory is returned. */
#ifndef TENSOR_TESTS_CUDA_TRIM_H
#define TENSOR_TESTS_CUDA_TRIM_H

#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#define TRIM_BYTES ((int64_t)40 << 20)

static __typeof__(&cuda_host_before_free) trim_before_free;
static sem_t trim_entered, trim_leave; /* the first call that returns memory */
static atomic_int trim_calls;
static atomic_bool trim_late; /* the test itself has waited for that call */

/* Far more than an allocation takes, and less than a test may take. */
static inline bool trim_wait(sem_t *s)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	while (sem_timedwait(s, &end))
		if (errno != EINTR)
			return false;
	return true;
}

static inline void trim_takes_long(void)
{
	if (atomic_fetch_add(&trim_calls, 1))
		return;
	sem_post(&trim_entered);
	trim_late = !trim_wait(&trim_leave);
}

static inline bool trim_is_emulated(void)
{
	trim_before_free = emulation("cuda_host_before_free");
	return trim_before_free;
}

static inline void *trim_cache(void *unused)
{
	return (void *)(intptr_t)tensor_cuda_memory_trim(0);
}

/* A thread that trims cuda:0 and stops while it returns TRIM_BYTES. */
static inline pthread_t trim_begin(void)
{
	pthread_t thread;
	tensor *t;

	assert_done(tensor_cuda_memory_trim(0));
	t = tensor_empty(TENSOR_SHAPE(TRIM_BYTES),
			 TENSOR_OPTIONS(.dtype = TENSOR_U8, .device = TENSOR_DEVICE_CUDA(0)));
	assert_non_null(t);
	tensor_release(t);
	sem_init(&trim_entered, 0, 0);
	sem_init(&trim_leave, 0, 0);
	trim_calls = 0;
	trim_late = false;
	trim_before_free(trim_takes_long);
	assert_int_equal(pthread_create(&thread, NULL, trim_cache, NULL), 0);
	assert_true(trim_wait(&trim_entered));
	return thread;
}

static inline void trim_end(pthread_t thread)
{
	void *result;

	sem_post(&trim_leave);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	trim_before_free(NULL);
	assert_false(trim_late);
	sem_destroy(&trim_entered);
	sem_destroy(&trim_leave);
}

#endif
