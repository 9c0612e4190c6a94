/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Allocation of blocks through the magazines of the calling thread. */
#ifndef TENSOR_MAGAZINE_H
#define TENSOR_MAGAZINE_H

#include "base/thread.h"

/* Tensors and storages have separate classes, so that core/referrers.c can find them. */
#define CLASS_TENSOR  62u
#define CLASS_STORAGE 63u
/* Bytes of a block of CLASS_TENSOR; core/tensor.c checks that a tensor fits. */
#define TENSOR_BLOCK 384u

/* Blocks that a thread keeps of each class; 0 with TENSOR_DEBUG. */
extern uint8_t magazine_limit[BLOCK_CLASSES];
/* Refills an empty magazine and takes a block; NULL if there is no memory. */
void *magazine_empty(unsigned class, struct magazine *m);
/* Drains half of a full magazine and adds p. */
void magazine_full(unsigned class, struct magazine *m, void *p);

/* A block of the class; NULL if there is no memory. */
static inline void *block_take(unsigned class)
{
	struct magazine *m = &thread()->blocks[class];

	return likely(m->n) ? m->slot[--m->n] : magazine_empty(class, m);
}

static inline void block_give(unsigned class, void *p)
{
	struct magazine *m = &thread()->blocks[class];

	if (likely(m->n < magazine_limit[class]))
		m->slot[m->n++] = p;
	else
		magazine_full(class, m, p);
}

/*
 * As block_give() for a tensor, but delays the reuse until HELD_TENSORS more were freed here. Until
 * then a use of the released tensor is detected: its count is 0 and no operator accepts its key.
 */
void block_hold(void *p);

#endif
