/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A lock of four bytes, for the many nodes of a graph of which hardly any is ever contended:
 * 0 free, 1 taken, 2 taken and somebody sleeps.
 */
#ifndef TENSOR_AUTOGRAD_LOCK_H
#define TENSOR_AUTOGRAD_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef _Atomic uint32_t node_lock;

static inline void node_lock_take(node_lock *l)
{
	uint32_t state = 0;

	if (atomic_compare_exchange_strong_explicit(l, &state, 1, memory_order_acquire,
						    memory_order_relaxed))
		return;
	while (atomic_exchange_explicit(l, 2, memory_order_acquire))
		syscall(SYS_futex, l, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void node_lock_drop(node_lock *l)
{
	if (atomic_exchange_explicit(l, 0, memory_order_release) == 2)
		syscall(SYS_futex, l, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
