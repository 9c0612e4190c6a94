/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Private memory in blocks of size classes, up to BLOCK_MAX bytes. Threads take and return several
 * blocks at once (magazine.h), so these functions are not on the path of a usual call.
 */
#ifndef TENSOR_HEAP_H
#define TENSOR_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_MAX  ((size_t)1 << 20)
#define BLOCK_PAGE ((size_t)4096) /* blocks of this size and larger are whole pages */
#define BLOCK_STEP 64u
#define HEAP_UNIT  ((size_t)16 << 10) /* bytes of a unit; a run consists of units */
/* Sizes up to this one are multiples of BLOCK_STEP, larger ones have four classes per doubling. */
#define BLOCK_SMALL 1024u

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

/* Size of a block of the class, in bytes. */
size_t heap_size(unsigned class);
/* Stores up to n blocks of a class in slot[]. Returns their number; 0 if there is no memory. */
unsigned heap_take(unsigned class, void **slot, unsigned n);
void heap_give(unsigned class, void *const *slot, unsigned n);
/*
 * Returns unused memory to the kernel: memory that has been free for ten seconds, or all with now.
 */
void heap_trim(bool now);

/* The run of a block. */
struct heap_place {
	char *base; /* address of block 0 */
	unsigned blocks, index;
	void **note; /* data of core/referrers.c; initially NULL */
};

/* Frees the note of a run that ends; called with the lock held. Set by core/referrers.c. */
extern void (*heap_note_free)(unsigned class, void *note, unsigned blocks);

/* The run of p, any pointer; false if p is not a block of this class. The caller holds the lock. */
bool heap_find(const void *p, unsigned class, struct heap_place *at);
/*
 * Calls fn, with the lock held, for the first block of each run of the class in the next arena.
 * *arena is 0 at first. False if no arena is left.
 */
bool heap_next_arena(uint64_t *arena, unsigned class, void (*fn)(void *first, void *ctx),
		     void *ctx);
/* Whether p is in an arena. Without the lock: the caller keeps the block. */
bool heap_has(const void *p);
/* A flag of the unit of a tensor, false in a new run (referrers.h). */
static inline _Atomic bool *heap_mark(const void *block)
{
	return (_Atomic bool *)(((uintptr_t)block | (HEAP_UNIT - 1)) - 63);
}

/* Bytes mapped, and bytes of blocks in use. */
void heap_stats(uint64_t *mapped, uint64_t *taken);
/* Fork handlers. */
void heap_lock(void);
void heap_unlock(void);

#endif
