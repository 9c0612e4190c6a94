// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Free blocks are in lists by size: eight lists between two powers of two, and a map of the lists
 * that are not empty, so that a request looks at one list and then takes the first block of a larger
 * one.
 */
#include "kernels/cuda/runtime/blocks.h"

#include "base/compiler.h"
#include "kernels/cuda/cuda.h"

#include <stdlib.h>

#define GRANULE	      ((size_t)512) /* at least the alignment of cudaMalloc and of cuBLAS */
#define SMALL	      ((size_t)1 << 20)
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20) /* for requests of up to half of it */
#define LISTS	      320
#define LOOKED_AT     16 /* blocks of the request's own list, which may be too small */
#define POOLS	      256

struct pool {
	struct pool *next;
	cudaStream_t stream;
	int device;
	bool small;
	bool ended;	/* its owner has */
	uint64_t owner; /* of graph.c, or 0 */
	size_t segments;
	uint64_t filled[LISTS / 64];
	struct block *list[LISTS];
};

static struct pool *pools[POOLS];
/* Without `active` and `active_bytes`, which block_stats_locked() adds. */
static struct tensor_cuda_stats stats[CUDA_DEVICES];
/* Live blocks by address. */
static struct block **live;
static size_t live_size, live_count;

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

static void count_more(struct tensor_cuda_stat_pools *of, const struct pool *p, uint64_t n)
{
	stat_add(&of->all, n);
	stat_add(p->small ? &of->small_pool : &of->large_pool, n);
}

static void count_less(struct tensor_cuda_stat_pools *of, const struct pool *p, uint64_t n)
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

static void insert(struct block *b)
{
	unsigned i = list_of(b->size);
	struct pool *p = b->pool;

	/* A block in a list has the same neighbours until it is taken out, because free ones are joined. */
	if (b->before || b->after) {
		count_more(&stats[p->device].inactive_split, p, 1);
		count_more(&stats[p->device].inactive_split_bytes, p, b->size);
	}
	b->prev = NULL;
	b->next = p->list[i];
	if (b->next)
		b->next->prev = b;
	p->list[i] = b;
	p->filled[i / 64] |= (uint64_t)1 << i % 64;
}

