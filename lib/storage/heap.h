/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Private memory of this process in blocks of size classes, up to BLOCK_MAX bytes. A thread takes and
 * gives blocks in handfuls (its magazines, private.c); nothing here is on the path of a call.
 */
#ifndef TENSOR_HEAP_H
#define TENSOR_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_MAX  ((size_t)1 << 20)
#define BLOCK_PAGE ((size_t)4096) /* blocks of so many bytes and more are whole pages */
#define BLOCK_STEP 64u
#define BLOCK_SMALL 1024u /* up to here in steps of BLOCK_STEP, then four classes a doubling */

static inline unsigned block_class(size_t n)
{
	unsigned msb;

	if (n <= BLOCK_SMALL)
		return n ? (unsigned)((n - 1) / BLOCK_STEP) : 0;
	msb = 63 - (unsigned)__builtin_clzl(n - 1);
	return 16 + (msb - 10) * 4 + (unsigned)((n - 1) >> (msb - 2)) - 4;
}

static inline size_t block_size(unsigned class)
{
	unsigned k = class - 16;
	size_t n = class < 16 ? (class + 1) * BLOCK_STEP : (size_t)(k % 4 + 5) << (k / 4 + 8);

	return n < BLOCK_PAGE ? n : (n + BLOCK_PAGE - 1) & ~(BLOCK_PAGE - 1);
}

/* Bytes of a block of any class. */
size_t heap_size(unsigned class);
/* Up to n blocks of a class into slot[]: how many there were. 0: no memory. */
unsigned heap_take(unsigned class, void **slot, unsigned n);
void heap_give(unsigned class, void *const *slot, unsigned n);
/* Gives what no block uses back to the kernel; with `now`, also what was used until a moment ago. */
void heap_trim(bool now);
/* Calls fn for each block of a class that was ever taken, whether or not it is now, with the lock. */
void heap_each(unsigned class, void (*fn)(void *block, void *ctx), void *ctx);
/* Bytes that were mapped, and those of them in blocks that were taken. */
void heap_stats(uint64_t *mapped, uint64_t *taken);
/* Around a fork. */
void heap_lock(void);
void heap_unlock(void);

#endif
