// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Takes blocks from pools and gives them back; segments, which are single allocations of CUDA; what is live. */
#include "kernels/cuda/runtime/blocks.h"

#include "base/compiler.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/expand.h"
#include "kernels/cuda/runtime/pools.h"

#include <stdlib.h>

/* Live blocks of each device by address. */
static struct live_table {
	struct block **bucket;
	size_t size, count;
} live[CUDA_DEVICES];

/* ---- live blocks ---- */

static struct block **live_bucket(const struct live_table *t, const void *data)
{
	return &t->bucket[((uintptr_t)data * 0x9e3779b97f4a7c15u >> 32) & (t->size - 1)];
}

/* Keeps the lists short; without memory for a larger table they grow. False without any table. */
static bool grow_live(struct live_table *t)
{
	struct block **old = t->bucket, *b;
	const size_t n = t->size, size = n ? n * 2 : 1024;
	struct block **fresh;

	if (t->count < n)
		return true;
	fresh = calloc(size, sizeof(*fresh));
	if (!fresh)
		return n != 0;
	t->bucket = fresh;
	t->size = size;
	for (size_t i = 0; i < n; i++) {
		while ((b = old[i])) {
			old[i] = b->next;
			b->next = *live_bucket(t, b->data);
			*live_bucket(t, b->data) = b;
		}
	}
	free(old);
	return true;
}

struct block *block_find_locked(int device, const void *data)
{
	struct live_table *t = &live[device];
	struct block *b = t->size ? *live_bucket(t, data) : NULL;

	while (b && b->data != data)
		b = b->next;
	return b;
}

static void set_live(struct block *b)
{
	struct tensor_cuda_stats *n = &pool_stats[b->pool->device];
	struct live_table *t = &live[b->pool->device];

	b->live = true;
	b->nuses = 0;
	b->next = *live_bucket(t, b->data);
	*live_bucket(t, b->data) = b;
	t->count++;
	pool_count_more(&n->allocation, b->pool, 1);
	pool_count_more(&n->allocated_bytes, b->pool, b->size);
	pool_count_more(&n->requested_bytes, b->pool, b->requested);
}

static void unset_live(struct block *b)
{
	struct tensor_cuda_stats *n = &pool_stats[b->pool->device];
	struct live_table *t = &live[b->pool->device];
	struct block **at = live_bucket(t, b->data);

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	t->count--;
	b->live = false;
	uses_end(&b->recorded);
	pool_count_less(&n->allocation, b->pool, 1);
	pool_count_less(&n->allocated_bytes, b->pool, b->size);
	pool_count_less(&n->requested_bytes, b->pool, b->requested);
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
	struct tensor_cuda_stats *n = &pool_stats[p->device];
	struct block *b = calloc(1, sizeof(*b));
	void *data = NULL;

	*err = cudaSuccess;
	if (!b)
		return NULL;
	size = p->small			 ? SMALL_SEGMENT :
	       size <= LARGE_SEGMENT / 2 ? LARGE_SEGMENT :
					   (size + SMALL_SEGMENT - 1) & ~(SMALL_SEGMENT - 1);
	*err = allocate(&data, size);
	if (*err != cudaSuccess) {
		cudaGetLastError();
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
	pool_count_more(&n->segment, p, 1);
	pool_count_more(&n->reserved_bytes, p, size);
	return b;
}

/* A free block of more memory, in no list. */
static struct block *more(struct pool *p, size_t size, cudaError_t *err)
{
	if (p->expandable && expand_has_room(p, size))
		return expand_take(p, size, err);
	return new_segment(p, size, err);
}

/* ---- trims ---- */

static bool concerned(const struct pool *p, bool ended)
{
	return p->ended || (!p->owner && !ended);
}

/* Adds the pool's whole segments that are free. */
static void take_segments(struct pool *p, struct block **list)
{
	struct block *b, *next;

	for (unsigned i = 0; i < LISTS; i++) {
		for (b = p->list[i]; b; b = next) {
			next = b->next;
			if (b->before || b->after || b->range)
				continue;
			pool_take_out(b);
			b->leaving = true;
			b->next = *list;
			*list = b;
		}
	}
}

struct block *block_take_unused_locked(int device, bool ended)
{
	struct block *list = NULL;

	for (unsigned i = 0; i < POOLS; i++)
		for (struct pool *p = pools[device][i]; p; p = p->next) {
			if (!concerned(p, ended))
				continue;
			take_segments(p, &list);
			expand_take_unused(p, &list);
		}
	return list;
}

void block_return(struct block *list)
{
	const struct pool *p = NULL;
	bool settled = false;

	for (struct block *b = list; b; b = b->next) {
		if (!b->range) {
			cudaFree(b->data);
			b->returned = true;
			continue;
		}
		/* The blocks of a pool follow each other. */
		if (p != b->pool) {
			p = b->pool;
			settled = expand_settle(p);
		}
		b->returned = settled;
		if (settled)
			expand_unmap(b);
	}
}

static void segment_returned(struct block *b)
{
	struct tensor_cuda_stats *n = &pool_stats[b->pool->device];

	b->pool->segments--;
	n->num_device_free++;
	pool_count_less(&n->segment, b->pool, 1);
	pool_count_less(&n->reserved_bytes, b->pool, b->size);
	free(b);
}

void block_returned_locked(int device, bool ended, struct block *list)
{
	struct block *next;
	struct pool **at, *p;

	for (struct block *b = list; b; b = next) {
		next = b->next;
		if (b->range)
			expand_returned(b);
		else
			segment_returned(b);
	}
	for (unsigned i = 0; i < POOLS; i++) {
		for (at = &pools[device][i]; (p = *at);) {
			if (concerned(p, ended))
				expand_free_ranges(p);
			if (p->ended && !p->segments) {
				*at = p->next;
				free(p);
			} else {
				at = &p->next;
			}
		}
	}
}

void block_end_owner_locked(int device, uint64_t owner)
{
	for (unsigned i = 0; i < POOLS; i++)
		for (struct pool *p = pools[device][i]; p; p = p->next)
			if (p->owner == owner)
				p->ended = true;
}

/* ---- split and join ---- */

/* Leaves `size` bytes in b and makes the rest a free block. Without memory for its description b
 * stays whole. */
static void split(struct block *b, size_t size)
{
	struct block *rest;

	/* In a range no part is too small for what may come beside it. */
	if (b->size - size < (b->pool->small || b->range ? GRANULE : SMALL))
		return;
	rest = block_cut(b, size);
	if (rest)
		pool_insert(rest);
}

struct block *block_take_locked(int device, cudaStream_t stream, uint64_t owner, size_t n,
				cudaError_t *err)
{
	size_t size = n ? (n + GRANULE - 1) & ~(GRANULE - 1) : GRANULE;
	struct pool *p = pool_of(device, stream, owner, size <= SMALL);
	struct block *b;

	*err = cudaSuccess;
	if (!p || !grow_live(&live[device]))
		return NULL;
	if (!p->segments)
		p->expandable = expand_possible(device);
	b = pool_find(p, size);
	if (b)
		pool_take_out(b);
	else
		b = more(p, size, err);
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
	pool_give(b);
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
	*to = pool_stats[device];
	/* A block is free for its stream once it has been given back. */
	to->active = to->allocation;
	to->active_bytes = to->allocated_bytes;
}

void block_count_retry_locked(int device)
{
	pool_stats[device].num_alloc_retries++;
}

void block_count_oom_locked(int device)
{
	pool_stats[device].num_ooms++;
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
	struct tensor_cuda_stats *n = &pool_stats[device];
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
