// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A storage in private memory becomes shareable: its bytes are copied into a buffer of the provider,
 * whose mapping is then laid over the old memory, at once, so that every pointer to it stays good. Blocks
 * smaller than a page lie beside those of other tensors. They go to another address, and the tensors
 * that are on them are told.
 */
#include "cache.h"
#include "heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Released, but private memory could not be mapped in their place: at the limit of mappings. Taken
 * alone or within `lock`. */
static struct {
	pthread_mutex_t lock;
	struct moved *first;
} stuck = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_moves(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&stuck.lock);
}

static void unlock_moves(void)
{
	pthread_mutex_unlock(&stuck.lock);
	pthread_mutex_unlock(&lock);
}

/* After the locks that are taken while it is held. */
__attribute__((constructor(104))) static void watch_forks(void)
{
	pthread_atfork(lock_moves, unlock_moves, unlock_moves);
}

/* ---- who is on the storage ----------------------------------------------------------------------- */

struct survey {
	const struct tensor_storage *s;
	char *old, *new; /* `new` NULL: only the extent is wanted */
	size_t size;
	size_t used; /* bytes up to the end of the last tensor */
};

/* What lies in the block may be a tensor's remains, or another thread's at work: nothing that is read
 * is believed, and a pointer is changed only if it still is one into the old memory. */
