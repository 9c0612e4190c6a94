// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The caching allocator of host memory. Freed memory is kept warm (mapped, faulted in) and given
 * out again, which is where most of an operator's time goes otherwise.
 *
 * From OWN_BUFFER up, and for whatever was made shareable, a storage has a provider's buffer to
 * itself; freed ones wait in lists by rounded size. Smaller storages are blocks of size classes,
 * carved from arenas of private huge pages: never shared, so that a fork copies them on write
 * (docs/decisions/0001-private-arenas.md). Each thread keeps a magazine of free blocks for each
 * class; full and empty magazines trade half their blocks with a global stack.
 */
#include "provider.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define OWN_BUFFER  ((size_t)1 << 20)
#define ARENA	    ((size_t)4 << 20)
#define HUGE	    ((size_t)2 << 20)
#define SMALL_STEP  64u
#define SMALL_MAX   1024u

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define poison(p, n)   __asan_poison_memory_region(p, n)
#define unpoison(p, n) __asan_unpoison_memory_region(p, n)
#else
#define poison(p, n)   ((void)0)
#define unpoison(p, n) ((void)0)
#endif

/* ---- size classes: steps of 64 bytes up to 1 KiB, then four a doubling ------------------- */

static inline unsigned class_of(size_t n)
{
	unsigned msb;

	if (n <= SMALL_MAX)
		return n ? (unsigned)((n - 1) / SMALL_STEP) : 0;
	msb = 63 - __builtin_clzl(n - 1);
	return 16 + (msb - 10) * 4 + (unsigned)((n - 1) >> (msb - 2)) - 4;
}

static inline size_t class_size(unsigned c)
{
	unsigned k = c - 16;

	return c < 16 ? (c + 1) * SMALL_STEP : (size_t)(k % 4 + 5) << (k / 4 + 8);
}

/* How many free blocks of a class a thread may sit on: at most 2 MiB of them. */
static uint8_t magazine_limit[BLOCK_CLASSES];

static void set_magazine_limits(void)
{
	for (unsigned c = 0; c < BLOCK_CLASSES; c++) {
		size_t n = HUGE / class_size(c);

		magazine_limit[c] = n > MAGAZINE ? MAGAZINE : n < 2 ? 2 : n;
	}
}

/* ---- the global side ------------------------------------------------------------------------ */

struct block_stack {
	void **block;
	size_t n, cap;
};

/* A free buffer, kept for a storage of the same rounded size. */
struct cached_buffer {
	struct tensor_buffer buf;
	struct cached_buffer *next;
};

#define BUFFER_CLASSES 512

