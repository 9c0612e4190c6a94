// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Moves a storage from private memory into a buffer. Its bytes are copied into a buffer of the
 * provider, whose mapping then atomically replaces the private pages, so pointers stay valid.
 * Blocks smaller than a page share it with other tensors: they move to another address, and the
 * tensors on them are updated (referrers.h).
 */
#include "base/init.h"
#include "core/referrers.h"
#include "core/trace.h"
#include "sharing/sharing.h"
#include "storage/buffer_cache.h"
#include "storage/private.h"
#include "storage/trim.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/*
 * Moves in progress. The lock is held while a storage changes its memory, so a fork sees it before
 * or after the change, but not while its bytes are copied.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t done; /* signalled when a move ends */
	struct moved *first;
} moves = { .lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER };

/*
 * Buffers that were released but could not be replaced by private memory, at the limit of mappings.
 * The lock is taken alone or inside that of moves.
 */
static struct {
	pthread_mutex_t lock;
	struct moved *first;
	struct moved
		*half; /* moves in progress when the parent forked: only their buffers are closed */
} stuck = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock_moves(void)
{
	pthread_mutex_lock(&moves.lock);
	pthread_mutex_lock(&stuck.lock);
}

static void unlock_moves(void)
{
	pthread_mutex_unlock(&stuck.lock);
	pthread_mutex_unlock(&moves.lock);
}

/*
 * The threads that move do not exist in the child: their storages stay private. Other locks may
 * still be held here, so the buffers are closed later.
 */
static void abandon_moves(void)
{
	struct moved **end = &stuck.half;

	while (*end)
		end = &(*end)->next;
	*end = moves.first;
	moves.first = NULL;
	moves.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	unlock_moves();
}

/* ---- storages that were moved ---- */

