// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Buffers of the provider. A shareable storage has a buffer of its own. Freed buffers stay mapped,
 * in lists by rounded size, unless another process may have them mapped.
 */
#include "storage/buffer_cache.h"

#include "base/error.h"
#include "base/init.h"
#include "base/profile.h"
#include "base/thread.h"
#include "storage/heap.h"
#include "storage/large.h"
#include "storage/private.h"
#include "storage/trim.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_CLASSES 512

static struct {
	pthread_mutex_t lock;
	struct cached_buffer *buffers[BUFFER_CLASSES];
	struct tensor_cache_stats stats;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock_cache(void)
{
	pthread_mutex_lock(&cache.lock);
}

static void unlock_cache(void)
{
	pthread_mutex_unlock(&cache.lock);
}

/* The caller holds the lock. Removes all cached buffers. */
static struct cached_buffer *take_all(void)
{
	struct cached_buffer *all = NULL;

	for (unsigned c = 0; c < BUFFER_CLASSES; c++) {
		while (cache.buffers[c]) {
			struct cached_buffer *b = cache.buffers[c];

			cache.buffers[c] = b->next;
			b->next = all;
			all = b;
		}
	}
	cache.stats.cached = 0;
	return all;
}

static void close_all(struct cached_buffer *b)
{
	struct cached_buffer *next;

	for (; b; b = next) {
		next = b->next;
		buffer_close(&b->buf);
		free(b);
	}
}

static void trim_buffers(void)
{
	struct cached_buffer *all;

	lock_cache();
	all = take_all();
	unlock_cache();
	close_all(all);
}

static uint64_t memory_in_use(void)
{
	struct tensor_cache_stats s;

	tensor_cache_stats(&s);
	return s.used + s.blocks;
}

INIT(INIT_CACHE) static void cache_init(void)
{
	profile_memory = memory_in_use;
	pthread_atfork(lock_cache, unlock_cache, unlock_cache);
	trim_register(TRIM_BUFFERS, trim_buffers);
}

TENSOR_EXPORT void tensor_cache_trim(void)
{
	trim_all();
}

/* Clear the descriptor of a cached buffer so that tensorstat does not list it as live. */
static void undescribe(struct tensor_buffer *b)
{
	static const struct tensor_descriptor nothing;

	b->provider->describe(b, &nothing);
	b->described = false;
}

static void buffer_free(struct tensor_storage *s)
{
	struct cached_buffer *b = s->owner;
	size_t size = b->buf.size;
	unsigned c;
	bool keep;

	if (b->buf.described && !b->buf.shared)
		undescribe(&b->buf);
	lock_cache();
	cache.stats.used -= size;
	/*
	 * Memory that another process may have mapped, or that the kernel may reclaim, is not
	 * reused.
	 */
	keep = !b->buf.shared && !b->buf.purgeable &&
	       b->buf.generation == atomic_load(&fork_generation) &&
	       cache.stats.cached + size <= cache_limit();
	if (keep) {
		cache_round(size, &c);
		b->next = cache.buffers[c];
		cache.buffers[c] = b;
		cache.stats.cached += size;
	}
	unlock_cache();
	if (!keep) {
		buffer_close(&b->buf);
		free(b);
	}
}

void buffer_end(struct cached_buffer *b)
{
	lock_cache();
	cache.stats.used -= b->buf.size;
	unlock_cache();
	buffer_close(&b->buf);
	free(b);
}

static struct tensor_buffer *buffer_of(struct tensor_storage *s)
{
	return &((struct cached_buffer *)s->owner)->buf;
}

static const struct storage_ops buffer_ops = { .free = buffer_free,
					       .buffer = buffer_of,
					       .shared = true };

/* A cached buffer of this class that existed in no other process at a fork, or NULL. */
static struct cached_buffer *take_cached(unsigned c)
{
	struct cached_buffer *b, *stale = NULL;

	lock_cache();
	while ((b = cache.buffers[c])) {
		cache.buffers[c] = b->next;
		cache.stats.cached -= b->buf.size;
		if (b->buf.generation == atomic_load(&fork_generation))
			break;
		b->next = stale;
		stale = b;
	}
	if (b)
		cache.stats.used += b->buf.size;
	unlock_cache();
	cache_count(b);
	close_all(stale);
	return b;
}

static int alloc_fail(const struct tensor_provider *p, size_t size, int err)
{
	switch (-err) {
	case EDQUOT:
		return tensor_fail(ENOMEM,
				   "%s: no buffer of %zu bytes: the limit of the tensor module "
				   "is reached",
				   p->name, size);
	case EMFILE:
		return tensor_fail(EMFILE,
				   "%s: no buffer of %zu bytes: as many files are open as "
				   "RLIMIT_NOFILE permits (%llu)",
				   p->name, size, fd_limit());
	case EFBIG:
		return tensor_fail(ENOMEM,
				   "%s: no buffer of %zu bytes: more than RLIMIT_FSIZE permits",
				   p->name, size);
	default:
		return tensor_fail(-err, "%s: no buffer of %zu bytes: %s", p->name, size,
				   strerror(-err));
	}
}

struct cached_buffer *buffer_new(size_t size)
{
	const struct tensor_provider *p = tensor_provider();
	struct cached_buffer *b = calloc(1, sizeof(*b));
	int err;

	if (!b) {
		tensor_fail(ENOMEM, "no memory for a buffer's description");
		return NULL;
	}
	err = p->alloc(size, &b->buf);
	if (err == -EMFILE && fd_limit_raise())
		err = p->alloc(size, &b->buf);
	/* Cached memory counts against the limits of the process. */
	if (err == -ENOMEM || err == -EDQUOT || err == -EMFILE) {
		trim_all();
		err = p->alloc(size, &b->buf);
	}
	if (err < 0) {
		free(b);
		alloc_fail(p, size, err);
		return NULL;
	}
	b->buf.generation = atomic_load(&fork_generation);
	lock_cache();
	cache.stats.buffers++;
	cache.stats.used += b->buf.size;
	unlock_cache();
	return b;
}

static void on_buffer(struct tensor_storage *s, struct cached_buffer *b)
{
	s->ops = &buffer_ops;
	s->owner = b;
	s->device = TENSOR_DEVICE_CPU;
	s->data = b->buf.map;
	s->nbytes = b->buf.size;
	s->readonly = b->buf.readonly;
	storage_version_begin(s);
}

struct tensor_storage *buffer_storage_alloc(size_t nbytes)
{
	struct tensor_storage *s = storage_alloc_struct();
	struct cached_buffer *b;
	unsigned c;
	size_t size;

	if (!s)
		return NULL;
	size = cache_round(nbytes, &c);
	b = take_cached(c);
	if (!b)
		b = buffer_new(size);
	if (!b) {
		storage_free_struct(s);
		return NULL;
	}
	on_buffer(s, b);
	s->used = nbytes;
	return s;
}

struct tensor_storage *cache_alloc(size_t nbytes, bool shareable)
{
	if (unlikely(nbytes > ((size_t)1 << 46))) {
		tensor_fail(ENOMEM, "no memory for %zu bytes", nbytes);
		return NULL;
	}
	return likely(!shareable) ? private_storage_alloc(nbytes) : buffer_storage_alloc(nbytes);
}

TENSOR_EXPORT void tensor_cache_stats(struct tensor_cache_stats *stats)
{
	lock_cache();
	*stats = cache.stats;
	unlock_cache();
	cache_counts(&stats->hits, &stats->misses);
	large_stats(&stats->used, &stats->cached);
	heap_stats(&stats->arenas, &stats->blocks);
}
