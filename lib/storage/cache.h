/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Host memory below storages, in three parts: blocks of arenas (heap.h) and mappings of their own
 * (large.h) are private to the process; the provider's buffers can be shared.
 */
#ifndef TENSOR_CACHE_H
#define TENSOR_CACHE_H

#include "storage/provider/provider.h"

#include <time.h>

/* Eight sizes a doubling, whole pages, whole huge pages from one of them up; *class is its number. */
static inline size_t cache_round(size_t n, unsigned *class)
{
	size_t huge = (size_t)2 << 20, granule;
	unsigned msb;

	if (n < 4096)
		n = 4096;
	msb = 63 - (unsigned)__builtin_clzl(n);
	granule = (size_t)1 << (msb - 3);
	if (n >= huge && granule < huge)
		granule = huge;
	if (granule < 4096)
		granule = 4096;
	n = (n + granule - 1) & ~(granule - 1);
	msb = 63 - (unsigned)__builtin_clzl(n);
	*class = (msb - 12) * 8 + (unsigned)((n >> (msb - 3)) & 7);
	return n;
}

/* How long freed memory waits for reuse before the kernel gets it back. */
#define CACHE_WARM_MS 10000

static inline int64_t cache_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Bytes that each part may keep free. */
uint64_t cache_limit(void);
/* Before an ENOMEM: everything that is free goes back. */
void cache_trim_all(void);
/* Requests for more than a block: did one that was free serve it? */
void cache_count(bool hit);

/* ---- buffers of the provider (cache.c) ---- */

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

/* ---- private memory (private.c) ---- */

struct tensor_storage *private_storage_alloc(size_t nbytes);
/* Gives the blocks that this thread keeps to the heap. */
void private_flush(struct tensor_thread *th);

/* ---- from private to shareable (shareable.c) ---- */

/* A buffer that took the place of private memory, and what is to be done with that at the end. */
struct moved {
	struct cached_buffer *b; /* NULL: not made yet */
	struct tensor_storage *s;
	void *memory;
	bool over;     /* whole pages, which the buffer lies over */
	bool mapping;  /* that ends with the buffer's */
	uint8_t class; /* of a block */
	void (*end)(struct moved *m);
	struct moved *next; /* see moved_trim() */
};

/* Tries again what the end of a storage could not do at the limit of mappings. */
void moved_trim(void);

/* Another thread may be moving s at the moment: it sets the rest before the ops. */
static inline const struct storage_ops *storage_ops_of(const struct tensor_storage *s)
{
	return __atomic_load_n(&s->ops, __ATOMIC_ACQUIRE);
}

/* The buffer of a storage that was moved into one, or NULL. */
struct tensor_buffer *moved_buffer(struct tensor_storage *s);

#endif
