/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The tensors of a storage. Allocating a tensor maintains no list: it marks the unit of the heap
 * that has a new tensor on an older storage. A search first sorts the tensors of marked units into
 * lists by storage.
 */
#ifndef TENSOR_REFERRERS_H
#define TENSOR_REFERRERS_H

#include "core/tensor_impl.h"

#include "storage/heap.h"

/* An entry of the list of a storage. */
struct referrer {
	struct referrer *next, **link; /* link NULL: not in a list */
	const struct tensor_storage *s;
	tensor *t;
};

void referrer_mark_unit(const tensor *t) __attribute__((cold));

/* Marks the unit of t, which uses a storage that another tensor may use. */
static inline void referrer_note(const tensor *t)
{
	if (unlikely(!atomic_load_explicit(heap_mark(t), memory_order_relaxed)))
		referrer_mark_unit(t);
}

/* Marks the owner t of a storage that another tensor uses now. */
void referrer_note_owner(const tensor *t);

/*
 * Stores the list of all tensors on the storage of t. No other thread may use the storage while the
 * list is read. 0, or -ENOMEM.
 */
int referrers_find(tensor *t, const struct referrer **first);

#endif
