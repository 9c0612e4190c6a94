// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Arenas are in lists by the longest sequence of free units, so that units are found without a
 * search, in the fullest arena that has enough of them. Free memory is kept for ten seconds. Then an
 * arena without a run is unmapped, and the free units of others are returned to the kernel.
 */
#include "storage/arena.h"

#include "storage/trim.h"

#include <stdlib.h>
#include <sys/mman.h>

#define BINS 10 /* longest sequences of 0, 1, 2-3, 4-7 ... 256 free units */
/* Addresses have 48 bits: a two-level table has a pointer for each possible arena. */
#define LEAF   4096u
#define LEAVES (((uint64_t)1 << 48) / ARENA / LEAF)

static struct {
	struct arena *bin[BINS];
	struct arena *dirty, **dirty_end; /* arenas with when set, oldest first */
	struct arena **leaf[LEAVES];
	uint64_t mapped;
	int64_t looked; /* ms: time of the last scan of dirty */
} arenas = { .dirty_end = &arenas.dirty };

/* Registers the arena with LeakSanitizer, which searches known memory for pointers. */
void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));
void __lsan_unregister_root_region(const void *p, size_t n) __attribute__((weak));

static struct arena **place_of(const void *p)
{
	uint64_t i = (uintptr_t)p / ARENA;

	return &arenas.leaf[i / LEAF][i % LEAF];
}

/* The length of the longest sequence of free units. */
static unsigned longest_row(const struct arena *a)
{
	unsigned best = 0, row = 0;

	for (unsigned i = 0; i < ARENA_UNITS; i++) {
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
	struct arena **head = &arenas.bin[bin_of(longest_row(a))];

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
	*a->dirty_link = a->dirty_next;
	if (a->dirty_next)
		a->dirty_next->dirty_link = a->dirty_link;
	else
		arenas.dirty_end = a->dirty_link;
	a->when = 0;
}

static void dirty_in(struct arena *a)
{
	dirty_out(a);
	a->when = cache_now_ms() + 1; /* never 0 */
	a->dirty_next = NULL;
	a->dirty_link = arenas.dirty_end;
	*arenas.dirty_end = a;
	arenas.dirty_end = &a->dirty_next;
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
	leaf = &arenas.leaf[(uintptr_t)a->base / ARENA / LEAF];
	if (!*leaf)
		*leaf = calloc(LEAF, sizeof(**leaf));
	if (!*leaf)
		goto unmap;
	*place_of(a->base) = a;
	if (__lsan_register_root_region)
		__lsan_register_root_region(a->base, ARENA);
	arenas.mapped += ARENA;
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
	arenas.mapped -= ARENA;
	free(a);
}

/* Returns free units to the kernel, and the arena if all are free. */
static void return_units(struct arena *a)
{
	unsigned end;

	if (!a->runs) {
		end_arena(a);
		return;
	}
	dirty_out(a);
	for (unsigned i = 0; i < ARENA_UNITS; i = end + 1) {
		for (end = i; end < ARENA_UNITS && !(a->busy[end / 64] >> end % 64 & 1); end++)
			;
		if (end > i)
			madvise(a->base + i * HEAP_UNIT, (end - i) * HEAP_UNIT, MADV_DONTNEED);
	}
}

void arena_trim_until(int64_t when)
{
	while (arenas.dirty && arenas.dirty->when <= when)
		return_units(arenas.dirty);
}

void arena_trim_old(void)
{
	int64_t now = cache_now_ms();

	if (now - arenas.looked < CACHE_WARM_MS / 4)
		return;
	arenas.looked = now;
	arena_trim_until(now - CACHE_WARM_MS);
}

/* The first of n consecutive free units; -1 if there are none. */
static int find_row(const struct arena *a, unsigned n)
{
	unsigned row = 0;

	for (unsigned i = 0; i < ARENA_UNITS; i++) {
		row = a->busy[i / 64] >> i % 64 & 1 ? 0 : row + 1;
		if (row == n)
			return (int)(i + 1 - n);
	}
	return -1;
}

struct arena *arena_find(unsigned n, int *first)
{
	for (unsigned b = bin_of(n); b < BINS; b++) {
		if (arenas.bin[b]) {
			*first = find_row(arenas.bin[b], n);
			if (*first >= 0)
				return arenas.bin[b];
		}
	}
	*first = 0;
	return new_arena();
}

void arena_claim(struct arena *a, unsigned first, unsigned units, struct run *r)
{
	bin_out(a);
	for (unsigned i = first; i < first + units; i++) {
		a->busy[i / 64] |= (uint64_t)1 << i % 64;
		a->run[i] = r;
	}
	a->runs++;
	bin_in(a);
}

void arena_reclaim(struct arena *a, unsigned first, unsigned units)
{
	bin_out(a);
	for (unsigned i = first; i < first + units; i++) {
		a->busy[i / 64] &= ~((uint64_t)1 << i % 64);
		a->run[i] = NULL;
	}
	a->runs--;
	bin_in(a);
	dirty_in(a);
}

__attribute__((no_sanitize("thread"))) struct arena *arena_of(const void *p)
{
	uint64_t i = (uintptr_t)p / ARENA;

	return i / LEAF < LEAVES && arenas.leaf[i / LEAF] ? *place_of(p) : NULL;
}

const struct arena *arena_next(uint64_t *i)
{
	for (; *i < LEAVES * LEAF; ++*i) {
		if (!arenas.leaf[*i / LEAF])
			*i |= LEAF - 1;
		else if (arenas.leaf[*i / LEAF][*i % LEAF])
			return arenas.leaf[*i / LEAF][*i % LEAF];
	}
	return NULL;
}

uint64_t arena_bytes(void)
{
	return arenas.mapped;
}
