// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The caching allocator of device memory. A block belongs to the stream for which it was allocated;
 * a freed one serves later requests of that stream, which needs no synchronisation because work in a
 * stream is ordered. Uses of a block by other streams are recorded, and the block's own stream waits
 * for them when the block is freed. blocks.c cuts and joins the memory.
 *
 * Each device has two locks. `lock` protects its blocks, pools and statistics; nothing waits for a device under it. `trim` is of
 * the thread that returns memory to CUDA: under `lock` it takes the memory out of the pools, and returns it without that lock,
 * because CUDA waits for the device then. Another thread that finds no memory meanwhile waits for `trim` before it fails.
 * Lock order: trim, then lock, then those of captures.c; or trim, then waits[] there. A fork takes each `lock` in the order of
 * devices and no `trim`, which children do not need.
 */
#include "kernels/cuda/runtime/blocks.h"
#include "kernels/cuda/runtime/devices.h"

#include <pthread.h>

static struct heap {
	pthread_mutex_t lock, trim;
	bool returning; /* memory that was taken out by a trim has not been returned yet */
	struct block *_Atomic
		delayed; /* released blocks that wait for the end of captures, linked by `prev` */
} __attribute__((aligned(64)))
heaps[CUDA_DEVICES] = { [0 ... CUDA_DEVICES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER,
						     .trim = PTHREAD_MUTEX_INITIALIZER } };

static void lock_memory(int device)
{
	pthread_mutex_lock(&heaps[device].lock);
}

static void unlock_memory(int device)
{
	pthread_mutex_unlock(&heaps[device].lock);
}

static int locked; /* heaps of a fork, at least the first, whose lock protects this */

static void lock_all(void)
{
	lock_memory(0);
	locked = cuda_devices_opened > 1 ? cuda_devices_opened : 1;
	for (int d = 1; d < locked; d++)
		lock_memory(d);
}

static void unlock_all(void)
{
	for (int d = locked - 1; d >= 0; d--)
		unlock_memory(d);
}

