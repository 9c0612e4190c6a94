/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Limits and counters that the caches of memory share, and the release of all that is free when
 * memory runs short.
 */
#ifndef TENSOR_TRIM_H
#define TENSOR_TRIM_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* How long freed memory is kept for reuse before it returns to the kernel. */
#define CACHE_WARM_MS 10000

static inline int64_t cache_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Maximum of free bytes in each cache: TENSOR_CACHE_LIMIT, default a quarter of the memory. */
uint64_t cache_limit(void);
/* Counts a request for a mapping or a buffer; hit: a cache served it. */
void cache_count(bool hit);
/* Reads the counters. */
void cache_counts(uint64_t *hits, uint64_t *misses);

/*
 * The caches in the order in which they are emptied: each may fill those after it. TRIM_MOVED: memory
 * that a buffer replaced (struct moved). TRIM_PLANS: tables of Fourier transforms.
 */
enum trim_stage {
	TRIM_PLANS,
	TRIM_MAGAZINES,
	TRIM_MOVED,
	TRIM_HEAP,
	TRIM_LARGE,
	TRIM_BUFFERS,
	TRIM_STAGES
};

/* Registers the function of a stage. */
void trim_register(enum trim_stage stage, void (*fn)(void));
/* Returns all free memory to the kernel. Callers hold no lock of a cache. */
void trim_all(void);

#endif
