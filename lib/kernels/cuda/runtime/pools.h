/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * For the files of the allocator of device memory: a pool has the blocks of a device, a stream and an owner that are small,
 * or those that are not. The caller holds the device's lock of memory.c.
 */
#ifndef TENSOR_CUDA_POOLS_H
#define TENSOR_CUDA_POOLS_H

#include "kernels/cuda/runtime/blocks.h"

#define GRANULE	      ((size_t)512) /* at least the alignment of cudaMalloc and of cuBLAS */
#define SMALL	      ((size_t)1 << 20)
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20) /* for requests of up to half of it */
#define LISTS	      320
#define POOLS	      256

struct range;

struct pool {
	struct pool *next;
	cudaStream_t stream;
	int device;
	bool small;
	bool ended;	 /* its owner has */
	bool expandable; /* its memory is in ranges (expand.c) */
	uint64_t owner;	 /* of graph.c, or 0 */
	size_t segments; /* and ranges */
	struct range *ranges;
	struct block *gaps; /* blocks of ranges without memory, by address */
	uint64_t filled[LISTS / 64];
	struct block *list[LISTS];
};

extern struct pool *pools[][POOLS]; /* of each device */
/* Of each device. Without `active` and `active_bytes`, which block_stats_locked() adds. */
extern struct tensor_cuda_stats pool_stats[];

/* The pool, which is made if there is none, or NULL without memory. */
struct pool *pool_of(int device, cudaStream_t stream, uint64_t owner, bool small);
void pool_count_more(struct tensor_cuda_stat_pools *of, const struct pool *p, uint64_t n);
void pool_count_less(struct tensor_cuda_stat_pools *of, const struct pool *p, uint64_t n);

/* The lists of free blocks. */
void pool_insert(struct block *b);
void pool_take_out(struct block *b);
/* Inserts b, joined with the free blocks beside it. */
void pool_give(struct block *b);
/* A block of at least this size, which stays in its list, or NULL. */
struct block *pool_find(const struct pool *p, size_t size);

static inline bool block_is_free(const struct block *b)
{
	return b && !b->live && !b->unmapped && !b->leaving;
}

/* Leaves `size` bytes in b and returns a block of the rest, which is in no list. NULL without memory for its description. */
struct block *block_cut(struct block *b, size_t size);
/* Adds the block after b to b. Neither is in a list. */
void block_join_after(struct block *b);

#endif
