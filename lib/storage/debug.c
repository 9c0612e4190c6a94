// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A storage is one allocation of the C library: header, red zone, bytes, red zone. A release checks
 * the red zones and overwrites the bytes. The allocation then waits in a queue; when it leaves the
 * queue, its bytes are checked again. Under AddressSanitizer and valgrind the tools check accesses:
 * exactly the bytes are allocated, and they are freed at once.
 */
#include "storage/debug.h"

#include "base/call_place.h"
#include "base/error.h"
#include "storage/heap.h"
#include "storage/magazine.h"
#include "storage/private.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#define ZONE	    64u
#define ZONE_BYTE   0x5a
#define FREED_BYTE  0xdd
#define WAITING	    ((size_t)256 << 20) /* bytes of freed storages in the queue */
#define LARGE	    ((size_t)256 << 10)
#define KEPT	    16384u	      /* structs of each class in the queue */
#define WATCHED_MAX ((size_t)1 << 34) /* AddressSanitizer ends the program at a larger request */

struct head {
	struct head *next;
	size_t nbytes;
	const char *made_by;
	bool freed;
};

_Static_assert(sizeof(struct head) <= ZONE, "the bytes are aligned");

bool debug_memory;
static atomic_size_t live_bytes, peak_bytes;
struct debug_tensor_hooks debug_tensor_hooks;
static bool watched; /* a tool checks every access */

static struct {
	pthread_mutex_t lock;
	struct head *oldest, **newest;
	size_t bytes;
	void *kept[2][KEPT];
	unsigned at[2];
} debug = { .lock = PTHREAD_MUTEX_INITIALIZER, .newest = &debug.oldest };

static void lock_debug(void)
{
	pthread_mutex_lock(&debug.lock);
}

static void unlock_debug(void)
{
	pthread_mutex_unlock(&debug.lock);
}

void debug_init(void)
{
	const char *text = secure_getenv("TENSOR_DEBUG");

	watched = RUNNING_ON_VALGRIND || dlsym(RTLD_DEFAULT, "__asan_init");
	debug_memory = text && *text ? strcmp(text, "0") : watched;
	if (debug_memory)
		pthread_atfork(lock_debug, unlock_debug, unlock_debug);
}

void debug_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "libtensor: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	abort();
}

/* ---- storages ---- */

/* Index of the first byte that was changed, or n. */
static size_t first_change(const uint8_t *p, size_t n, uint8_t byte)
{
	size_t i = 0;

	while (i < n && p[i] == byte)
		i++;
	return i;
}

static uint8_t *bytes_of(struct head *h)
{
	return (uint8_t *)h + 2 * ZONE;
}

static void check_zones(struct head *h)
{
	uint8_t *p = bytes_of(h);
	size_t before = first_change(p - ZONE, ZONE, ZONE_BYTE);
	size_t behind = first_change(p + h->nbytes, ZONE, ZONE_BYTE);

	if (before < ZONE)
		debug_die(
			"the memory %zu bytes before a tensor of %zu bytes was written to; it was made by %s",
			ZONE - before, h->nbytes, h->made_by);
	if (behind < ZONE)
		debug_die(
			"the memory %zu bytes behind a tensor of %zu bytes was written to; it was made by %s",
			behind, h->nbytes, h->made_by);
}

static void check_freed(struct head *h)
{
	size_t at = first_change(bytes_of(h), h->nbytes, FREED_BYTE);

	check_zones(h);
	if (at < h->nbytes)
		debug_die(
			"byte %zu of a tensor of %zu bytes was written to after its release; it was made by "
			"%s",
			at, h->nbytes, h->made_by);
}

/*
 * Bytes of a freed allocation with red zones and the header of malloc(), which dominate small
 * allocations.
 */
static size_t weight(const struct head *h)
{
	return h->nbytes + 5 * ZONE;
}

/* The caller holds the lock. Frees the oldest allocations beyond the limit. */
static struct head *leave_queue(void)
{
	struct head *gone = debug.oldest, **end = &gone;

	while (*end && debug.bytes > WAITING) {
		debug.bytes -= weight(*end);
		end = &(*end)->next;
	}
	if (end == &gone)
		return NULL;
	debug.oldest = *end;
	if (!debug.oldest)
		debug.newest = &debug.oldest;
	*end = NULL;
	return gone;
}

