/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Private memory above BLOCK_MAX: one mapping each, with huge pages if it is large enough. Freed
 * mappings are kept for reuse by the same rounded size, at most ten seconds.
 */
#ifndef TENSOR_LARGE_H
#define TENSOR_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	void *map;
	size_t size;			     /* bytes, rounded */
	struct mapping *next, **link;	     /* link in the list of free mappings of this size */
	struct mapping *newer, **newer_link; /* links in the list of free mappings by age */
	int64_t when;			     /* ms: time when it was freed */
};

/* A mapping of at least n bytes; NULL if there is no memory. */
struct mapping *large_take(size_t n);
void large_give(struct mapping *m);
/* Removes a mapping from the lists without munmap(): another owner has its memory now. */
void large_lose(struct mapping *m);
/* Adds the bytes of used and free mappings. */
void large_stats(uint64_t *used, uint64_t *cached);
/* As heap_trim(). */
void large_trim(bool now);
void large_lock(void);
void large_unlock(void);

#endif
