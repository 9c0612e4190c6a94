// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "writer.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS 64

bool writer_runs;

static struct region {
	uint8_t *at;
	size_t items, size; /* number of elements, bytes of each */
} regions[REGIONS];

static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool wanted; /* set while the other thread waits for the lock */

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A value far out of range, just out of range, or any value. */
static uint64_t unusual_value(uint64_t *state, size_t size)
{
	static const int64_t values[] = { -1,	     -5, 4096, 1 << 20, 1 << 30, INT64_MAX / 2,
					  INT64_MIN, 2,	 255 };
	uint64_t r = random_next(state);

	if (size == 1)
		return r & 1 ? r >> 1 & 1 : r >> 8;
	return r & 7 ? (uint64_t)values[(r >> 3) % (sizeof(values) / sizeof(*values))] : r;
}

/*
 * The writes race with the reads of operators on purpose, so ThreadSanitizer must not report them.
 */
#define UNWATCHED __attribute__((no_sanitize("thread")))

static void pause_briefly(uint64_t *state, unsigned mask)
{
	for (unsigned pause = (unsigned)random_next(state) & mask; pause && !wanted; pause--)
		__asm__ volatile("" ::: "memory");
}

/* Changes an element and restores it, unless it has one byte: such an element is not an index. */
UNWATCHED static void change_one(const struct region *r, uint64_t *state)
{
	uint8_t *p = r->at + random_next(state) % r->items * r->size;
	uint64_t before = 0, value = unusual_value(state, r->size);
	size_t n = r->size < sizeof(value) ? r->size : sizeof(value);

	memcpy(&before, p, n);
	memcpy(p, &value, n);
	pause_briefly(state, 0xff);
	if (r->size > 1)
		memcpy(p, &before, n);
}

/* Changes every element, waits as long as an operator takes, and restores them. */
UNWATCHED static void change_all(const struct region *r, uint64_t *state)
{
	static uint8_t before[1 << 16];
	size_t size = r->items * r->size;
	uint8_t value = (uint8_t)random_next(state);

	if (size > sizeof(before))
		return;
	memcpy(before, r->at, size);
	memset(r->at, r->size > 1 ? value : value & 1, size);
	pause_briefly(state, 0x1fff);
	memcpy(r->at, before, size);
	pause_briefly(state, 0x1fff);
}

static void change(const struct region *r, uint64_t *state)
{
	if (random_next(state) & 15)
		change_one(r, state);
	else
		change_all(r, state);
}

static void *write_on(void *unused)
{
	uint64_t state = 0x9e3779b97f4a7c15u;

	for (;;) {
		pthread_mutex_lock(&lock);
		for (int i = 0; count && i < 64 && !wanted; i++)
			change(&regions[random_next(&state) % count], &state);
		pthread_mutex_unlock(&lock);
		if (wanted || !count)
			sched_yield();
	}
	return unused;
}

void writer_start(void)
{
	pthread_t thread;

	if (!writer_runs)
		return;
	if (pthread_create(&thread, NULL, write_on, NULL))
		abort();
	pthread_detach(thread);
}

static void lock_regions(void)
{
	wanted = true;
	pthread_mutex_lock(&lock);
	wanted = false;
}

void writer_watch(tensor *t)
{
	if (!writer_runs)
		return;
	lock_regions();
	if (count < REGIONS && tensor_numel(t) > 0)
		regions[count++] = (struct region){ tensor_mutable_data(t), (size_t)tensor_numel(t),
						    tensor_itemsize(tensor_dtype(t)) };
	pthread_mutex_unlock(&lock);
}

void writer_forget_all(void)
{
	if (!writer_runs)
		return;
	lock_regions();
	count = 0;
	pthread_mutex_unlock(&lock);
}
