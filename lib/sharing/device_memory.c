// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tensors on CUDA devices in channels and as dma-bufs (docs/sharing.md). Before its first send or export a storage moves
 * from the allocator's memory into a block that the driver can share; its tensors get the new address (referrers.h). A
 * receiver maps a block once for each channel: the number of a block is the sender's, and means nothing to another channel.
 */
#include "base/init.h"
#include "core/referrers.h"
#include "sharing/sharing.h"
#include "storage/devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <tensor/cuda.h>
#include <time.h>

/* The memory of a storage that this process shares. */
struct shared_memory {
	struct tensor_buffer buf; /* identity and address, for the tables of channels */
	const struct cuda_share_calls *calls;
	struct cuda_share_block *block;
};

/* Held while a storage moves; also protects the numbers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tensor_identity last;

/* A fork does not wait for it, because a move takes locks of the plugin; the child can send nothing of CUDA. */
static void free_lock(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

INIT(INIT_SHAREABLE) static void device_memory_init(void)
{
	pthread_atfork(NULL, NULL, free_lock);
}

/* ---- storages ---- */

static struct shared_memory *of_buffer(const struct tensor_buffer *b)
{
	return (struct shared_memory *)((char *)b - offsetof(struct shared_memory, buf));
}

static void shared_free(struct tensor_storage *s)
{
	struct shared_memory *m = s->owner;

	if (m->buf.shared && buffer_forget)
		buffer_forget(&m->buf);
	m->calls->release(m->block);
	free(m);
}

static void imported_free(struct tensor_storage *s)
{
	cuda_share_calls()->release(s->owner);
}

static const struct storage_ops shared_ops = { .free = shared_free, .shared = true };
static const struct storage_ops imported_ops = { .free = imported_free, .shared = true };

struct tensor_buffer *device_buffer(const struct tensor_storage *s)
{
	return storage_ops_of(s) == &shared_ops ? &((struct shared_memory *)s->owner)->buf : NULL;
}

/* ---- out ---- */

static int export_block(struct tensor_buffer *b, unsigned rights)
{
	const struct shared_memory *m = of_buffer(b);

	return m->calls->export("send", m->block);
}

const struct tensor_provider cuda_provider = { .name = "cuda", .export = export_block };

int device_describe(const struct tensor_buffer *b, struct device_note *n)
{
	const struct shared_memory *m = of_buffer(b);

	n->size = m->block->size;
	return m->calls->uuid(m->block->device, n->uuid);
}

/*
 * A number that another process does not use, also if it sends on the same channel: the receiver of a wrong one would take
 * the memory for another. The caller holds the lock.
 */
static struct tensor_identity next_identity(void)
{
	if (!last.dev && getrandom(&last.dev, sizeof(last.dev), GRND_NONBLOCK) < 0) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		last.dev = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	last.dev |= (uint64_t)1 << 63; /* not the number of a file system */
	last.ino++;
	return last;
}

/* Whether tensors alone use the storage of t: nothing else notices that its address changes. */
static bool tensors_alone(const tensor *t, const struct referrer *others)
{
	int owners = 0;

	for (const struct referrer *r = others; r; r = r->next)
		owners += r->t->owns_storage;
	return atomic_load_explicit(&t->storage->refs, memory_order_relaxed) == owners;
}

static int find_tensors(const char *op, tensor *t, const struct referrer **others)
{
	*others = NULL;
	if (storage_alone(t))
		return 0;
	if (referrers_find(t, others) < 0)
		return tensor_fail(ENOMEM, "%s: no memory to find the tensors of the storage", op);
	if (!tensors_alone(t, *others))
		return tensor_fail(
			EBUSY,
			"%s: the memory of the tensor %s is in use outside of tensors, by "
			"a graph or another library, and would have to move: clone it",
			op, SHAPE_STR(t));
	return 0;
}

/* Puts the storage of t on the block. */
static void change_memory(tensor *t, const struct referrer *others, struct shared_memory *m)
{
	struct tensor_storage *s = t->storage;
	const struct tensor_allocator *a = s->owner;
	void *before = s->data;

	m->buf = (struct tensor_buffer){ .provider = &cuda_provider,
					 .map = m->block->data,
					 .size = m->block->size,
					 .id = next_identity(),
					 .fd = -1,
					 .rights = SHARE_RW };
	storage_move(t, others, m->block->data);
	s->owner = m;
	__atomic_store_n(&s->ops, &shared_ops, __ATOMIC_RELEASE);
	a->free(a, s->device, before, s->nbytes);
}

/* The caller holds the lock. */
static int move_to_block(const char *op, tensor *t, const struct cuda_share_calls *calls)
{
	struct shared_memory *m = calloc(1, sizeof(*m));
	const struct referrer *others;
	int err;

	if (!m)
		return tensor_fail(ENOMEM, "%s: no memory for a block's description", op);
	m->calls = calls;
	err = calls->make(op, t->device.index, t->storage->data, t->storage->used, &m->block);
	if (err < 0)
		goto free_memory;
	err = find_tensors(op, t, &others);
	if (err < 0)
		goto release_block;
	change_memory(t, others, m);
	return 0;
release_block:
	calls->release(m->block);
free_memory:
	free(m);
	return err;
}

/* Moves the storage of t to a block of its own unless it has one, or has memory that is not the allocator's. */
static int make_shareable(const char *op, tensor *t, const struct cuda_share_calls *calls)
{
	int err;

	if (!device_storage_is_private(t->storage) || t->storage->readonly)
		return 0;
	/* What holds the storage until queued work has ended lets go of it. */
	err = calls->quiesce(op, t->device.index);
	if (err < 0)
		return err;
	pthread_mutex_lock(&lock);
	if (device_storage_is_private(t->storage))
		err = move_to_block(op, t, calls);
	pthread_mutex_unlock(&lock);
	return err;
}

int device_send_check(tensor *t, unsigned flags)
{
	const struct cuda_share_calls *calls = cuda_share_calls();
	int err;

	if (!calls)
		return -thread()->error.code;
	if (flags & TENSOR_SEND_READONLY)
		return tensor_fail(
			EOPNOTSUPP,
			"send: CUDA maps memory of other processes for reading and writing "
			"only: a tensor on its devices cannot be sent read-only");
	err = make_shareable("send", t, calls);
	if (err < 0)
		return err;
	if (!device_buffer(t->storage))
		return tensor_fail(
			EOPNOTSUPP,
			"send: the memory of the tensor %s is of another %s, which alone can "
			"send it: clone it",
			SHAPE_STR(t),
			storage_ops_of(t->storage) == &imported_ops ? "process" : "library");
	return calls->settle("send", t->device.index);
}

/* ---- dma-bufs ---- */

/* The block that is the storage's memory, also that of another process, or NULL. */
static const struct cuda_share_block *block_of(const struct tensor_storage *s)
{
	const struct tensor_buffer *b = device_buffer(s);

	if (b)
		return of_buffer(b)->block;
	return storage_ops_of(s) == &imported_ops ? s->owner : NULL;
}

TENSOR_EXPORT int tensor_cuda_export_dmabuf(tensor *t, uint64_t *offset, uint64_t *size)
{
	const struct cuda_share_calls *calls;
	const struct cuda_share_block *b;
	int fd;

	if (tensor_absent("cuda_export_dmabuf", t))
		return -thread()->error.code;
	if (!offset || !size)
		return tensor_fail(EINVAL, "cuda_export_dmabuf: offset or size is NULL");
	if (t->device.type != TENSOR_CUDA || t->layout != TENSOR_STRIDED || t->ext)
		return tensor_fail(
			EINVAL,
			"cuda_export_dmabuf: a strided tensor of plain numbers on a CUDA "
			"device is needed, got %s",
			SHAPE_STR(t));
	calls = cuda_share_calls();
	if (!calls)
		return -thread()->error.code;
	fd = make_shareable("cuda_export_dmabuf", t, calls);
	if (fd < 0)
		return fd;
	b = block_of(t->storage);
	if (!b)
		return tensor_fail(EOPNOTSUPP,
				   "cuda_export_dmabuf: the memory of the tensor %s is of another "
				   "library: clone it",
				   SHAPE_STR(t));
	fd = calls->dmabuf("cuda_export_dmabuf", b);
	if (fd < 0)
		return fd;
	*offset = (uint64_t)((const char *)t->data - (const char *)b->data);
	*size = b->size;
	return fd;
}

/* ---- in ---- */

struct tensor_storage *device_import(int fd, const struct device_note *n)
{
	const struct cuda_share_calls *calls = cuda_share_calls();
	struct cuda_share_block *b;
	struct tensor_storage *s;

	if (!calls || calls->import("recv", n->uuid, n->size, fd, &b) < 0)
		return NULL;
	s = storage_alloc_struct();
	if (!s) {
		calls->release(b);
		return NULL;
	}
	s->ops = &imported_ops;
	s->owner = b;
	s->device = TENSOR_DEVICE_CUDA(b->device);
	s->data = b->data;
	s->nbytes = b->size;
	s->used = b->size;
	return s;
}