__attribute__((no_sanitize("thread"))) static void look_at(void *block, void *ctx)
{
	struct survey *v = ctx;
	tensor *t = block;
	char *at = t->data;
	uint64_t last = 0;

	/* Released descriptions keep what they had: what they saw is not this tensor's. */
	if (atomic_load_explicit(&t->refs, memory_order_relaxed) <= 0)
		return;
	if (t->storage != v->s || at < v->old || at >= v->old + v->size || t->dtype >= TENSOR_DTYPE_COUNT)
		return;
	for (int i = 0; i < t->ndim && i < TENSOR_MAX_DIMS; i++)
		last += ((uint64_t)t->sizes[i] - 1) * (uint64_t)t->strides[i];
	last = (size_t)(at - v->old) + (last + 1) * dtype_sizes[t->dtype];
	if (last > v->size)
		last = v->size;
	if (t->numel && last > v->used)
		v->used = last;
	if (v->new)
		__atomic_compare_exchange_n(&t->data, (void **)&at, v->new + (at - v->old), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Has nobody else ever seen the storage? Then nobody else has to be looked for. */
static bool alone(const tensor *t)
{
	return t->owns_storage && !t->base && !tensor_live_views(t) &&
	       atomic_load_explicit(&t->storage->refs, memory_order_relaxed) == 1;
}

static void survey(struct survey *v, tensor *t)
{
	if (alone(t))
		look_at(t, v);
	else
		heap_each(CLASS_TENSOR, look_at, v);
}

/* ---- storages that were moved ----------------------------------------------------------------------- */


/* Private memory again where the buffer lay. Without it the place would be anybody's. */
static bool uncover(struct tensor_buffer *b)
{
	void *p = mmap(b->map, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0);

	if (p == MAP_FAILED)
		return false;
	/* As the memory around it, with which the kernel makes one mapping of it only then. */
	madvise(p, b->size, MADV_HUGEPAGE);
	b->map = NULL;
	return true;
}

/* Without a mapping that the process may have, the block stays as it is: false. */
static bool end_move(struct moved *m)
{
	if (m->over && !m->mapping && !uncover(&m->b->buf))
		return false;
	buffer_end(m->b);
	m->end(m);
	free(m);
	return true;
}

static void end_later(struct moved *m)
{
	pthread_mutex_lock(&stuck.lock);
	m->next = stuck.first;
	stuck.first = m;
	pthread_mutex_unlock(&stuck.lock);
}

void moved_trim(void)
{
	struct moved *m, *next;

	pthread_mutex_lock(&stuck.lock);
	m = stuck.first;
	stuck.first = NULL;
	pthread_mutex_unlock(&stuck.lock);
	for (; m; m = next) {
		next = m->next;
		if (!end_move(m))
			end_later(m);
	}
}

static void moved_free(struct tensor_storage *s)
{
	struct moved *m = s->owner;

	buffer_unhook(&m->b->buf);
	if (!end_move(m))
		end_later(m);
}

static const struct storage_ops moved_ops = {.free = moved_free, .shared = true};

struct tensor_buffer *moved_buffer(struct tensor_storage *s)
{
	return s->ops == &moved_ops ? &((struct moved *)s->owner)->b->buf : NULL;
}

/* ---- the move ------------------------------------------------------------------------------------- */

static int lay_over(struct tensor_buffer *b, void *at)
{
	void *p = mremap(b->map, b->size, b->size, MREMAP_MAYMOVE | MREMAP_FIXED, at);

	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	return 0;
}

/* The buffer takes the place of whole pages. What lies behind the last tensor may be what others had
 * there before: it does not go along. */
static int move_over(tensor *t, struct tensor_buffer *b)
{
	struct tensor_storage *s = t->storage;
	struct survey v = {.s = s, .old = s->data, .size = s->nbytes};

	if (b->size != s->nbytes)
		return -EOPNOTSUPP;
	survey(&v, t);
	memcpy(b->map, s->data, v.used);
	return lay_over(b, s->data);
}

/* The storage goes to the buffer, and the tensors on it follow. */
static void move_beside(tensor *t, struct tensor_buffer *b)
{
	struct tensor_storage *s = t->storage;
	struct survey v = {.s = s, .old = s->data, .size = s->nbytes, .new = b->map};

	memcpy(b->map, s->data, s->nbytes);
	s->data = b->map;
	survey(&v, t);
	memset((char *)b->map + v.used, 0, s->nbytes - v.used);
}

/* With the lock. */
static int move(tensor *t, struct moved *m)
{
	struct tensor_storage *s = t->storage;
	int err = 0;

	m->b = buffer_new(s->nbytes);
	if (!m->b)
		return -thread()->error.code;
	s->ops->lend(s, m);
	if (m->over)
		err = move_over(t, &m->b->buf);
	else
		move_beside(t, &m->b->buf);
	if (err < 0) {
		buffer_end(m->b);
		return tensor_fail(-err, "share_memory: the buffer cannot be laid over %zu bytes: %s",
				   s->nbytes, strerror(-err));
	}
	s->ops = &moved_ops;
	s->owner = m;
	return 0;
}

bool storage_is_private(const struct tensor_storage *s)
{
	return s->ops->lend;
}

int storage_share(tensor *t)
{
	struct moved *m = calloc(1, sizeof(*m));
	int err = 0;

	if (!m)
		return tensor_fail(ENOMEM, "share_memory: no memory for a buffer's description");
	pthread_mutex_lock(&lock);
	if (storage_is_private(t->storage)) {
		err = move(t, m);
		if (!err)
			m = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(m);
	return err;
}

TENSOR_EXPORT int tensor_share_memory(tensor *t)
{
	if (!t)
		return null_argument_code("share_memory");
	if (t->device.type != TENSOR_CPU || t->ext)
		return tensor_fail(ENOTSUP, "share_memory: a strided tensor of plain numbers in host "
					    "memory is needed, got a %s one %s of another kind or on "
					    "another device", tensor_layout_name(t->layout), SHAPE_STR(t));
	if (storage_buffer(t->storage))
		return 0;
	if (!storage_is_private(t->storage))
		return tensor_fail(ENOTSUP, "share_memory: the memory of the tensor %s is not the "
					    "library's own", SHAPE_STR(t));
	if (t->storage->readonly)
		return tensor_fail(ENOTSUP, "share_memory: the tensor %s is read-only, a part of a sparse "
					    "one: clone it", SHAPE_STR(t));
	return storage_share(t);
}
