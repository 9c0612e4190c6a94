/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * parallel_for: a range cut into chunks of `grain`, run by the calling thread and a pool.
 * Where the cuts lie depends on the range and the grain alone, never on the number of threads.
 */
#ifndef TENSOR_PARALLEL_H
#define TENSOR_PARALLEL_H

#include <stdint.h>

typedef void (*parallel_fn)(int64_t begin, int64_t end, void *ctx);

/* Calls fn for each chunk, some at the same time; returns when all are done. Inside a chunk, and
 * for a single chunk, everything stays on the calling thread. */
void parallel_for(int64_t begin, int64_t end, int64_t grain, parallel_fn fn, void *ctx);

#endif
