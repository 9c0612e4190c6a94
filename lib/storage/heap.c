// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * An arena is 4 MiB of private huge pages, divided into units of 16 KiB. A run is a sequence of
 * units with blocks of one class; from 64 KiB up it is one block. When all blocks of a run are
 * free, its units can serve any class. Arenas are in lists by the longest sequence of free units,
 * so a run is found without a search, in the fullest arena that has space for it.
 *
 * Free memory is kept for ten seconds. Then an arena without a run is unmapped, and the free units
 * of others are returned to the kernel.
 */
#include "storage/heap.h"

#include "base/compiler.h"
#include "base/init.h"
#include "storage/magazine.h"
#include "storage/storage.h"
#include "storage/trim.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ARENA ((size_t)4 << 20)
#define UNIT  HEAP_UNIT
#define UNITS ((unsigned)(ARENA / UNIT))
#define WORDS (UNITS / 64)
#define BINS  10 /* longest sequences of 0, 1, 2-3, 4-7 ... 256 free units */
/* Addresses have 48 bits: a two-level table has a pointer for each possible arena. */
#define LEAF   4096u
#define LEAVES (((uint64_t)1 << 48) / ARENA / LEAF)

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

struct arena {
	char *base;
	struct arena *next, **link;	      /* link in the list of its bin */
	struct arena *cold_next, **cold_link; /* link in dirty */
	int64_t when; /* ms: time when units became free; 0 if none did since they were returned */
	unsigned runs;
	uint64_t busy[WORDS];	/* bit set: the unit is in a run */
	struct run *run[UNITS]; /* the run of the unit */
};

static struct {
	pthread_mutex_t lock;
	struct run *partial[BLOCK_CLASSES];
	struct arena *bin[BINS];
	struct arena *dirty, **dirty_end; /* arenas with when set, oldest first */
	struct arena **leaf[LEAVES];
	uint64_t mapped, taken;
	int64_t looked; /* ms: time of the last scan of dirty */
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER, .dirty_end = &heap.dirty };

void heap_lock(void)
{
	pthread_mutex_lock(&heap.lock);
}

void heap_unlock(void)
{
	pthread_mutex_unlock(&heap.lock);
}

/* Registers the arena with LeakSanitizer, which searches known memory for pointers. */
void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));
void __lsan_unregister_root_region(const void *p, size_t n) __attribute__((weak));

/* ---- arenas ---- */

static struct arena **place_of(const void *p)
{
	uint64_t i = (uintptr_t)p / ARENA;

	return &heap.leaf[i / LEAF][i % LEAF];
}

/* The length of the longest sequence of free units. */
static unsigned longest_row(const struct arena *a)
{
	unsigned best = 0, row = 0;

	for (unsigned i = 0; i < UNITS; i++) {
		if (i % 64 == 0 && a->busy[i / 64] == 0) {
			row += 64;
			i += 63;
		} else {
			row = a->busy[i / 64] >> i % 64 & 1 ? 0 : row + 1;
		}
		if (row > best)
			best = row;
	}
	return best;
}

static unsigned bin_of(unsigned row)
{
	return row ? 32 - (unsigned)__builtin_clz(row) : 0;
}

static void bin_out(struct arena *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
}

static void bin_in(struct arena *a)
{
	struct arena **head = &heap.bin[bin_of(longest_row(a))];

	a->next = *head;
	a->link = head;
	if (*head)
		(*head)->link = &a->next;
	*head = a;
}

static void dirty_out(struct arena *a)
{
	if (!a->when)
		return;
	*a->cold_link = a->cold_next;
	if (a->cold_next)
		a->cold_next->cold_link = a->cold_link;
	else
		heap.dirty_end = a->cold_link;
	a->when = 0;
}

static void dirty_in(struct arena *a)
{
	dirty_out(a);
	a->when = cache_now_ms() + 1; /* never 0 */
	a->cold_next = NULL;
	a->cold_link = heap.dirty_end;
	*heap.dirty_end = a;
	heap.dirty_end = &a->cold_next;
}

/* Aligned to ARENA, so the address of a block gives its arena. */
static char *map_arena(void)
{
	char *p = mmap(NULL, 2 * ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start;

	if (p == MAP_FAILED)
		return NULL;
	start = (char *)(((uintptr_t)p + ARENA - 1) & ~(ARENA - 1));
	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + ARENA, (size_t)(p + ARENA - start));
	madvise(start, ARENA, MADV_HUGEPAGE);
	return start;
}

static struct arena *new_arena(void)
{
	struct arena *a = calloc(1, sizeof(*a)), ***leaf;

