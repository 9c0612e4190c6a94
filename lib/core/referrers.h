/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Which tensors are on a storage. Making a tensor costs no list: a unit of the heap with a new tensor on
 * an older storage gets a mark, and whoever looks for the tensors of a storage first sorts those of all
 * marked units into lists by storage.
 */
#ifndef TENSOR_REFERRERS_H
#define TENSOR_REFERRERS_H

#include "core/tensor_impl.h"

#include "storage/heap.h"

/* A tensor in the list of its storage. */
struct referrer {
	struct referrer *next, **link; /* link NULL: in no list */
	const struct tensor_storage *s;
	tensor *t;
};

void referrer_mark_unit(const tensor *t) __attribute__((cold));

/* t, a block of the heap, is on a storage on which another tensor may be. */
static inline void referrer_note(const tensor *t)
{
	if (unlikely(!atomic_load_explicit(heap_mark(t), memory_order_relaxed)))
		referrer_mark_unit(t);
}

/* Another tensor got t's storage. */
void referrer_note_owner(const tensor *t);

/* *first: the list of all tensors on t's storage, which no other thread uses; it stays as it is until
 * they do. -ENOMEM. */
int referrers_find(tensor *t, const struct referrer **first);

#endif
