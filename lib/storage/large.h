/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Private memory of this process above BLOCK_MAX: a mapping each, of huge pages where it has their size.
 * Freed ones wait for the next of their rounded size, for ten seconds at most.
 */
#ifndef TENSOR_LARGE_H
#define TENSOR_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	void *map;
	size_t size;			     /* bytes, rounded */
	struct mapping *next, **link;	     /* free ones of the same size */
	struct mapping *newer, **newer_link; /* free ones by age */
	int64_t when;			     /* ms: since when it is free */
};

/* At least n bytes; NULL: no memory. */
struct mapping *large_take(size_t n);
void large_give(struct mapping *m);
/* Its memory is in other hands by now: forgets it without a munmap. */
void large_lose(struct mapping *m);
/* Adds bytes. */
void large_stats(uint64_t *used, uint64_t *cached);
/* As heap_trim(). */
void large_trim(bool now);
void large_lock(void);
void large_unlock(void);

#endif
