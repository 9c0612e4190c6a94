/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Storages in private memory, and the buffers that replace private memory. */
#ifndef TENSOR_PRIVATE_H
#define TENSOR_PRIVATE_H

#include "storage/storage.h"

/* NULL with the error set. */
struct tensor_storage *private_storage_alloc(size_t nbytes);

/* A buffer that replaces private memory, and how to free that memory at the end. */
struct moved {
	struct cached_buffer *b; /* NULL until it is allocated */
	struct tensor_storage *s;
	void *memory;
	bool over;     /* whole pages that the buffer is mapped over */
	bool mapping;  /* private memory that is freed with the buffer */
	uint8_t class; /* of a block */
	void (*end)(struct moved *m);
	struct moved *next; /* link in the list of moves, or of failed releases */
};

#endif