static struct {
	pthread_mutex_t lock;
	struct block_stack blocks[BLOCK_CLASSES];
	char *arena, *arena_end; /* what is left of the newest arena */
	struct cached_buffer *buffers[BUFFER_CLASSES];
	uint64_t limit; /* of cached bytes */
	struct tensor_cache_stats stats;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_cache(void)
{
	pthread_mutex_lock(&cache.lock);
}

static void unlock_cache(void)
{
	pthread_mutex_unlock(&cache.lock);
}

__attribute__((constructor(101))) static void cache_init(void)
{
	const char *text = secure_getenv("TENSOR_CACHE_LIMIT");
	char *end;

	set_magazine_limits();
	cache.limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
	if (text && *text) {
		uint64_t n = strtoull(text, &end, 0);

		if (!*end)
			cache.limit = n;
	}
	pthread_atfork(lock_cache, unlock_cache, unlock_cache);
}

static int new_arena(void)
{
	/* One huge page more than needed, so that the arena can begin on a boundary. */
	char *p = mmap(NULL, ARENA + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	char *start;

	if (p == MAP_FAILED)
		return -errno;
	start = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	if (start > p)
		munmap(p, start - p);
	munmap(start + ARENA, p + HUGE - start);
	madvise(start, ARENA, MADV_HUGEPAGE);
	poison(start, ARENA);
	cache.arena = start;
	cache.arena_end = start + ARENA;
	return 0;
}

/* With the lock: one block of the class, or NULL. */
static void *carve(unsigned c)
{
	size_t size = class_size(c);
	void *p;

	if ((size_t)(cache.arena_end - cache.arena) < size && new_arena() < 0)
		return NULL;
	p = cache.arena;
	cache.arena += size;
	return p;
}

/* Puts half a magazine of blocks into m; 0 or -ENOMEM. */
static int refill(struct magazine *m, unsigned c)
{
	unsigned want = magazine_limit[c] / 2;
	struct block_stack *s = &cache.blocks[c];

	lock_cache();
	while (m->n < want && s->n)
		m->slot[m->n++] = s->block[--s->n];
	while (m->n < want) {
		void *p = carve(c);

		if (!p)
			break;
		m->slot[m->n++] = p;
	}
	unlock_cache();
	return m->n ? 0 : -ENOMEM;
}

/* Moves blocks of m beyond `keep` to the global stack. */
static void drain(struct magazine *m, unsigned c, unsigned keep)
{
	struct block_stack *s = &cache.blocks[c];

	lock_cache();
	while (m->n > keep) {
		if (s->n == s->cap) {
			size_t cap = s->cap ? 2 * s->cap : 64;
			void **grown = realloc(s->block, cap * sizeof(*grown));

			if (!grown)
				break; /* the rest stays in the magazine, or is lost at exit */
			s->block = grown;
			s->cap = cap;
		}
		s->block[s->n++] = m->slot[--m->n];
	}
	unlock_cache();
}

void storage_thread_exit(struct tensor_thread *th)
{
	for (unsigned c = 0; c < BLOCK_CLASSES; c++)
		if (th->blocks[c].n)
			drain(&th->blocks[c], c, 0);
	while (th->tensors.n)
		free(th->tensors.slot[--th->tensors.n]);
	while (th->storages.n)
		free(th->storages.slot[--th->storages.n]);
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static void block_free(struct tensor_storage *s)
{
	unsigned c = s->size_class;
	struct tensor_thread *th = thread();
	struct magazine *m = &th->blocks[c];

	poison(s->data, class_size(c));
	if (unlikely(m->n >= magazine_limit[c]))
		drain(m, c, magazine_limit[c] / 2);
	if (likely(m->n < MAGAZINE))
		m->slot[m->n++] = s->data;
}

static const struct storage_ops block_ops = {.free = block_free};

bool storage_in_arena(const struct tensor_storage *s)
{
	return s->ops == &block_ops;
}

static inline struct tensor_storage *block_alloc(size_t nbytes)
{
	unsigned c = class_of(nbytes);
	struct tensor_storage *s = storage_alloc_struct();
	struct magazine *m;

	if (unlikely(!s))
		return NULL;
	m = &thread()->blocks[c];
	if (unlikely(!m->n) && refill(m, c) < 0) {
		free(s);
		tensor_fail(ENOMEM, "no memory for %zu bytes", nbytes);
		return NULL;
	}
	s->data = m->slot[--m->n];
	s->nbytes = class_size(c);
	unpoison(s->data, s->nbytes);
	s->ops = &block_ops;
	s->owner = NULL;
	s->size_class = c;
	s->device = TENSOR_DEVICE_CPU;
	return s;
}

/* ---- buffers of their own ------------------------------------------------------------------ */

/* Rounds to eight steps a doubling, whole huge pages from 2 MiB up; the class is its index. */
static size_t round_buffer(size_t n, unsigned *c)
{
	size_t granule;
	unsigned msb;

	if (n < 4096)
		n = 4096;
	msb = 63 - __builtin_clzl(n);
	granule = (size_t)1 << (msb - 3);
	if (n >= HUGE && granule < HUGE)
		granule = HUGE;
	if (granule < 4096)
		granule = 4096;
	n = (n + granule - 1) & ~(granule - 1);
	msb = 63 - __builtin_clzl(n);
	*c = (msb - 12) * 8 + (unsigned)((n >> (msb - 3)) & 7);
	return n;
}

/* With the lock: takes all cached buffers out. */
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

TENSOR_EXPORT void tensor_cache_trim(void)
{
	struct cached_buffer *all, *next;

	lock_cache();
	all = take_all();
	unlock_cache();
	for (; all; all = next) {
		next = all->next;
		unpoison(all->buf.map, all->buf.size);
		buffer_close(&all->buf);
		free(all);
	}
}

/* What waits for reuse is about nothing, and says so to whoever lists buffers. */
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
	/* Memory that another process may see, or the kernel may take, is not reused. */
	keep = !b->buf.shared && !b->buf.purgeable &&
	       b->buf.generation == atomic_load(&fork_generation) &&
	       cache.stats.cached + size <= cache.limit;
	if (keep) {
		round_buffer(size, &c);
		b->next = cache.buffers[c];
		cache.buffers[c] = b;
		cache.stats.cached += size;
		poison(b->buf.map, size);
	}
	unlock_cache();
	if (!keep) {
		buffer_close(&b->buf);
		free(b);
	}
}

static const struct storage_ops buffer_ops = {.free = buffer_free};

/* A cached buffer of this class that no fork has made visible elsewhere, or NULL. */
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
	if (b) {
		cache.stats.hits++;
		cache.stats.used += b->buf.size;
	}
	unlock_cache();
	while (stale) {
		struct cached_buffer *next = stale->next;

		unpoison(stale->buf.map, stale->buf.size);
		buffer_close(&stale->buf);
		free(stale);
		stale = next;
	}
	if (b)
		unpoison(b->buf.map, b->buf.size);
	return b;
}

static struct cached_buffer *new_buffer(size_t size)
{
	const struct tensor_provider *p = tensor_provider();
	struct cached_buffer *b = calloc(1, sizeof(*b));
	int err;

