// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pools of blocks. Free blocks are in lists by size: eight lists between two powers of two, and a map of the lists that are
 * not empty, so that a request looks at one list and then takes the first block of a larger one.
 */
#include "kernels/cuda/runtime/pools.h"

#include "kernels/cuda/cuda.h"

#include <stdlib.h>

#define LOOKED_AT 16 /* blocks of the request's own list, which may be too small */

struct pool *pools[CUDA_DEVICES][POOLS];
struct tensor_cuda_stats pool_stats[CUDA_DEVICES];

/* ---- statistics ---- */

static void stat_add(struct tensor_cuda_stat *s, uint64_t n)
{
	s->current += n;
	s->allocated += n;
	if (s->current > s->peak)
		s->peak = s->current;
}

static void stat_subtract(struct tensor_cuda_stat *s, uint64_t n)
{
	s->current -= n;
	s->freed += n;
}

void pool_count_more(struct tensor_cuda_stat_pools *of, const struct pool *p, uint64_t n)
{
	stat_add(&of->all, n);
	stat_add(p->small ? &of->small_pool : &of->large_pool, n);
}

void pool_count_less(struct tensor_cuda_stat_pools *of, const struct pool *p, uint64_t n)
{
	stat_subtract(&of->all, n);
	stat_subtract(p->small ? &of->small_pool : &of->large_pool, n);
}

/* ---- lists of free blocks ---- */

static unsigned list_of(size_t size)
{
	uint64_t n = size / GRANULE;
	unsigned log;

	if (n < 8)
		return (unsigned)n;
	log = 63 - (unsigned)__builtin_clzl(n);
	return (log - 2) * 8 + (unsigned)(n >> (log - 3) & 7);
}

void pool_insert(struct block *b)
{
	unsigned i = list_of(b->size);
	struct pool *p = b->pool;

	/* A block in a list has the same neighbours until it is taken out, because free ones are joined. */
	if (b->before || b->after) {
		pool_count_more(&pool_stats[p->device].inactive_split, p, 1);
		pool_count_more(&pool_stats[p->device].inactive_split_bytes, p, b->size);
	}
	b->prev = NULL;
	b->next = p->list[i];
	if (b->next)
		b->next->prev = b;
	p->list[i] = b;
	p->filled[i / 64] |= (uint64_t)1 << i % 64;
}

void pool_take_out(struct block *b)
{
	unsigned i = list_of(b->size);
	struct pool *p = b->pool;

	if (b->before || b->after) {
		pool_count_less(&pool_stats[p->device].inactive_split, p, 1);
		pool_count_less(&pool_stats[p->device].inactive_split_bytes, p, b->size);
	}
	if (b->next)
		b->next->prev = b->prev;
	if (b->prev)
		b->prev->next = b->next;
	else
		p->list[i] = b->next;
	if (!p->list[i])
		p->filled[i / 64] &= ~((uint64_t)1 << i % 64);
}

struct block *pool_find(const struct pool *p, size_t size)
{
	unsigned i = list_of(size), word;
	struct block *b = p->list[i], *best = NULL;
	uint64_t bits;

	/* The smallest one, at the lowest address, leaves the larger ones whole. */
	for (int k = 0; b && k < LOOKED_AT; b = b->next, k++)
		if (b->size >= size && (!best || b->size < best->size ||
					(b->size == best->size && b->data < best->data)))
			best = b;
	if (best)
		return best;
	i++; /* every block of the lists from here on is large enough */
	for (word = i / 64; word < LISTS / 64; word++) {
		bits = p->filled[word];
		if (word == i / 64)
			bits &= ~(uint64_t)0 << i % 64;
		if (bits)
			return p->list[word * 64 + (unsigned)__builtin_ctzl(bits)];
	}
	return NULL;
}

struct pool *pool_of(int device, cudaStream_t stream, uint64_t owner, bool small)
{
	uint64_t key = (uintptr_t)stream * 2 + small;
	struct pool **at = &pools[device][(key * 0x9e3779b97f4a7c15u) >> 56], *p;

	for (p = *at; p; p = p->next)
		if (p->stream == stream && p->owner == owner && p->small == small)
			return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->stream = stream;
	p->device = device;
	p->small = small;
	p->owner = owner;
	p->next = *at;
	*at = p;
	return p;
}

/* ---- cut and join ---- */

struct block *block_cut(struct block *b, size_t size)
{
	struct block *rest = calloc(1, sizeof(*rest));

	if (!rest)
		return NULL;
	rest->data = b->data + size;
	rest->size = b->size - size;
	rest->pool = b->pool;
	rest->range = b->range;
	rest->unmapped = b->unmapped;
	rest->before = b;
	rest->after = b->after;
	if (rest->after)
		rest->after->before = rest;
	b->after = rest;
	b->size = size;
	return rest;
}

void block_join_after(struct block *b)
{
	struct block *gone = b->after;

	b->size += gone->size;
	b->after = gone->after;
	if (b->after)
		b->after->before = b;
	free(gone);
}

void pool_give(struct block *b)
{
	if (block_is_free(b->after)) {
		pool_take_out(b->after);
		block_join_after(b);
	}
	if (block_is_free(b->before)) {
		b = b->before;
		pool_take_out(b);
		block_join_after(b);
	}
	pool_insert(b);
}