/*
 * Returns the pages at once: beyond vm.max_map_count malloc() takes large blocks from its heap,
 * where a later block in use keeps them resident.
 */
static void free_checked(struct head *h)
{
	uintptr_t from = ((uintptr_t)bytes_of(h) + BLOCK_PAGE - 1) & ~(BLOCK_PAGE - 1);
	uintptr_t to = ((uintptr_t)bytes_of(h) + h->nbytes) & ~(BLOCK_PAGE - 1);

	check_freed(h);
	if (to > from && to - from >= LARGE)
		madvise((void *)from, to - from, MADV_DONTNEED);
	free(h);
}

static void enter_queue(struct head *h)
{
	struct head *gone, *next;

	/* Adding it twice would make the queue circular. */
	if (h->freed)
		debug_die(
			"the memory of a tensor of %zu bytes was released twice; it was made by %s",
			h->nbytes, h->made_by);
	check_zones(h);
	atomic_fetch_sub_explicit(&live_bytes, h->nbytes, memory_order_relaxed);
	h->freed = true;
	memset(bytes_of(h), FREED_BYTE, h->nbytes);
	h->next = NULL;
	lock_debug();
	*debug.newest = h;
	debug.newest = &h->next;
	debug.bytes += weight(h);
	gone = leave_queue();
	unlock_debug();
	for (; gone; gone = next) {
		next = gone->next;
		free_checked(gone);
	}
}

/* At exit: checks the allocations in the queue. Other threads may still run. */
__attribute__((destructor)) static void check_queue(void)
{
	lock_debug();
	for (struct head *h = debug.oldest; h; h = h->next)
		check_freed(h);
	unlock_debug();
}

static void free_bytes(void *p)
{
	if (watched)
		free(p);
	else
		enter_queue((struct head *)((char *)p - 2 * ZONE));
}

static void debug_free(struct tensor_storage *s)
{
	free_bytes(s->data);
}

static void debug_end(struct moved *m)
{
	free_bytes(m->memory);
}

static void debug_describe_release(struct tensor_storage *s, struct moved *m)
{
	m->memory = s->data;
	m->end = debug_end;
}

static const struct storage_ops debug_ops = { .free = debug_free,
					      .describe_release = debug_describe_release };

static void count_bytes(size_t n)
{
	size_t now = atomic_fetch_add_explicit(&live_bytes, n, memory_order_relaxed) + n;
	size_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);

	while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
		;
}

TENSOR_EXPORT int64_t tensor_live_bytes(int64_t *peak)
{
	int64_t now = (int64_t)atomic_load(&live_bytes);

	if (!debug_memory || watched)
		return tensor_fail(ENOTSUP,
				   "live_bytes: bytes are counted with TENSOR_DEBUG=1 only");
	if (peak)
		*peak = (int64_t)atomic_exchange(&peak_bytes, (size_t)now);
	return now;
}

bool debug_alloc(struct tensor_storage *s, size_t nbytes)
{
	size_t n = nbytes ? nbytes : 1;
	struct head *h;

	if (watched && n > WATCHED_MAX)
		return false;
	s->nbytes = n;
	s->ops = &debug_ops;
	if (watched)
		return posix_memalign(&s->data, 64, n) == 0;
	if (posix_memalign((void **)&h, 64, n + 3 * ZONE))
		return false;
	count_bytes(n);
	*h = (struct head){ .nbytes = n, .made_by = call_place().function };
	s->data = bytes_of(h);
	memset(bytes_of(h) - ZONE, ZONE_BYTE, ZONE);
	memset(bytes_of(h) + n, ZONE_BYTE, ZONE);
	return true;
}

/* ---- descriptions ---- */

void debug_keep(unsigned class, void *p)
{
	unsigned which = class == CLASS_TENSOR;
	struct tensor_storage *s = p;
	void **place, *gone;

	/* LeakSanitizer would follow the pointers of a released struct. */
	if (class == CLASS_TENSOR) {
		debug_tensor_hooks.kept(p);
	} else {
		s->data = s->owner = NULL;
		s->previous = NULL;
	}
	lock_debug();
	place = &debug.kept[which][debug.at[which]++ % KEPT];
	gone = *place;
	*place = p;
	unlock_debug();
	if (gone)
		heap_give(class, &gone, 1);
}