/* Maps private memory at the address of the buffer, so that no other mapping takes the address. */
static bool uncover(struct tensor_buffer *b)
{
	void *p = mmap(b->map, b->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		return false;
	/* With the properties of the memory around it, so that the kernel merges the mappings. */
	madvise(p, b->size, MADV_HUGEPAGE);
	b->map = NULL;
	return true;
}

/* False if the process cannot have another mapping; the block stays unchanged. */
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

static void trim_moved(void)
{
	struct moved *m, *half, *next;

	pthread_mutex_lock(&stuck.lock);
	m = stuck.first;
	stuck.first = NULL;
	half = stuck.half;
	stuck.half = NULL;
	pthread_mutex_unlock(&stuck.lock);
	for (; m; m = next) {
		next = m->next;
		if (!end_move(m))
			end_later(m);
	}
	for (m = half; m; m = next) {
		next = m->next;
		if (m->b)
			buffer_end(m->b);
		free(m);
	}
}

static void moved_free(struct tensor_storage *s)
{
	struct moved *m = s->owner;

	buffer_unhook(&m->b->buf);
	if (!end_move(m))
		end_later(m);
}

static struct tensor_buffer *buffer_of(struct tensor_storage *s)
{
	return &((struct moved *)s->owner)->b->buf;
}

static const struct storage_ops moved_ops = { .free = moved_free,
					      .buffer = buffer_of,
					      .shared = true };

/* ---- moving a storage ---- */

static int lay_over(struct tensor_buffer *b, void *at)
{
	void *p = mremap(b->map, b->size, b->size, MREMAP_MAYMOVE | MREMAP_FIXED, at);

	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	return 0;
}

bool storage_alone(const tensor *t)
{
	return t->owns_storage && !t->base && !tensor_live_views(t) &&
	       atomic_load_explicit(&t->storage->refs, memory_order_relaxed) == 1;
}

static void follow(tensor *t, const struct tensor_storage *s, char *to)
{
	size_t offset = (size_t)((char *)t->data - (char *)s->data);

	if (t->data && offset <= s->nbytes)
		t->data = to + offset;
}

void storage_move(tensor *t, const struct referrer *others, void *to)
{
	struct tensor_storage *s = t->storage;

	if (!others)
		follow(t, s, to);
	for (const struct referrer *r = others; r; r = r->next)
		follow(r->t, s, to);
	s->data = to;
}

/* Waits for another thread that moves the storage; false if it was moved. */
static bool begin_move(struct moved *m)
{
	struct moved *other;
	bool begun;

	pthread_mutex_lock(&moves.lock);
	do {
		for (other = moves.first; other && other->s != m->s; other = other->next)
			;
		if (other)
			pthread_cond_wait(&moves.done, &moves.lock);
	} while (other);
	begun = storage_is_private(m->s);
	if (begun) {
		m->next = moves.first;
		moves.first = m;
	}
	pthread_mutex_unlock(&moves.lock);
	return begun;
}

/* The caller holds the lock. */
static void leave_moves(struct moved *m)
{
	struct moved **at = &moves.first;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	pthread_cond_broadcast(&moves.done);
}

static int make_buffer(struct moved *m)
{
	struct cached_buffer *b = buffer_new(m->s->nbytes);

	if (!b)
		return -thread()->error.code;
	pthread_mutex_lock(&moves.lock);
	m->b = b;
	pthread_mutex_unlock(&moves.lock);
	return 0;
}

/*
 * Fills a buffer with the bytes of the storage and finds the tensors to update. Bytes after s->used
 * stay zero, because they are data of earlier storages.
 */
static int prepare_move(tensor *t, struct moved *m, const struct referrer **others)
{
	struct tensor_storage *s = t->storage;
	int err = make_buffer(m);

	if (err < 0)
		return err;
	s->ops->describe_release(s, m);
	if (m->over && m->b->buf.size != s->nbytes)
		return tensor_fail(EOPNOTSUPP, "share_memory: a buffer of %zu bytes came for %zu",
				   m->b->buf.size, s->nbytes);
	if (!m->over && !storage_alone(t) && referrers_find(t, others) < 0)
		return tensor_fail(ENOMEM,
				   "share_memory: no memory to find the tensors of the storage");
	memcpy(m->b->buf.map, s->data, s->used);
	return 0;
}

static int lay_over_storage(struct moved *m)
{
	int err = lay_over(&m->b->buf, m->s->data);

	return err < 0 ? tensor_fail(-err,
				     "share_memory: the buffer cannot be laid over %zu bytes: %s",
				     m->s->nbytes, strerror(-err)) :
			 0;
}

/* Ends the move: changes the storage unless an error occurred. */
static int end_of_move(tensor *t, struct moved *m, const struct referrer *others, int err)
{
	struct tensor_storage *s = t->storage;

	pthread_mutex_lock(&moves.lock);
	if (!err && m->over)
		err = lay_over_storage(m);
	else if (!err)
		storage_move(t, others, m->b->buf.map);
	if (!err) {
		s->owner = m;
		__atomic_store_n(&s->ops, &moved_ops, __ATOMIC_RELEASE);
		storage_version_begin(s);
	}
	leave_moves(m);
	pthread_mutex_unlock(&moves.lock);
	return err;
}

bool storage_is_private(const struct tensor_storage *s)
{
	return storage_ops_of(s)->describe_release;
}

int storage_share(tensor *t)
{
	const struct referrer *others = NULL;
	struct moved *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return tensor_fail(ENOMEM, "share_memory: no memory for a buffer's description");
	m->s = t->storage;
	if (!begin_move(m)) {
		free(m);
		return 0;
	}
	err = prepare_move(t, m, &others);
	err = end_of_move(t, m, others, err);
	if (err < 0) {
		if (m->b)
			buffer_end(m->b);
		free(m);
	}
	return err;
}

TENSOR_EXPORT int tensor_share_memory(tensor *t)
{
	TRACE_SPAN("sharing", "tensor_share_memory");
	if (tensor_absent("share_memory", t))
		return -thread()->error.code;
	trace_tensor(&trace_span, t);
	if (t->device.type != TENSOR_CPU || t->ext)
		return tensor_fail(ENOTSUP,
				   "share_memory: a strided tensor of plain numbers in host "
				   "memory is needed, got a %s one %s of another kind or on "
				   "another device",
				   tensor_layout_name(t->layout), SHAPE_STR(t));
	/* Read once, before the rest: another thread may be moving the storage into a buffer. */
	if (!storage_is_private(t->storage))
		return tensor_storage_buffer(t->storage) ?
			       0 :
			       tensor_fail(ENOTSUP,
					   "share_memory: the memory of the tensor %s is not the "
					   "library's own",
					   SHAPE_STR(t));
	if (t->storage->readonly)
		return tensor_fail(ENOTSUP,
				   "share_memory: the tensor %s is read-only, a part of a sparse "
				   "one: clone it",
				   SHAPE_STR(t));
	return storage_share(t);
}

INIT(INIT_SHAREABLE) static void shareable_init(void)
{
	pthread_atfork(lock_moves, unlock_moves, abandon_moves);
	trim_register(TRIM_MOVED, trim_moved);
}
