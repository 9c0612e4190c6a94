/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Expandable segments: a pool has a range of addresses that is larger than the memory of the device, into which memory is
 * mapped where blocks need it, in granules. A request that is larger than those before extends the free memory at its end
 * instead of leaving it unused, and granules without a live block return to the driver. The caller holds the lock of memory.c.
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
/* Waits for the work of the pool, and returns its granules that are not in use. */
void expand_trim(struct pool *p);

#endif