static void take_out(struct block *b)
{
	unsigned i = list_of(b->size);
	struct pool *p = b->pool;

	if (b->before || b->after) {
		count_less(&stats[p->device].inactive_split, p, 1);
		count_less(&stats[p->device].inactive_split_bytes, p, b->size);
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

static struct block *find_free(const struct pool *p, size_t size)
{
	unsigned i = list_of(size), word;
	struct block *b = p->list[i];
	uint64_t bits;

	for (int k = 0; b && k < LOOKED_AT; b = b->next, k++)
		if (b->size >= size)
			return b;
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

static struct pool *pool_of(int device, cudaStream_t stream, uint64_t owner, bool small)
{
	uint64_t key = ((uintptr_t)stream * 2 + small) * 64 + (uint64_t)device;
	struct pool **at = &pools[(key * 0x9e3779b97f4a7c15u) >> 56], *p;

	for (p = *at; p; p = p->next)
		if (p->stream == stream && p->device == device && p->owner == owner &&
		    p->small == small)
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

/* ---- live blocks ---- */

static struct block **live_bucket(const void *data)
{
	return &live[((uintptr_t)data * 0x9e3779b97f4a7c15u >> 32) & (live_size - 1)];
}

/* Keeps the lists short; without memory for a larger table they grow. False without any table. */
static bool grow_live(void)
{
	struct block **old = live, **fresh, *b;
	size_t n = live_size, size = n ? n * 2 : 1024;

	if (live_count < n)
		return true;
	fresh = calloc(size, sizeof(*fresh));
	if (!fresh)
		return n != 0;
	live = fresh;
	live_size = size;
	for (size_t i = 0; i < n; i++) {
		while ((b = old[i])) {
			old[i] = b->next;
			b->next = *live_bucket(b->data);
			*live_bucket(b->data) = b;
		}
	}
	free(old);
	return true;
}

struct block *block_find_locked(const void *data)
{
	struct block *b = live_size ? *live_bucket(data) : NULL;

	while (b && b->data != data)
		b = b->next;
	return b;
}

static void set_live(struct block *b)
{
	struct tensor_cuda_stats *n = &stats[b->pool->device];

	b->live = true;
	b->nuses = 0;
	b->next = *live_bucket(b->data);
	*live_bucket(b->data) = b;
	live_count++;
	count_more(&n->allocation, b->pool, 1);
	count_more(&n->allocated_bytes, b->pool, b->size);
	count_more(&n->requested_bytes, b->pool, b->requested);
}

static void unset_live(struct block *b)
{
	struct tensor_cuda_stats *n = &stats[b->pool->device];
	struct block **at = live_bucket(b->data);

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	live_count--;
	b->live = false;
	count_less(&n->allocation, b->pool, 1);
	count_less(&n->allocated_bytes, b->pool, b->size);
	count_less(&n->requested_bytes, b->pool, b->requested);
}

/* ---- segments ---- */

/* An allocation of CUDA is no part of a capture. */
static cudaError_t allocate(void **data, size_t size)
{
	const enum cudaStreamCaptureMode before = cuda_relax();
	cudaError_t err = cudaMalloc(data, size);

	cuda_unrelax(before);
	return err;
}

/* The free block of a new segment, which is in no list yet. */
static struct block *new_segment(struct pool *p, size_t size, cudaError_t *err)
{
	struct tensor_cuda_stats *n = &stats[p->device];
	struct block *b = calloc(1, sizeof(*b));
	void *data = NULL;

	if (!b)
		return NULL;
	size = p->small			 ? SMALL_SEGMENT :
	       size <= LARGE_SEGMENT / 2 ? LARGE_SEGMENT :
					   (size + SMALL_SEGMENT - 1) & ~(SMALL_SEGMENT - 1);
	*err = allocate(&data, size);
	/* A thread that captures may return no memory: that waits for the device. */
	if (*err == cudaErrorMemoryAllocation && !cuda_thread_captures()) {
		cudaGetLastError();
		n->num_alloc_retries++;
		block_trim_locked(p->device);
		*err = allocate(&data, size);
	}
	if (*err != cudaSuccess) {
		free(b);
		return NULL;
	}
	if (!p->owner)
		cuda_host_block_free(p->device, data, size, p->stream);
	b->data = data;
	b->size = size;
	b->pool = p;
	p->segments++;
	n->num_device_alloc++;
	count_more(&n->segment, p, 1);
	count_more(&n->reserved_bytes, p, size);
	return b;
}

static void trim_pool(struct pool *p)
{
	struct tensor_cuda_stats *n = &stats[p->device];
	struct block *b, *next;

	for (unsigned i = 0; i < LISTS; i++) {
		for (b = p->list[i]; b; b = next) {
			next = b->next;
			if (b->before || b->after)
				continue;
			take_out(b);
			cudaFree(b->data);
			p->segments--;
			n->num_device_free++;
			count_less(&n->segment, p, 1);
			count_less(&n->reserved_bytes, p, b->size);
			free(b);
		}
	}
}

static void trim(int device, bool ended)
{
	struct pool **at, *p;

	for (unsigned i = 0; i < POOLS; i++) {
		for (at = &pools[i]; (p = *at);) {
			if (p->device == device && (p->ended || (!p->owner && !ended)))
				trim_pool(p);
			if (p->ended && !p->segments) {
				*at = p->next;
				free(p);
			} else {
				at = &p->next;
			}
		}
	}
}

void block_trim_locked(int device)
{
	trim(device, false);
}

void block_trim_ended_locked(int device)
{
	trim(device, true);
}

void block_end_owner_locked(uint64_t owner)
{
	for (unsigned i = 0; i < POOLS; i++)
		for (struct pool *p = pools[i]; p; p = p->next)
			if (p->owner == owner)
				p->ended = true;
}

/* ---- split and join ---- */

/* Leaves `size` bytes in b and makes the rest a free block. Without memory for its description b
 * stays whole. */
static void split(struct block *b, size_t size)
{
	struct block *rest;

	if (b->size - size < (b->pool->small ? GRANULE : SMALL))
		return;
	rest = calloc(1, sizeof(*rest));
	if (!rest)
		return;
	rest->data = b->data + size;
	rest->size = b->size - size;
	rest->pool = b->pool;
	rest->before = b;
	rest->after = b->after;
	if (rest->after)
		rest->after->before = rest;
	b->after = rest;
	b->size = size;
	insert(rest);
}

/* Adds the block after b to b. Neither is in a list. */
static void join_after(struct block *b)
{
	struct block *gone = b->after;

	b->size += gone->size;
	b->after = gone->after;
	if (b->after)
		b->after->before = b;
	free(gone);
}

struct block *block_take_locked(int device, cudaStream_t stream, uint64_t owner, size_t n,
				cudaError_t *err)
{
	size_t size = n ? (n + GRANULE - 1) & ~(GRANULE - 1) : GRANULE;
	struct pool *p = pool_of(device, stream, owner, size <= SMALL);
	struct block *b;

	*err = cudaSuccess;
	if (!p || !grow_live())
		return NULL;
	b = find_free(p, size);
	if (b)
		take_out(b);
	else
		b = new_segment(p, size, err);
	if (!b)
		return NULL;
	split(b, size);
	b->requested = n;
	set_live(b);
	b->capture = 0;
	cuda_host_block_used(device, b->data, n, b->size, stream);
	return b;
}

void block_give_locked(struct block *b)
{
	if (!b->pool->owner || cuda_capture_of(b->pool->stream))
		cuda_host_block_free(b->pool->device, b->data, b->size, b->pool->stream);
	unset_live(b);
	if (b->after && !b->after->live) {
		take_out(b->after);
		join_after(b);
	}
	if (b->before && !b->before->live) {
		b = b->before;
		take_out(b);
		join_after(b);
	}
	insert(b);
}

/* ---- questions ---- */

int block_device(const struct block *b)
{
	return b->pool->device;
}

cudaStream_t block_stream(const struct block *b)
{
	return b->pool->stream;
}

uint64_t block_owner(const struct block *b)
{
	return b->pool->owner;
}

void block_stats_locked(int device, struct tensor_cuda_stats *to)
{
	*to = stats[device];
	/* A block is free for its stream once it has been given back. */
	to->active = to->allocation;
	to->active_bytes = to->allocated_bytes;
}

void block_count_oom_locked(int device)
{
	stats[device].num_ooms++;
}

static void reset_stat(struct tensor_cuda_stat *s, bool accumulated)
{
	if (accumulated)
		s->allocated = s->freed = 0;
	else
		s->peak = s->current;
}

void block_reset_stats_locked(int device, bool accumulated)
{
	struct tensor_cuda_stats *n = &stats[device];
	struct tensor_cuda_stat_pools *const all[] = {
		&n->allocation,	    &n->allocated_bytes, &n->requested_bytes,	   &n->segment,
		&n->reserved_bytes, &n->inactive_split,	 &n->inactive_split_bytes,
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		reset_stat(&all[i]->all, accumulated);
		reset_stat(&all[i]->small_pool, accumulated);
		reset_stat(&all[i]->large_pool, accumulated);
	}
	if (accumulated)
		n->num_alloc_retries = n->num_ooms = n->num_device_alloc = n->num_device_free = 0;
}
