/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Expandable segments: a pool has a range of addresses that is larger than the memory of the device, into which memory is
 * mapped where blocks need it, in granules. A request that is larger than those before extends the free memory at its end
 * instead of leaving it unused, and granules without a live block return to the driver. The caller holds the device's lock of
 * memory.c, but for expand_settle() and expand_unmap().
 */
#ifndef TENSOR_CUDA_EXPAND_H
#define TENSOR_CUDA_EXPAND_H

#include "kernels/cuda/runtime/pools.h"

/* Whether TENSOR_CUDA_SEGMENTS wants ranges and the device, the current one, can have them. */
bool expand_possible(int device);
/* Whether the pool has addresses for `size` bytes more, or gets them. */
bool expand_has_room(struct pool *p, size_t size);
/* A free block of at least this size, in no list, of which memory has been mapped, or NULL with *err: cudaSuccess if the
 * host has no memory. The pool has room. */
struct block *expand_take(struct pool *p, size_t size, cudaError_t *err);
/* The steps of a trim (blocks.h). Adds blocks of the whole granules that are not in use. */
void expand_take_unused(struct pool *p, struct block **list);
/* Waits for the work that may use the pool's free blocks. False if that cannot be. */
bool expand_settle(const struct pool *p);
/* Returns the memory of such a block. */
void expand_unmap(const struct block *b);
/* The block is a gap if it was, else free again. */
void expand_returned(struct block *b);
/* Returns the addresses of ranges that have no memory. */
void expand_free_ranges(struct pool *p);

#endif
