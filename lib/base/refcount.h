/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Reference counts. While the process has a single thread (the C library knows), plain loads and
 * stores replace locked instructions, which would be most of the cost of making a view. The versions
 * of storages are counted in the same way.
 */
#ifndef TENSOR_REFCOUNT_H
#define TENSOR_REFCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/single_threaded.h>

static inline void ref_get(atomic_int *refs)
{
	typedef int __attribute__((may_alias)) plain;

	/* One instruction; a relaxed load and store would be three. */
	if (__libc_single_threaded)
		++*(plain *)refs;
	else
		atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

/* Drops a reference; true if it was the last one. A count of one is not written: no other thread
 * can have a reference to add. */
static inline bool ref_put(atomic_int *refs)
{
	int n = atomic_load_explicit(refs, memory_order_acquire);

	if (n == 1)
		return true;
	if (__libc_single_threaded) {
		atomic_store_explicit(refs, n - 1, memory_order_relaxed);
		return false;
	}
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

#endif
