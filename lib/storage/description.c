// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Allocation of struct tensor_storage, without its memory. */
#include "storage/storage.h"

#include "base/error.h"
#include "storage/magazine.h"

struct tensor_storage *storage_alloc_struct(void)
{
	struct tensor_storage *s = block_take(CLASS_STORAGE);

	if (unlikely(!s)) {
		tensor_fail(ENOMEM, "no memory for a storage's description");
		return NULL;
	}
	atomic_init(&s->refs, 1);
	atomic_init(&s->version, 0);
	s->readonly = s->buffer_counts = false;
	s->used = 0;
	s->previous = NULL;
	return s;
}

void storage_free_struct(struct tensor_storage *s)
{
	atomic_store_explicit(&s->refs, 0, memory_order_relaxed); /* see tensor_live_counts() */
	block_give(CLASS_STORAGE, s);
}

TENSOR_EXPORT void tensor_storage_free(struct tensor_storage *s)
{
	struct tensor_storage *previous = s->previous;

	s->ops->free(s);
	storage_free_struct(s);
	if (unlikely(previous))
		storage_put(previous);
}
