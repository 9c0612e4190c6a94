// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Locks of nodes and of autograd, and their state after a fork. */
#include "autograd/graph/lock.h"

#include "base/init.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

uint32_t node_lock_epoch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void autograd_lock(void)
{
	pthread_mutex_lock(&lock);
}

void autograd_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	node_lock_epoch += NODE_LOCK_EPOCH;
	pthread_mutex_unlock(&lock);
}

/* Operators are called with the lock held, so at a fork it is taken before all others. */
INIT(INIT_AUTOGRAD_LOCK) static void watch_forks(void)
{
	pthread_atfork(autograd_lock, autograd_unlock, in_child);
}

static bool no_begin(void)
{
	return false;
}

struct node_lock_waits node_lock_waits = { .begin = no_begin };

/* True if the lock was not released for 10 ms. */
static bool sleep_on(node_lock *l, uint32_t value)
{
	const struct timespec most = { .tv_nsec = 10000000 };

	return syscall(SYS_futex, l, FUTEX_WAIT_PRIVATE, value, &most, NULL, 0) < 0 &&
	       errno == ETIMEDOUT;
}

void node_lock_wait(node_lock *l)
{
	const uint32_t mine = node_lock_epoch | NODE_LOCK_TAKEN | NODE_LOCK_SLEEP;
	uint32_t seen = atomic_load_explicit(l, memory_order_relaxed);
	bool began = false;

	for (;;) {
		/*
		 * A value of another epoch was written by a thread that does not exist in this
		 * process.
		 */
		bool free = !seen || (seen ^ mine) >= NODE_LOCK_EPOCH;

		if (!free && seen == mine) {
			if (sleep_on(l, mine) && !began)
				began = node_lock_waits.begin();
			seen = atomic_load_explicit(l, memory_order_relaxed);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(l, &seen, mine, memory_order_acquire,
							  memory_order_relaxed)) {
			if (free)
				break;
			seen = mine;
		}
	}
	if (began)
		node_lock_waits.end();
}
