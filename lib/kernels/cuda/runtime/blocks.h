/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Blocks of device memory, and the segments that they are parts of. A segment is one allocation of
 * CUDA for one stream; with TENSOR_CUDA_SEGMENTS=expandable a range of addresses takes the place of segments
 * (expand.c). A request takes a part of a free block and leaves the rest free; a freed block joins its free neighbours in the
 * segment. Small requests have segments of their own, so that they do not cut large ones. Memory of captures (graph.h) has an
 * owner, and serves no other request. Functions with _locked in their name need the device's lock of memory.c.
 */
#ifndef TENSOR_CUDA_BLOCKS_H
#define TENSOR_CUDA_BLOCKS_H

#include "kernels/cuda/runtime/uses.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tensor/cuda.h>

#define BLOCK_USES 4

struct pool;
struct range;

struct block {
	char *data;
	size_t size, requested;
	struct pool *pool;
	struct range *range;	      /* of expand.c; NULL: a part of a segment */
	struct block *before, *after; /* neighbours in the segment or range, by address */
	struct block *next,
		*prev; /* in a list of the pool; next among those that are live, or leave */
	cudaStream_t uses[BLOCK_USES]; /* other streams that used it */
	struct cuda_uses recorded;     /* by programs, of which uses[] may be full */
	uint64_t capture;	       /* the capture that allocated it, or 0 */
	uint8_t nuses;		       /* BLOCK_USES + 1: more than uses[] holds */
	bool live;
	bool unmapped; /* addresses of a range that have no memory */
	bool leaving;  /* in no pool: its memory is being returned to CUDA */
	bool returned; /* it has been; of the thread that trims */
};

/*
 * A block of at least n bytes for the stream, or NULL with *err: cudaErrorMemoryAllocation if the
 * device has no memory beside the segments that are not in use, cudaSuccess if the host has
 * none. The device is current. owner 0: none.
 */
struct block *block_take_locked(int device, cudaStream_t stream, uint64_t owner, size_t n,
				cudaError_t *err);
void block_give_locked(struct block *b);
/* The device's live block at this address, or NULL. */
struct block *block_find_locked(int device, const void *data);
/*
 * A trim, of one thread at a time for a device. Takes what is not in use out of the pools; `ended`: of owners which have ended
 * alone. No other thread uses these blocks then, but they count as reserved and their pools exist until the end.
 */
struct block *block_take_unused_locked(int device, bool ended);
/* Returns their memory to CUDA, which waits for their work. Without the lock. */
void block_return(struct block *list);
/* Counts what has been returned, and keeps what could not be. */
void block_returned_locked(int device, bool ended, struct block *list);
/* The owner's memory is returned by trims from now on. */
void block_end_owner_locked(int device, uint64_t owner);
int block_device(const struct block *b);
cudaStream_t block_stream(const struct block *b);
uint64_t block_owner(const struct block *b);
void block_stats_locked(int device, struct tensor_cuda_stats *to);
/* A request is repeated after a trim. */
void block_count_retry_locked(int device);
/* A request has failed for lack of device memory. */
void block_count_oom_locked(int device);
/* Resets the peaks, or the sums and numbers. */
void block_reset_stats_locked(int device, bool accumulated);

#endif
