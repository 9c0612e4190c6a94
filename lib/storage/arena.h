/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Arenas of the heap: 4 MiB of private huge pages each, divided into units of 16 KiB. heap.c divides
 * units into blocks. The caller of every function holds the lock of the heap.
 */
#ifndef TENSOR_ARENA_H
#define TENSOR_ARENA_H

#include "storage/heap.h"

#define ARENA	    ((size_t)4 << 20)
#define ARENA_UNITS ((unsigned)(ARENA / HEAP_UNIT))
#define ARENA_WORDS (ARENA_UNITS / 64)

struct run;

struct arena {
	char *base;
	struct arena *next, **link;		/* link in the list of its bin */
	struct arena *dirty_next, **dirty_link; /* link in the list of dirty arenas */
	int64_t when; /* ms: time when units became free; 0 if none did since they were returned */
	unsigned runs;
	uint64_t busy[ARENA_WORDS];   /* bit set: the unit is in a run */
	struct run *run[ARENA_UNITS]; /* the run of the unit */
};

/* An arena with n consecutive free units, the first of which is *first; NULL if there is no memory. */
struct arena *arena_find(unsigned n, int *first);
/* Gives units to a run. */
void arena_claim(struct arena *a, unsigned first, unsigned units, struct run *r);
/* Takes units from their run; they return to the kernel later. */
void arena_reclaim(struct arena *a, unsigned first, unsigned units);
/* The arena of p, or NULL. If p is known to be in an arena, no lock is needed. */
struct arena *arena_of(const void *p);
/* The arena of number *i or the next one, whose number is stored; NULL if there is none. */
const struct arena *arena_next(uint64_t *i);
/* Returns units to the kernel that became free at this time or before. */
void arena_trim_until(int64_t when);
/* Calls arena_trim_until() for memory that is no longer warm, at most every few seconds. */
void arena_trim_old(void);
/* Bytes of all arenas. */
uint64_t arena_bytes(void);

#endif
