// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A table of memory by address. The owner of the memory waits for its device, which leaves the streams of other devices
 * that programs have recorded.
 */
#include "kernels/cuda/runtime/uses.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

static struct cuda_uses *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* As in shared.c a fork does not wait for the lock: memory is released under locks of channels. A child has no memory. */
static void forget_all(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(table, 0, sizeof(table));
}

__attribute__((constructor)) static void uses_init(void)
{
	pthread_atfork(NULL, NULL, forget_all);
}

static struct cuda_uses **bucket(const void *data)
{
	return &table[((uintptr_t)data * 0x9e3779b97f4a7c15u >> 32) % BUCKETS];
}

int uses_add(struct cuda_uses *u, cudaStream_t stream)
{
	unsigned int size = u->size ? 2 * u->size : 4;
	cudaStream_t *streams;

	for (unsigned int i = 0; i < u->n; i++)
		if (u->streams[i] == stream)
			return 0;
	if (u->n == u->size) {
		streams = realloc(u->streams, size * sizeof(*streams));
		u->unknown |= !streams;
		if (!streams)
			return -ENOMEM;
		u->streams = streams;
		u->size = size;
	}
	u->streams[u->n++] = stream;
	return 0;
}

void uses_begin(struct cuda_uses *u, const void *data)
{
	struct cuda_uses **at = bucket(data);

	pthread_mutex_lock(&lock);
	u->data = data;
	u->next = *at;
	u->link = at;
	if (u->next)
		u->next->link = &u->next;
	*at = u;
	pthread_mutex_unlock(&lock);
}

cudaError_t uses_wait(struct cuda_uses *u)
{
	cudaError_t err = u->unknown ? cudaErrorMemoryAllocation : cudaSuccess;

	/* Nothing records a use of memory that is being released. */
	while (u->n && err == cudaSuccess) {
		err = cudaStreamSynchronize(u->streams[u->n - 1]);
		u->n -= err == cudaSuccess;
	}
	return err;
}

void uses_end(struct cuda_uses *u)
{
	/* A block of the cache is not in the table, and its release takes no lock that devices share. */
	if (u->data) {
		pthread_mutex_lock(&lock);
		*u->link = u->next;
		if (u->next)
			u->next->link = u->link;
		u->data = NULL;
		pthread_mutex_unlock(&lock);
	}
	free(u->streams);
	u->streams = NULL;
	u->n = u->size = 0;
	u->unknown = false;
}

int uses_record(const void *data, cudaStream_t stream)
{
	struct cuda_uses *u;
	int err = 0;

	/* Default streams, and that of a thread (2): the owner waits for the device, of which they are. */
	if ((uintptr_t)stream <= 2)
		return 0;
	pthread_mutex_lock(&lock);
	for (u = *bucket(data); u && u->data != data; u = u->next)
		;
	if (u)
		err = uses_add(u, stream);
	pthread_mutex_unlock(&lock);
	return err;
}
