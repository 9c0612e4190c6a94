/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the tests of backward over the devices of lazy_device.h. */
#ifndef TESTS_DEVICES_H
#define TESTS_DEVICES_H

#include "autograd.h"
#include "lazy_device.h"

#define CPU TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)

/* Asserts of cmocka longjmp(), which another thread cannot do: hooks count failures. */
static atomic_int wrong;
#define expect_here(condition)                                                      \
	do {                                                                        \
		if (!(condition)) {                                                 \
			wrong++;                                                    \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
				tensor_last_error()->text);                         \
		}                                                                   \
	} while (0)

static inline tensor *on(int device, tensor *t)
{
	return ok(tensor_to(t, LAZY(device)));
}

static inline tensor *cpu(tensor *t)
{
	return ok(tensor_to(t, CPU));
}

static inline int begin(void **state)
{
	wrong = 0;
	return 0;
}

/* All work is done, and no memory of a device is left. */
static inline int end(void **state)
{
	assert_int_equal(wrong, 0);
	for (int i = 0; i < LAZY_DEVICES; i++) {
		assert_int_equal(lazy_drain(&lazy[i]), 0);
		assert_int_equal(lazy[i].events, 0);
	}
	return 0;
}

/* Two threads wait here for each other. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int arrived;
} meeting = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static inline bool meet(int n)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	pthread_mutex_lock(&meeting.lock);
	meeting.arrived++;
	pthread_cond_broadcast(&meeting.changed);
	while (meeting.arrived < n && !err)
		err = pthread_cond_timedwait(&meeting.changed, &meeting.lock, &until);
	pthread_mutex_unlock(&meeting.lock);
	return !err;
}

static inline tensor *meet_there(tensor *grad, void *ctx)
{
	expect_here(meet(2));
	return grad;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
