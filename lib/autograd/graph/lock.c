// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Locks of nodes and of autograd, and their state after a fork. */
#include "autograd/graph/lock.h"

#include "base/init.h"

#include <pthread.h>

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

void node_lock_wait(node_lock *l)
{
	const uint32_t mine = node_lock_epoch | NODE_LOCK_TAKEN | NODE_LOCK_SLEEP;
	uint32_t seen = atomic_load_explicit(l, memory_order_relaxed);

	for (;;) {
		/*
		 * A value of another epoch was written by a thread that does not exist in this
		 * process.
		 */
		bool free = !seen || (seen ^ mine) >= NODE_LOCK_EPOCH;

		if (!free && seen == mine) {
			syscall(SYS_futex, l, FUTEX_WAIT_PRIVATE, mine, NULL, NULL, 0);
			seen = atomic_load_explicit(l, memory_order_relaxed);
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(l, &seen, mine, memory_order_acquire,
							  memory_order_relaxed)) {
			if (free)
				return;
			seen = mine;
		}
	}
}
