/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Storages in memory of this process alone, and the buffers that may take their place. */
#ifndef TENSOR_PRIVATE_H
#define TENSOR_PRIVATE_H

#include "storage/storage.h"

/* NULL with the error set. */
struct tensor_storage *private_storage_alloc(size_t nbytes);

/* A buffer that takes the place of private memory, and how that memory is freed at the end. */
struct moved {
	struct cached_buffer *b; /* NULL: not made yet */
	struct tensor_storage *s;
	void *memory;
	bool over;     /* whole pages, which the buffer is mapped over */
	bool mapping;  /* that ends with the buffer's */
	uint8_t class; /* of a block */
	void (*end)(struct moved *m);
	struct moved *next; /* in the list of storages being moved, or of failed ends */
};

#endif