	if (!b) {
		tensor_fail(ENOMEM, "no memory for a buffer's description");
		return NULL;
	}
	err = p->alloc(size, &b->buf);
	/* What the cache keeps counts against every limit that there is. */
	if (err == -ENOMEM || err == -EDQUOT || err == -EMFILE) {
		tensor_cache_trim();
		err = p->alloc(size, &b->buf);
	}
	if (err < 0) {
		free(b);
		tensor_fail(err == -EDQUOT ? ENOMEM : -err, "%s: no buffer of %zu bytes: %s",
			    p->name, size,
			    err == -EDQUOT ? "the limit of the tensor module is reached" :
					     strerror(-err));
		return NULL;
	}
	b->buf.generation = atomic_load(&fork_generation);
	lock_cache();
	cache.stats.misses++;
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
}

static struct tensor_storage *buffer_alloc(size_t nbytes)
{
	struct tensor_storage *s = storage_alloc_struct();
	struct cached_buffer *b;
	unsigned c;
	size_t size;

	if (!s)
		return NULL;
	size = round_buffer(nbytes, &c);
	b = take_cached(c);
	if (!b)
		b = new_buffer(size);
	if (!b) {
		free(s);
		return NULL;
	}
	on_buffer(s, b);
	return s;
}

struct tensor_storage *cache_alloc(size_t nbytes, bool shareable)
{
	if (likely(nbytes < OWN_BUFFER && !shareable))
		return block_alloc(nbytes);
	if (unlikely(nbytes > ((size_t)1 << 46))) {
		tensor_fail(ENOMEM, "no memory for %zu bytes", nbytes);
		return NULL;
	}
	return buffer_alloc(nbytes);
}

TENSOR_EXPORT struct tensor_buffer *storage_buffer(struct tensor_storage *s)
{
	if (s->ops == &buffer_ops)
		return &((struct cached_buffer *)s->owner)->buf;
	return import_buffer(s);
}

TENSOR_EXPORT void tensor_cache_stats(struct tensor_cache_stats *stats)
{
	lock_cache();
	*stats = cache.stats;
	unlock_cache();
}
