/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Streams that programs record for memory: of shared.c, which this table finds by its address, or of a block of the cache that
 * has no place for them.
 */
#ifndef TENSOR_CUDA_USES_H
#define TENSOR_CUDA_USES_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* The streams of one range of memory; of the owner of the memory. */
struct cuda_uses {
	const void *data; /* NULL: not in the table */
	struct cuda_uses *next, **link;
	cudaStream_t *streams;
	unsigned int n, size;
	bool unknown; /* there was no memory to record one */
};

/* Adds a stream to u, which no other thread uses. 0, or -ENOMEM. */
int uses_add(struct cuda_uses *u, cudaStream_t stream);

/* Streams that are recorded for `data` come to u, until uses_end(). */
void uses_begin(struct cuda_uses *u, const void *data);
/* Waits for the streams. After an error it can be called again, else u is empty. */
cudaError_t uses_wait(struct cuda_uses *u);
void uses_end(struct cuda_uses *u);
/* Records the stream if `data` is in the table. 0, or -ENOMEM. */
int uses_record(const void *data, cudaStream_t stream);

#endif
