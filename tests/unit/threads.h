/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Runs one function in several threads at once. Under `make test-tsan` ThreadSanitizer reports data
 * races; otherwise only the results are checked.
 */
#ifndef TESTS_THREADS_H
#define TESTS_THREADS_H

#include "check.h"

#include <pthread.h>

enum { THREADS = 4 };

struct worker {
	int id;
	bool failed;
	void *(*work)(struct worker *w);
};

static pthread_barrier_t start;

static inline void *begin(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&start);
	w->work(w);
	return NULL;
}

#define expect(w, condition) expect_((w), (condition), #condition, __LINE__)
/*
 * Replaces assert_true() in a worker: cmocka's asserts longjmp(), which is undefined in another
 * thread.
 */
static inline bool expect_(struct worker *w, bool true_, const char *text, int line)
{
	if (!true_) {
		fprintf(stderr, "thread %d, line %d: %s (%s)\n", w->id, line, text,
			tensor_last_error()->text);
		w->failed = true;
	}
	return true_;
}

/* Runs the workers in parallel and waits for them; `meanwhile` runs in the calling thread. */
static inline void with_threads(void *(*work)(struct worker *w), void (*meanwhile)(void))
{
	struct worker workers[THREADS];
	pthread_t thread[THREADS];
	bool failed = false;

	pthread_barrier_init(&start, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .id = i, .work = work };
		assert_int_equal(pthread_create(&thread[i], NULL, begin, &workers[i]), 0);
	}
	pthread_barrier_wait(&start);
	if (meanwhile)
		meanwhile();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		failed |= workers[i].failed;
	}
	pthread_barrier_destroy(&start);
	assert_false(failed);
}

/* The value of a tensor of one element; NaN for NULL. */
static inline double number(tensor *t)
{
	double value = NAN;

	return t && tensor_item(t, &value) == 0 ? value : NAN;
}

#endif
