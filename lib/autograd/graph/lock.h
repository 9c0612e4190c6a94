/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A lock of four bytes for nodes, which are many and rarely contended. 0: free; otherwise the epoch
 * in which it was taken, and whether a thread sleeps. A child of fork() is in another epoch: a lock
 * that was taken before counts as free, because its owner does not exist there.
 */
#ifndef TENSOR_AUTOGRAD_LOCK_H
#define TENSOR_AUTOGRAD_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef _Atomic uint32_t node_lock;

#define NODE_LOCK_TAKEN 1u
#define NODE_LOCK_SLEEP 2u
#define NODE_LOCK_EPOCH 4u

extern uint32_t node_lock_epoch; /* a multiple of NODE_LOCK_EPOCH; changes in a child only */
void node_lock_wait(node_lock *l);

/*
 * A thread that waits for long calls begin(), and end() after it has the lock, if begin() returned true: it may be one that
 * the owner of the lock waits for. Set at load.
 */
extern struct node_lock_waits {
	bool (*begin)(void);
	void (*end)(void);
} node_lock_waits;

static inline void node_lock_take(node_lock *l)
{
	uint32_t free = 0;

	if (!atomic_compare_exchange_strong_explicit(l, &free, node_lock_epoch | NODE_LOCK_TAKEN,
						     memory_order_acquire, memory_order_relaxed))
		node_lock_wait(l);
}

/* False if another thread, or this one, has the lock. */
static inline bool node_lock_try(node_lock *l)
{
	uint32_t free = atomic_load_explicit(l, memory_order_relaxed);

	/* A value of another epoch is that of a thread which does not exist in this process. */
	if (free && (free ^ node_lock_epoch) < NODE_LOCK_EPOCH)
		return false;
	return atomic_compare_exchange_strong_explicit(l, &free, node_lock_epoch | NODE_LOCK_TAKEN,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void node_lock_drop(node_lock *l)
{
	if (atomic_exchange_explicit(l, 0, memory_order_release) & NODE_LOCK_SLEEP)
		syscall(SYS_futex, l, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A lock of the process; no thread holds it during a fork. */
void autograd_lock(void);
void autograd_unlock(void);

#endif
