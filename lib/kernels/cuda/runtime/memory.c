// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The caching allocator of device memory. A block belongs to the stream for which it was allocated;
 * a freed one serves later requests of that stream, which needs no synchronisation because work in a
 * stream is ordered. Uses of a block by other streams are recorded, and the block's own stream waits
 * for them when the block is freed. blocks.c cuts and joins the memory.
 */
#include "kernels/cuda/runtime/blocks.h"
#include "kernels/cuda/runtime/devices.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_memory(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_memory(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void memory_init(void)
{
	pthread_atfork(lock_memory, unlock_memory, unlock_memory);
}

/* ---- uses by other streams ---- */

/* Makes the block's stream wait for the work queued in `use`; returns false on failure. */
static bool wait_for(const struct block *b, cudaStream_t use)
{
	cudaEvent_t event;
	bool ok;

	if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
		return false;
	ok = cudaEventRecord(event, use) == cudaSuccess &&
	     cudaStreamWaitEvent(block_stream(b), event, 0) == cudaSuccess;
	cudaEventDestroy(event); /* CUDA frees it once it has been reached */
	return ok;
}

/* Waits for the uses. cudaErrorStreamCaptureUnsupported: they are too many, and a graph is being captured. */
static cudaError_t wait_for_uses(struct block *b)
{
	cudaError_t err = b->nuses > BLOCK_USES ? cuda_try_wait_device(block_device(b)) :
						  cudaSuccess;

	/* Some may be streams of other devices. */
	for (int i = 0; err == cudaSuccess && i < b->nuses && i < BLOCK_USES; i++)
		err = cudaStreamSynchronize(b->uses[i]);
	return err == cudaSuccess ? uses_wait(&b->recorded) : err;
}

/* Orders the block's next use after all recorded uses by other streams. Errors as above. */
static cudaError_t settle(struct block *b)
{
	bool ok = b->nuses <= BLOCK_USES;
	cudaError_t err = cudaSuccess;
	struct cuda_call c;

	if (cuda_begin(&c, "free", block_device(b)) < 0)
		return cudaErrorUnknown;
	for (int i = 0; ok && i < b->nuses; i++)
		ok = wait_for(b, b->uses[i]);
	if (!ok) {
		/* A stream of another device has no events of this one. */
		err = wait_for_uses(b);
		cudaGetLastError();
	}
	cuda_end(&c, 0);
	return err;
}

/* Released blocks that wait for the end of captures, linked by `prev`. */
static struct block *_Atomic delayed;

static void settle_and_give(struct block *b)
{
	const cudaError_t err = settle(b);

	lock_memory();
	if (err == cudaSuccess) {
		block_give_locked(b);
	} else if (err == cudaErrorStreamCaptureUnsupported) {
		b->prev = delayed;
		delayed = b;
	}
	/* Memory that may be in use is lost rather than given to others. */
	unlock_memory();
}

static void give_delayed(void)
{
	struct block *b, *next;

	if (likely(!atomic_load_explicit(&delayed, memory_order_relaxed)) ||
	    atomic_load_explicit(&cuda_captures, memory_order_acquire))
		return;
	lock_memory();
	b = delayed;
	delayed = NULL;
	unlock_memory();
	for (; b; b = next) {
		next = b->prev;
		settle_and_give(b);
	}
}

/* ---- allocation and release ---- */

static int no_memory(const struct cuda_call *c, size_t nbytes)
{
	struct tensor_cuda_stats n;
	size_t unused = 0, all = 0;

	lock_memory();
	block_stats_locked(c->device, &n);
	unlock_memory();
	cudaGetLastError();
	if (cudaMemGetInfo(&unused, &all) != cudaSuccess)
		cudaGetLastError();
	return tensor_fail(
		ENOMEM,
		"%s: cuda:%d has no memory for %zu bytes: of its %zu bytes %zu are "
		"unused, tensors of this process have %llu, its cache %llu",
		c->op, c->device, nbytes, all, unused,
		(unsigned long long)n.allocated_bytes.all.current,
		(unsigned long long)(n.reserved_bytes.all.current - n.allocated_bytes.all.current));
}

static int block_alloc(const struct cuda_call *c, size_t nbytes, void **data)
{
	struct block *b = NULL;
	cudaError_t err = cudaErrorMemoryAllocation;
	uint64_t owner = 0, capture = 0;

	give_delayed();
	if (cuda_capturing(c))
		owner = cuda_capture_owner(c->capture, &capture);
	lock_memory();
	if (nbytes <= (size_t)1 << 46)
		b = block_take_locked(c->device, c->stream, owner, nbytes, &err);
	if (!b && err == cudaErrorMemoryAllocation)
		block_count_oom_locked(c->device);
	if (b)
		b->capture = capture;
	unlock_memory();
	if (b) {
		*data = b->data;
		return 0;
	}
	if (err == cudaSuccess)
		return tensor_fail(ENOMEM, "%s: no memory for a block's description", c->op);
	return err == cudaErrorMemoryAllocation ? no_memory(c, nbytes) : cuda_error(c->op, err);
}

