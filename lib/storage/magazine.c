// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A thread has a magazine of free blocks for each class. An empty magazine takes half its capacity
 * from the heap, a full one returns half.
 */
#include "storage/magazine.h"

#include "base/init.h"
#include "storage/debug.h"
#include "storage/heap.h"
#include "storage/large.h"
#include "storage/trim.h"

#include <pthread.h>

/*
 * Bytes of free blocks that a thread keeps of each class, at least two blocks: about 20 MiB over
 * all classes.
 */
#define KEEP ((size_t)256 << 10)

uint8_t magazine_limit[BLOCK_CLASSES];

void *magazine_empty(unsigned class, struct magazine *m)
{
	unsigned want = (magazine_limit[class] + 1u) / 2;

	m->n = heap_take(class, m->slot, want ? want : 1);
	if (!m->n) {
		trim_all();
		m->n = heap_take(class, m->slot, 1);
	}
	if (!m->n)
		return NULL;
	m->n--;
	if (debug_memory && class == CLASS_TENSOR)
		debug_tensor_hooks.taken(m->slot[m->n]);
	return m->slot[m->n];
}

static void drain(unsigned class, struct magazine *m, unsigned keep)
{
	heap_give(class, m->slot + keep, m->n - keep);
	m->n = keep;
}

void magazine_full(unsigned class, struct magazine *m, void *p)
{
	if (debug_memory) {
		debug_keep(class, p);
		return;
	}
	drain(class, m, magazine_limit[class] / 2);
	m->slot[m->n++] = p;
}

void block_hold(void *p)
{
	struct tensor_thread *th = thread();
	void **place = &th->held[th->held_at++ % HELD_TENSORS], *oldest = *place;

	if (debug_memory) {
		debug_keep(CLASS_TENSOR, p);
		return;
	}
	*place = p;
	if (oldest)
		block_give(CLASS_TENSOR, oldest);
}

static void flush(struct tensor_thread *th)
{
	for (unsigned i = 0; i < HELD_TENSORS; i++) {
		if (th->held[i])
			heap_give(CLASS_TENSOR, &th->held[i], 1);
		th->held[i] = NULL;
	}
	for (unsigned c = 0; c < BLOCK_CLASSES; c++)
		if (th->blocks[c].n)
			drain(c, &th->blocks[c], 0);
}

static void flush_own(void)
{
	flush(thread());
}

static void lock_all(void)
{
	heap_lock();
	large_lock();
}

static void unlock_all(void)
{
	large_unlock();
	heap_unlock();
}

INIT(INIT_MEMORY) static void magazine_init(void)
{
	debug_init();
	/* With limits of 0 all magazines stay empty. */
	for (unsigned c = 0; c < BLOCK_CLASSES && !debug_memory; c++) {
		size_t n = KEEP / heap_size(c);

		magazine_limit[c] = (uint8_t)(n > MAGAZINE ? MAGAZINE : n < 2 ? 2 : n);
	}
	pthread_atfork(lock_all, unlock_all, unlock_all);
	thread_on_exit(THREAD_EXIT_MAGAZINES, flush);
	trim_register(TRIM_MAGAZINES, flush_own);
}
