// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A run is a sequence of units of an arena with blocks of one class; from 64 KiB up it is one block.
 * When all blocks of a run are free, its units can serve any class.
 */
#include "storage/heap.h"

#include "base/compiler.h"
#include "base/init.h"
#include "storage/arena.h"
#include "storage/magazine.h"
#include "storage/storage.h"
#include "storage/trim.h"

#include <pthread.h>
#include <stdlib.h>

#define UNIT HEAP_UNIT

/* A sequence of units with blocks of one class. */
struct run {
	struct run *next, **link; /* link in the list of the class: runs with a free block */
	char *base;
	uint32_t blocks, n_free;
	uint16_t first, units;
	uint8_t class;
	void *note;	 /* see heap_place */
	uint64_t free[]; /* bit set: the block is free */
};

static struct {
	pthread_mutex_t lock;
	struct run *partial[BLOCK_CLASSES];
	uint64_t taken;
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER };

void heap_lock(void)
{
	pthread_mutex_lock(&heap.lock);
}

void heap_unlock(void)
{
	pthread_mutex_unlock(&heap.lock);
}

/* ---- runs ---- */

/* Number of units of a run: one block, or several with at most an eighth wasted. */
static unsigned run_units(size_t size)
{
	unsigned n = (unsigned)((size + UNIT - 1) / UNIT);

	while (n * UNIT % size > n * UNIT / 8)
		n++;
	return n;
}

static void partial_in(struct run *r)
{
	struct run **head = &heap.partial[r->class];

	r->next = *head;
	r->link = head;
	if (*head)
		(*head)->link = &r->next;
	*head = r;
}

static void partial_out(struct run *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
}

_Static_assert(UNIT % TENSOR_BLOCK >= 64 && UNIT % TENSOR_BLOCK <= UNIT / 8,
	       "a run of tensors is one unit, and heap_mark() is behind them");

size_t heap_size(unsigned class)
{
	switch (class) {
	case CLASS_TENSOR:
		return TENSOR_BLOCK;
	case CLASS_STORAGE:
		return (sizeof(struct tensor_storage) + 63) & ~(size_t)63;
	default:
		return block_size(class);
	}
}

/* Clears the reference count, the first member of both structs: no block is in use. */
static void clear_descriptions(struct run *r)
{
	size_t size = heap_size(r->class);

	for (char *p = r->base; p < r->base + r->blocks * size; p += size)
		*(_Atomic int64_t *)p = 0;
	if (r->class == CLASS_TENSOR)
		atomic_store_explicit(heap_mark(r->base), false, memory_order_relaxed);
}

static struct run *new_run(unsigned class)
{
	size_t size = heap_size(class);
	unsigned units = run_units(size), blocks = (unsigned)(units * UNIT / size);
	struct run *r = malloc(sizeof(*r) + (blocks + 63) / 64 * sizeof(r->free[0]));
	struct arena *a;
	int first;

	if (!r)
		return NULL;
	a = arena_find(units, &first);
	if (!a) {
		free(r);
		return NULL;
	}
	*r = (struct run){ .base = a->base + (size_t)first * UNIT,
			   .blocks = blocks,
			   .n_free = blocks,
			   .first = (uint16_t)first,
			   .units = (uint16_t)units,
			   .class = (uint8_t) class };
	for (unsigned i = 0; i < blocks; i++) {
		if (i % 64 == 0)
			r->free[i / 64] = 0;
		r->free[i / 64] |= (uint64_t)1 << i % 64;
	}
	if (class == CLASS_TENSOR || class == CLASS_STORAGE)
		clear_descriptions(r);
	arena_claim(a, r->first, units, r);
	partial_in(r);
	return r;
}

void (*heap_note_free)(unsigned class, void *note, unsigned blocks);

static void end_run(struct run *r)
{
	struct arena *a = arena_of(r->base);

	if (r->note)
		heap_note_free(r->class, r->note, r->blocks);
	partial_out(r);
	arena_reclaim(a, r->first, r->units);
	free(r);
}

/* ---- blocks ---- */

static void *take_block(struct run *r)
{
	unsigned word = 0, bit;

	while (!r->free[word])
		word++;
	bit = (unsigned)__builtin_ctzll(r->free[word]);
	r->free[word] &= r->free[word] - 1;
	if (!--r->n_free)
		partial_out(r);
	return r->base + (word * 64 + bit) * heap_size(r->class);
}

unsigned heap_take(unsigned class, void **slot, unsigned n)
{
	unsigned got = 0;
	struct run *r;

	heap_lock();
	while (got < n && ((r = heap.partial[class]) || (r = new_run(class))))
		slot[got++] = take_block(r);
	heap.taken += got * heap_size(class);
	arena_trim_old();
	heap_unlock();
	return got;
}

static void give_block(void *p)
{
	struct arena *a = arena_of(p);
	struct run *r = a->run[(size_t)((char *)p - a->base) / UNIT];
	size_t i = (size_t)((char *)p - r->base) / heap_size(r->class);

	r->free[i / 64] |= (uint64_t)1 << i % 64;
	if (++r->n_free == 1)
		partial_in(r);
	if (r->n_free == r->blocks)
		end_run(r);
}

void heap_give(unsigned class, void *const *slot, unsigned n)
{
	heap_lock();
	for (unsigned i = 0; i < n; i++)
		give_block(slot[i]);
	heap.taken -= n * heap_size(class);
	arena_trim_old();
	heap_unlock();
}

/* ---- search ---- */

bool heap_has(const void *p)
{
	return arena_of(p);
}

bool heap_find(const void *p, unsigned class, struct heap_place *at)
{
	struct arena *a = arena_of(p);
	struct run *r = a ? a->run[(size_t)((const char *)p - a->base) / UNIT] : NULL;
	size_t offset;

	if (!r || r->class != class)
		return false;
	offset = (size_t)((const char *)p - r->base);
	*at = (struct heap_place){ r->base, r->blocks, (unsigned)(offset / heap_size(class)),
				   &r->note };
	return offset % heap_size(class) == 0 && at->index < r->blocks;
}

bool heap_next_arena(uint64_t *arena, unsigned class, void (*fn)(void *first, void *ctx), void *ctx)
{
	const struct arena *a;
	const struct run *r;

	heap_lock();
	a = arena_next(arena);
	for (unsigned i = 0; a && i < ARENA_UNITS; i += r ? r->units : 1) {
		r = a->run[i];
		if (r && r->class == class)
			fn(r->base, ctx);
	}
	heap_unlock();
	++*arena;
	return a;
}

void heap_trim(bool now)
{
	heap_lock();
	arena_trim_until(now ? INT64_MAX : cache_now_ms() - CACHE_WARM_MS);
	heap_unlock();
}

void heap_stats(uint64_t *mapped, uint64_t *taken)
{
	heap_lock();
	*mapped = arena_bytes();
	*taken = heap.taken;
	heap_unlock();
}

static void trim_now(void)
{
	heap_trim(true);
}

INIT(INIT_MEMORY) static void heap_init(void)
{
	trim_register(TRIM_HEAP, trim_now);
}
