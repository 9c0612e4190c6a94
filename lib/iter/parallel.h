/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * parallel_for() divides a range into chunks of `grain`, run by the calling thread and a pool. The
 * chunks depend only on the range and the grain, not on the number of threads, so results are
 * reproducible.
 */
#ifndef TENSOR_PARALLEL_H
#define TENSOR_PARALLEL_H

#include <stdint.h>

typedef void (*parallel_fn)(int64_t begin, int64_t end, void *ctx);

/* Call fn for every chunk, several at a time; return when all have finished. A nested call, or a
 * range of a single chunk, runs on the calling thread. */
void parallel_for(int64_t begin, int64_t end, int64_t grain, parallel_fn fn, void *ctx);

#endif