__attribute__((constructor)) static void memory_init(void)
{
	pthread_atfork(lock_all, unlock_all, unlock_all);
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

static void settle_and_give(struct block *b)
{
	const cudaError_t err = settle(b);
	struct heap *h = &heaps[block_device(b)];

	lock_memory(block_device(b));
	if (err == cudaSuccess) {
		block_give_locked(b);
	} else if (err == cudaErrorStreamCaptureUnsupported) {
		b->prev = h->delayed;
		h->delayed = b;
	}
	/* Memory that may be in use is lost rather than given to others. */
	pthread_mutex_unlock(&h->lock);
}

static void give_delayed(int device)
{
	struct heap *h = &heaps[device];
	struct block *b, *next;

	if (likely(!atomic_load_explicit(&h->delayed, memory_order_relaxed)) ||
	    atomic_load_explicit(&cuda_captures, memory_order_acquire))
		return;
	lock_memory(device);
	b = h->delayed;
	h->delayed = NULL;
	unlock_memory(device);
	for (; b; b = next) {
		next = b->prev;
		settle_and_give(b);
	}
}

/* ---- trims ---- */

/*
 * Returns what is not in use to CUDA; `ended`: of owners that have ended alone. The statistics count it as reserved until CUDA
 * has it, so that their peak is what the process had of the device.
 */
static void trim(int device, bool ended)
{
	struct heap *h = &heaps[device];
	struct block *list;

	pthread_mutex_lock(&h->trim);
	lock_memory(device);
	list = block_take_unused_locked(device, ended);
	h->returning = list;
	unlock_memory(device);
	block_return(list);
	lock_memory(device);
	block_returned_locked(device, ended, list);
	h->returning = false;
	unlock_memory(device);
	pthread_mutex_unlock(&h->trim);
}

/* After a request that failed, in whose time a trim was `returning` memory. False if a second one would fail, too. */
static bool make_available(int device, bool returning)
{
	/* A thread that captures may return no memory: that waits for the device. */
	if (cuda_thread_captures()) {
		if (!returning)
			return false;
		pthread_mutex_lock(&heaps[device].trim);
		pthread_mutex_unlock(&heaps[device].trim);
		return true;
	}
	lock_memory(device);
	block_count_retry_locked(device);
	unlock_memory(device);
	trim(device, false);
	return true;
}

/* ---- allocation and release ---- */

static int no_memory(const struct cuda_call *c, size_t nbytes)
{
	struct tensor_cuda_stats n;
	size_t unused = 0, all = 0;

	lock_memory(c->device);
	block_count_oom_locked(c->device);
	block_stats_locked(c->device, &n);
	unlock_memory(c->device);
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

/* *returning: whether a trim had memory that was in no pool and not returned. */
static struct block *take(const struct cuda_call *c, size_t nbytes, cudaError_t *err,
			  bool *returning)
{
	uint64_t owner = 0, capture = 0;
	struct block *b;

	if (cuda_capturing(c))
		owner = cuda_capture_owner(c->capture, &capture);
	lock_memory(c->device);
	b = block_take_locked(c->device, c->stream, owner, nbytes, err);
	if (b)
		b->capture = capture;
	*returning = heaps[c->device].returning;
	unlock_memory(c->device);
	return b;
}

static int block_alloc(const struct cuda_call *c, size_t nbytes, void **data)
{
	struct block *b = NULL;
	cudaError_t err = cudaErrorMemoryAllocation;
	bool returning;

	give_delayed(c->device);
	if (nbytes <= (size_t)1 << 46) {
		b = take(c, nbytes, &err, &returning);
		if (!b && err == cudaErrorMemoryAllocation && make_available(c->device, returning))
			b = take(c, nbytes, &err, &returning);
	}
	if (b) {
		*data = b->data;
		return 0;
	}
	if (err == cudaSuccess)
		return tensor_fail(ENOMEM, "%s: no memory for a block's description", c->op);
	return err == cudaErrorMemoryAllocation ? no_memory(c, nbytes) : cuda_error(c->op, err);
}

static void block_free(int device, void *data)
{
	struct block *b;

	lock_memory(device);
	b = block_find_locked(device, data);
	/* In a child the device memory belongs to the parent, and nothing is allocated. Memory of a capture is used
	 * again in captures only, whose replays the program orders after what reads their results. */
	if (b && (!b->nuses || cuda_forked || block_owner(b))) {
		block_give_locked(b);
		b = NULL;
	}
	unlock_memory(device);
	if (b)
		settle_and_give(b);
}

bool cuda_captured_memory(const struct cuda_call *c, const void *data)
{
	const struct block *b;
	uint64_t capture;
	bool own;

	cuda_capture_owner(c->capture, &capture);
	lock_memory(c->device);
	b = block_find_locked(c->device, data);
	own = b && b->capture == capture;
	unlock_memory(c->device);
	return own;
}

bool cuda_memory_of_capture(int device, const void *data)
{
	const struct block *b;
	bool owned;

	lock_memory(device);
	b = block_find_locked(device, data);
	owned = b && block_owner(b);
	unlock_memory(device);
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
	const int device = t->device.index; /* maybe another one than the stream's */
	struct block *b;
	bool known = false;

	lock_memory(device);
	b = block_find_locked(device, t->storage->data);
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
	unlock_memory(device);
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
		block_free(c->device, data);
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
	give_delayed(device);
	trim(device, false);
	return cuda_end(&c, 0);
}

void cuda_memory_end_owner(int device, uint64_t owner)
{
	struct cuda_call c;

	lock_memory(device);
	block_end_owner_locked(device, owner);
	unlock_memory(device);
	/* Without a trim the memory waits for the next one. */
	if (cuda_thread_captures() || cuda_begin(&c, "cuda_graph_reset", device) < 0)
		return;
	trim(device, true);
	cuda_end(&c, 0);
}

int cuda_memory_stats(int device, struct tensor_cuda_stats *to)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_memory_stats", device);

	if (err)
		return err;
	lock_memory(device);
	block_stats_locked(device, to);
	unlock_memory(device);
	return cuda_end(&c, 0);
}

int cuda_memory_reset(int device, bool accumulated)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "cuda_memory_reset", device);

	if (err)
		return err;
	lock_memory(device);
	block_reset_stats_locked(device, accumulated);
	unlock_memory(device);
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
	block_free(device.index, data);
}

const struct tensor_allocator cuda_memory = {
	.name = "cuda",
	.alloc = memory_alloc,
	.free = memory_free,
};
