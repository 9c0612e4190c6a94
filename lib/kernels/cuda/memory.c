// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The caching allocator of device memory. A block belongs to the stream for which it was
 * allocated. A freed block is kept for an allocation of the same rounded size on that stream; this
 * needs no synchronisation because work in a stream is ordered. Uses of a block by other streams
 * are recorded, and the block's own stream waits for them when the block is freed.
 *
 * Small blocks are parts of arenas and are never returned; large ones are returned to CUDA when an
 * allocation fails.
 */
#include "kernels/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>

#define SMALL	 ((size_t)1 << 20)
#define ARENA	 ((size_t)4 << 20)
#define GRANULE	 ((size_t)512) /* at least the alignment of cudaMalloc and of cuBLAS */
#define BUCKETS	 4096
#define USES_MAX 4

struct block {
	void *data;
	size_t size;
	cudaStream_t stream;
	struct block *next;	     /* in live[] or spare[] */
	cudaStream_t uses[USES_MAX]; /* other streams that used it */
	int8_t device;
	uint8_t nuses; /* USES_MAX + 1: more than uses[] holds */
	bool carved;
};

static struct {
	pthread_mutex_t lock;
	struct block *live[BUCKETS];  /* by address */
	struct block *spare[BUCKETS]; /* by device, stream and size */
	char *arena[CUDA_DEVICES], *arena_end[CUDA_DEVICES];
} mem = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock_memory(void)
{
	pthread_mutex_lock(&mem.lock);
}

static void unlock_memory(void)
{
	pthread_mutex_unlock(&mem.lock);
}

__attribute__((constructor)) static void memory_init(void)
{
	pthread_atfork(lock_memory, unlock_memory, unlock_memory);
}

/* ---- tables; the caller holds the lock ---- */

static unsigned mix(uint64_t x)
{
	return (unsigned)((x * 0x9e3779b97f4a7c15u) >> 52);
}

static struct block **live_bucket(const void *data)
{
	return &mem.live[mix((uintptr_t)data)];
}

static struct block **spare_bucket(int device, cudaStream_t stream, size_t size)
{
	return &mem.spare[mix((uintptr_t)stream + size + (uint64_t)device)];
}

static void push(struct block **bucket, struct block *b)
{
	b->next = *bucket;
	*bucket = b;
}

static struct block *take_spare(int device, cudaStream_t stream, size_t size)
{
	struct block **at = spare_bucket(device, stream, size), *b;

	for (; (b = *at); at = &b->next) {
		if (b->device == device && b->stream == stream && b->size == size) {
			*at = b->next;
			return b;
		}
	}
	return NULL;
}

static struct block *take_live(const void *data)
{
	struct block **at = live_bucket(data), *b;

	for (; (b = *at); at = &b->next) {
		if (b->data == data) {
			*at = b->next;
			return b;
		}
	}
	return NULL;
}

/* ---- allocation ---- */

/* Eight sizes between two powers of two, so that similar sizes share blocks. */
static size_t round_size(size_t n)
{
	size_t granule = GRANULE;

	if (n > 8 * GRANULE)
		granule = (size_t)1 << (63 - __builtin_clzl(n) - 3);
	return (n + granule - 1) & ~(granule - 1);
}

/* With the lock held: returns the device's spare large blocks. cudaFree waits for their work. */
static void trim(int device)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct block **at = &mem.spare[i], *b;

		while ((b = *at)) {
			if (b->device != device || b->carved) {
				at = &b->next;
				continue;
			}
			*at = b->next;
			cudaFree(b->data);
			free(b);
		}
	}
}

static cudaError_t device_memory(int device, size_t size, void **data)
{
	cudaError_t err = cudaMalloc(data, size);

	if (err == cudaErrorMemoryAllocation) {
		cudaGetLastError();
		trim(device);
		err = cudaMalloc(data, size);
	}
	return err;
}

/* With the lock held: allocates a block's memory, from an arena if it is small. */
static cudaError_t fill_block(struct block *b)
{
	char **at = &mem.arena[b->device], **end = &mem.arena_end[b->device];
	void *fresh;
	cudaError_t err;

	if (b->size > SMALL)
		return device_memory(b->device, b->size, &b->data);
	if ((size_t)(*end - *at) < b->size) {
		err = device_memory(b->device, ARENA, &fresh);
		if (err != cudaSuccess)
			return err;
		*at = fresh;
		*end = *at + ARENA;
	}
	b->data = *at;
	b->carved = true;
	*at += b->size;
	return cudaSuccess;
}