static void block_free(void *data)
{
	struct block *b;

	lock_memory();
	b = block_find_locked(data);
	/* In a child the device memory belongs to the parent, and nothing is allocated. Memory of a capture is used
	 * again in captures only, whose replays the program orders after what reads their results. */
	if (b && (!b->nuses || cuda_forked || block_owner(b))) {
		block_give_locked(b);
		b = NULL;
	}
	unlock_memory();
	if (b)
		settle_and_give(b);
}

bool cuda_captured_memory(const struct cuda_call *c, const void *data)
{
	const struct block *b;
	uint64_t capture;
	bool own;

	cuda_capture_owner(c->capture, &capture);
	lock_memory();
	b = block_find_locked(data);
	own = b && b->capture == capture;
	unlock_memory();
	return own;
}

bool cuda_memory_of_capture(const void *data)
{
	const struct block *b;
	bool owned;

	lock_memory();
	b = block_find_locked(data);
	owned = b && block_owner(b);
	unlock_memory();
	return owned;
}

/*
 * More uses than a block remembers make it wait for the device when it is freed, and for the streams that the program has
 * recorded, which may be of another device.
 */
static void add_use(struct block *b, cudaStream_t stream, bool recorded)
{
	if (recorded && b->nuses >= BLOCK_USES)
		uses_add(&b->recorded, stream); /* without memory for it the block is lost */
	if (b->nuses > BLOCK_USES)
		return;
	if (b->nuses < BLOCK_USES)
		b->uses[b->nuses] = stream;
	b->nuses++;
}

static void use(const struct cuda_call *c, const tensor *t, bool recorded)
{
	struct block *b;
	bool known = false;

	lock_memory();
	b = block_find_locked(t->storage->data);
	if (b && block_stream(b) != c->stream && (recorded || b->nuses <= BLOCK_USES)) {
		for (int i = 0; i < b->nuses && i < BLOCK_USES; i++)
			known |= b->uses[i] == c->stream;
		if (c->stream == CUDA_STREAM_PER_THREAD) {
			/* The thread that frees the block has another one: it waits for the device. */
			while (b->nuses <= BLOCK_USES)
				add_use(b, NULL, false);
		} else if (!known) {
			add_use(b, c->stream, recorded);
		}
	}
	unlock_memory();
}

void cuda_use_slow(const struct cuda_call *c, const tensor *t)
{
	if (!cuda_capturing(c))
		use(c, t, false);
	else if (!cuda_captured_memory(c, t->storage->data))
		cuda_capture_hold(c->capture, t->storage);
}

int cuda_record_use(const struct cuda_call *c, const tensor *t)
{
	use(c, t, true);
	return uses_record(t->storage->data, c->stream) < 0 ?
		       tensor_fail(ENOMEM, "%s: no memory", c->op) :
		       0;
}

int cuda_scratch(const struct cuda_call *c, size_t nbytes, void **data)
{
	return block_alloc(c, nbytes, data);
}

void cuda_scratch_free(const struct cuda_call *c, void *data)
{
	if (data)
		block_free(data);
}

/* ---- what programs ask for ---- */

int cuda_memory_trim(int device)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_memory_trim", device);

	if (err)
		return err;
	if (c.capture)
		return cuda_end(&c, cuda_capture_excludes(c.op, device, "returns memory"));
	give_delayed();
	lock_memory();
	block_trim_locked(device);
	unlock_memory();
	return cuda_end(&c, 0);
}

void cuda_memory_end_owner(int device, uint64_t owner)
{
	struct cuda_call c;

	lock_memory();
	block_end_owner_locked(owner);
	unlock_memory();
	/* Without a trim the memory waits for the next one. */
	if (cuda_thread_captures() || cuda_begin(&c, "cuda_graph_reset", device) < 0)
		return;
	lock_memory();
	block_trim_ended_locked(device);
	unlock_memory();
	cuda_end(&c, 0);
}

int cuda_memory_stats(int device, struct tensor_cuda_stats *to)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_memory_stats", device);

	if (err)
		return err;
	lock_memory();
	block_stats_locked(device, to);
	unlock_memory();
	return cuda_end(&c, 0);
}

int cuda_memory_reset(int device, bool accumulated)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_memory_reset", device);

	if (err)
		return err;
	lock_memory();
	block_reset_stats_locked(device, accumulated);
	unlock_memory();
	return cuda_end(&c, 0);
}

int cuda_memory_counts(int device, struct tensor_cuda_usage *to)
{
	struct tensor_cuda_stats n;
	int err = cuda_memory_stats(device, &n);

	if (err)
		return err;
	*to = (struct tensor_cuda_usage){
		.allocated = n.allocated_bytes.all.current,
		.allocated_peak = n.allocated_bytes.all.peak,
		.reserved = n.reserved_bytes.all.current,
		.reserved_peak = n.reserved_bytes.all.peak,
		.segments = n.segment.all.current,
		.allocations = n.allocation.all.allocated,
		.retries = n.num_alloc_retries,
	};
	return 0;
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
