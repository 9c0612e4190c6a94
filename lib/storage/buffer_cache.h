/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Host memory of storages: blocks of arenas (heap.h) and separate mappings (large.h) are private to
 * the process; buffers of the provider can be shared.
 */
#ifndef TENSOR_CACHE_H
#define TENSOR_CACHE_H

#include "storage/provider/provider.h"
#include "storage/size_class.h"

/* A buffer of one storage, or a cached buffer. */
struct cached_buffer {
	struct tensor_buffer buf;
	struct cached_buffer *next;
};

/* A new buffer, not one of the cache; NULL with the error set. */
struct cached_buffer *buffer_new(size_t size);
/* Closes a buffer of buffer_new() that must not be reused. */
void buffer_end(struct cached_buffer *b);
struct tensor_storage *buffer_storage_alloc(size_t nbytes);

/* A new host storage, in private memory or in a buffer; NULL with the error set. */
struct tensor_storage *cache_alloc(size_t nbytes, bool shareable);

#endif
