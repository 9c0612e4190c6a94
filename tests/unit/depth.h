/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the tests of depth: a thread with a small stack, and chains of operators. */
#ifndef TESTS_DEPTH_H
#define TESTS_DEPTH_H

#include "autograd.h"

#include <pthread.h>

/* AddressSanitizer needs more stack for one call than a recursion of some depth without it. */
#if defined(__SANITIZE_ADDRESS__)
enum { DEPTH = 100000, STACK = 512 * 1024 };
#elif defined(__SANITIZE_THREAD__)
enum { DEPTH = 50000, STACK = 64 * 1024 };
#else
enum { DEPTH = 1000000, STACK = 64 * 1024 };
#endif

/* ---- a thread with a small stack ---- */

struct job {
	bool (*work)(void);
	bool done;
};

/* An assert of cmocka cannot longjmp() out of a thread. */
#define expect(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
				tensor_last_error()->text);                         \
			return false;                                               \
		}                                                                   \
	} while (0)

static inline void *do_job(void *arg)
{
	struct job *j = arg;

	j->done = j->work();
	return NULL;
}

static inline void on_a_small_stack(void **state)
{
	struct job j = { .work = *state };
	struct tensor_live_counts before, after;
	pthread_attr_t attr;
	pthread_t thread;

	tensor_live_counts(&before);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, do_job, &j), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	assert_true(j.done);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

/* ---- chains ---- */

/* The next tensor of a chain, in the open scope. */
typedef tensor *(*link_fn)(tensor *y, int i);

/* The end of a chain of n links that begins at x, owned; NULL after a failure. */
static inline tensor *chain(tensor *x, link_fn next, int n)
{
	tensor *y = tensor_retain(x);

	for (int i = 0; y && i < n; i++)
		tensor_scope {
			tensor *t = tensor_retain(next(y, i));

			tensor_release(y);
			y = t;
		}
	return y;
}

static inline tensor *negate(tensor *y, int i)
{
	(void)i;
	return tensor_neg(y);
}

/* Both elements are this value. */
static inline bool has_value(tensor *t, double value)
{
	double got[2] = { NAN, NAN };

	tensor_scope {
		tensor *d = t ? tensor_to(tensor_detach(t), F64) : NULL;

		if (d && tensor_numel(d) == 2)
			tensor_copy_to(d, got, sizeof(got));
	}
	return fabs(got[0] - value) < 1e-4 && fabs(got[1] - value) < 1e-4;
}

static inline tensor *ones_leaf(void)
{
	tensor *x = tensor_ones(TENSOR_INTS(2), F32);

	return x && tensor_set_requires_grad(x, true) == 0 ? x : NULL;
}

/* Backward through the whole chain, the gradient of x, and the release of the graph. */
static inline bool backward_of(tensor *x, tensor *y, double gradient)
{
	expect(y);
	tensor_scope
		expect(tensor_backward(tensor_sum(y)) == 0);
	tensor_release(y);
	expect(has_value(tensor_grad(x), gradient));
	return true;
}

#define ROW(work)                                                 \
	{                                                         \
		"deep_" #work, on_a_small_stack, NULL, NULL, work \
	}

#endif