	if (!a)
		return NULL;
	a->base = map_arena();
	if (!a->base)
		goto free_arena;
	leaf = &heap.leaf[(uintptr_t)a->base / ARENA / LEAF];
	if (!*leaf)
		*leaf = calloc(LEAF, sizeof(**leaf));
	if (!*leaf)
		goto unmap;
	*place_of(a->base) = a;
	if (__lsan_register_root_region)
		__lsan_register_root_region(a->base, ARENA);
	heap.mapped += ARENA;
	bin_in(a);
	return a;
unmap:
	munmap(a->base, ARENA);
free_arena:
	free(a);
	return NULL;
}

static void end_arena(struct arena *a)
{
	dirty_out(a);
	bin_out(a);
	*place_of(a->base) = NULL;
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(a->base, ARENA);
	munmap(a->base, ARENA);
	heap.mapped -= ARENA;
	free(a);
}

/* Returns free units to the kernel, and the arena if all are free. */
static void cool(struct arena *a)
{
	unsigned end;

	if (!a->runs) {
		end_arena(a);
		return;
	}
	dirty_out(a);
	for (unsigned i = 0; i < UNITS; i = end + 1) {
		for (end = i; end < UNITS && !(a->busy[end / 64] >> end % 64 & 1); end++)
			;
		if (end > i)
			madvise(a->base + i * UNIT, (end - i) * UNIT, MADV_DONTNEED);
	}
}

static void cool_until(int64_t when)
{
	while (heap.dirty && heap.dirty->when <= when)
		cool(heap.dirty);
}

/* Scans dirty from time to time. The caller holds the lock. */
static void cool_old(void)
{
	int64_t now = cache_now_ms();

	if (now - heap.looked < CACHE_WARM_MS / 4)
		return;
	heap.looked = now;
	cool_until(now - CACHE_WARM_MS);
}

/* ---- runs ---- */

/* The first of n consecutive free units; -1 if there are none. */
static int find_row(const struct arena *a, unsigned n)
{
	unsigned row = 0;

	for (unsigned i = 0; i < UNITS; i++) {
		row = a->busy[i / 64] >> i % 64 & 1 ? 0 : row + 1;
		if (row == n)
			return (int)(i + 1 - n);
	}
	return -1;
}

/* Every arena of a higher bin has space; in the bin of n only some have. */
static struct arena *arena_with(unsigned n, int *first)
{
	for (unsigned b = bin_of(n); b < BINS; b++) {
		if (heap.bin[b]) {
			*first = find_row(heap.bin[b], n);
			if (*first >= 0)
				return heap.bin[b];
		}
	}
	*first = 0;
	return new_arena();
}

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
	a = arena_with(units, &first);
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
	bin_out(a);
	for (unsigned i = r->first; i < r->first + units; i++) {
		a->busy[i / 64] |= (uint64_t)1 << i % 64;
		a->run[i] = r;
	}
	a->runs++;
	bin_in(a);
	partial_in(r);
	return r;
}

void (*heap_note_free)(unsigned class, void *note, unsigned blocks);

static void end_run(struct run *r)
{
	struct arena *a = *place_of(r->base);

	if (r->note)
		heap_note_free(r->class, r->note, r->blocks);
	partial_out(r);
	bin_out(a);
	for (unsigned i = r->first; i < r->first + r->units; i++) {
		a->busy[i / 64] &= ~((uint64_t)1 << i % 64);
		a->run[i] = NULL;
	}
	a->runs--;
	bin_in(a);
	dirty_in(a);
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
	cool_old();
	heap_unlock();
	return got;
}

static void give_block(void *p)
{
	struct arena *a = *place_of(p);
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
	cool_old();
	heap_unlock();
}

/* ---- what block is where ---- */

/* The arena of p, or NULL. If p is known to be in an arena, no lock is needed. */
static __attribute__((no_sanitize("thread"))) struct arena *arena_of(const void *p)
{
	uint64_t i = (uintptr_t)p / ARENA;

	return i / LEAF < LEAVES && heap.leaf[i / LEAF] ? *place_of(p) : NULL;
}

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

/* The first arena with number i or higher, or NULL. */
static const struct arena *arena_from(uint64_t *i)
{
	for (; *i < LEAVES * LEAF; ++*i) {
		if (!heap.leaf[*i / LEAF])
			*i |= LEAF - 1;
		else if (heap.leaf[*i / LEAF][*i % LEAF])
			return heap.leaf[*i / LEAF][*i % LEAF];
	}
	return NULL;
}

bool heap_next_arena(uint64_t *arena, unsigned class, void (*fn)(void *first, void *ctx), void *ctx)
{
	const struct arena *a;
	const struct run *r;

	heap_lock();
	a = arena_from(arena);
	for (unsigned i = 0; a && i < UNITS; i += r ? r->units : 1) {
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
	cool_until(now ? INT64_MAX : cache_now_ms() - CACHE_WARM_MS);
	heap_unlock();
}

void heap_stats(uint64_t *mapped, uint64_t *taken)
{
	heap_lock();
	*mapped = heap.mapped;
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