static int block_alloc(const struct cuda_call *c, size_t nbytes, void **data)
{
	struct block *b, *fresh = NULL;
	cudaError_t err = cudaSuccess;
	size_t size;

	if (nbytes > (size_t)1 << 46)
		return tensor_fail(ENOMEM, "%s: cuda:%d has no memory for %zu bytes", c->op,
				   c->device, nbytes);
	size = round_size(nbytes);
	lock_memory();
	b = take_spare(c->device, c->stream, size);
	if (!b && (b = fresh = calloc(1, sizeof(*b)))) {
		b->size = size;
		b->device = (int8_t)c->device;
		b->stream = c->stream;
		err = fill_block(b);
	}
	if (b && err == cudaSuccess)
		push(live_bucket(b->data), b);
	unlock_memory();
	if (!b)
		return tensor_fail(ENOMEM, "%s: no memory for a block's description", c->op);
	if (err != cudaSuccess) {
		free(fresh);
		if (err != cudaErrorMemoryAllocation)
			return cuda_error(c->op, err);
		cudaGetLastError();
		return tensor_fail(ENOMEM, "%s: cuda:%d has no memory for %zu bytes (%s)", c->op,
				   c->device, nbytes, cudaGetErrorString(err));
	}
	*data = b->data;
	return 0;
}

/* ---- release ---- */

/* Makes the block's stream wait for the work queued in `use`; returns false on failure. */
static bool wait_for(const struct block *b, cudaStream_t use)
{
	cudaEvent_t event;
	bool ok;

	if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
		return false;
	ok = cudaEventRecord(event, use) == cudaSuccess &&
	     cudaStreamWaitEvent(b->stream, event, 0) == cudaSuccess;
	cudaEventDestroy(event); /* CUDA frees it once it has been reached */
	return ok;
}

/* Orders the block's next use after all recorded uses by other streams. */
static void settle(struct block *b)
{
	bool ok = b->nuses <= USES_MAX;
	struct cuda_call c;

	if (cuda_begin(&c, "free", b->device) < 0)
		return;
	for (int i = 0; ok && i < b->nuses; i++)
		ok = wait_for(b, b->uses[i]);
	if (!ok) {
		cudaDeviceSynchronize();
		cudaGetLastError();
	}
	cuda_end(&c, 0);
	b->nuses = 0;
}

static void block_free(void *data)
{
	struct block *b;

	lock_memory();
	b = take_live(data);
	unlock_memory();
	if (!b)
		return;
	/* The device memory belongs to the parent; the child frees only its struct. */
	if (cuda_forked) {
		free(b);
		return;
	}
	if (b->nuses)
		settle(b);
	lock_memory();
	push(spare_bucket(b->device, b->stream, b->size), b);
	unlock_memory();
}

void cuda_use_slow(const struct cuda_call *c, const tensor *t)
{
	struct block *b;
	bool known;

	lock_memory();
	for (b = *live_bucket(t->storage->data); b; b = b->next)
		if (b->data == t->storage->data)
			break;
	if (b && b->stream != c->stream && b->nuses <= USES_MAX) {
		known = false;
		for (int i = 0; i < b->nuses; i++)
			known |= b->uses[i] == c->stream;
		if (!known) {
			if (b->nuses < USES_MAX)
				b->uses[b->nuses] = c->stream;
			b->nuses++;
		}
	}
	unlock_memory();
}

int cuda_scratch(const struct cuda_call *c, size_t nbytes, void **data)
{
	return block_alloc(c, nbytes ? nbytes : 1, data);
}

void cuda_scratch_free(const struct cuda_call *c, void *data)
{
	if (data)
		block_free(data);
}

/* ---- the allocator interface ---- */

static int memory_alloc(const struct tensor_allocator *self, tensor_device device, size_t nbytes,
			void **data)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "empty", device.index);

	return err ? err : cuda_end(&c, block_alloc(&c, nbytes, data));
}

static void memory_free(const struct tensor_allocator *self, tensor_device device, void *data,
			size_t nbytes)
{
	block_free(data);
}

const struct tensor_allocator cuda_memory = {
	.name = "cuda",
	.alloc = memory_alloc,
	.free = memory_free,
};
