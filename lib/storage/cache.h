/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Host memory below storages, in three parts: blocks of arenas (heap.h) and mappings of their own
 * (large.h) are private to the process; the provider's buffers can be shared.
 */
#ifndef TENSOR_CACHE_H
#define TENSOR_CACHE_H

#include "storage/provider/provider.h"
#include "storage/size_class.h"

/* A buffer that a storage has to itself, or that waits for one of the same rounded size. */
struct cached_buffer {
	struct tensor_buffer buf;
	struct cached_buffer *next;
};

/* A new buffer, not from those that wait; NULL with the error set. */
struct cached_buffer *buffer_new(size_t size);
/* Counted as used since buffer_new(): the end of one that is not to be reused. */
void buffer_end(struct cached_buffer *b);
struct tensor_storage *buffer_storage_alloc(size_t nbytes);

/* A new host storage, in private memory or in a buffer. NULL with the error set. */
struct tensor_storage *cache_alloc(size_t nbytes, bool shareable);

#endif
