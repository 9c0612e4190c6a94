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

#define BLOCK_MAX   ((size_t)1 << 20)
#define BLOCK_PAGE  ((size_t)4096) /* blocks of so many bytes and more are whole pages */
#define BLOCK_STEP  64u
#define HEAP_UNIT   ((size_t)16 << 10) /* of memory that a run of blocks of one class consists of */
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

/* The run that a block is in. */
struct heap_place {
	char *base; /* of block 0 */
	unsigned blocks, index;
	void **note; /* kept beside the run by core/referrers.c; NULL at first */
};

/* Called with the lock for the note of a run that ends. Set by core/referrers.c. */
extern void (*heap_note_free)(unsigned class, void *note, unsigned blocks);

/* With the lock. p may be anything; false: it is no block of this class. */
bool heap_find(const void *p, unsigned class, struct heap_place *at);
/* Calls fn, with the lock, for the first block of each run of the class in the next arena, from *arena on,
 * which is 0 at first. False: there is none. */
bool heap_next_arena(uint64_t *arena, unsigned class, void (*fn)(void *first, void *ctx),
		     void *ctx);
/* Is p in an arena? Without the lock, for what will not go meanwhile. */
bool heap_has(const void *p);
/* A byte behind the tensors of a unit, false when the run begins; see referrers.h. */
static inline _Atomic bool *heap_mark(const void *block)
{
	return (_Atomic bool *)(((uintptr_t)block | (HEAP_UNIT - 1)) - 63);
}

/* Bytes that were mapped, and those of them in blocks that were taken. */
void heap_stats(uint64_t *mapped, uint64_t *taken);
/* Around a fork. */
void heap_lock(void);
void heap_unlock(void);

#endif
