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
	size_t items, size; /* elements, bytes of each */
} regions[REGIONS];

static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool wanted; /* the lock, by the other thread */

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Far outside, just outside, or any value. */
static uint64_t odd(uint64_t *state, size_t size)
{
	static const int64_t values[] = { -1,	     -5, 4096, 1 << 20, 1 << 30, INT64_MAX / 2,
					  INT64_MIN, 2,	 255 };
	uint64_t r = next(state);

	if (size == 1)
		return r & 1 ? r >> 1 & 1 : r >> 8;
	return r & 7 ? (uint64_t)values[(r >> 3) % (sizeof(values) / sizeof(*values))] : r;
}

/* The writes of others are no race that the sanitizers should report: that they are borne is the test. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

static void wait_a_little(uint64_t *state, unsigned mask)
{
	for (unsigned pause = (unsigned)next(state) & mask; pause && !wanted; pause--)
		__asm__ volatile("" ::: "memory");
}

/* An element, and back. What is a byte stays: it is no position. */
UNWATCHED static void change_one(const struct region *r, uint64_t *state)
{
	uint8_t *p = r->at + next(state) % r->items * r->size;
	uint64_t before = 0, value = odd(state, r->size);
	size_t n = r->size < sizeof(value) ? r->size : sizeof(value);

	memcpy(&before, p, n);
	memcpy(p, &value, n);
	wait_a_little(state, 0xff);
	if (r->size > 1)
		memcpy(p, &before, n);
}

/* Every element, and back after as long as an operator takes. */
UNWATCHED static void change_all(const struct region *r, uint64_t *state)
{
	static uint8_t before[1 << 16];
	size_t size = r->items * r->size;
	uint8_t value = (uint8_t)next(state);

	if (size > sizeof(before))
		return;
	memcpy(before, r->at, size);
	memset(r->at, r->size > 1 ? value : value & 1, size);
	wait_a_little(state, 0x1fff);
	memcpy(r->at, before, size);
	wait_a_little(state, 0x1fff);
}

static void change(const struct region *r, uint64_t *state)
{
	if (next(state) & 15)
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
			change(&regions[next(&state) % count], &state);
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

static void begin(void)
{
	wanted = true;
	pthread_mutex_lock(&lock);
	wanted = false;
}

void writer_watch(tensor *t)
{
	if (!writer_runs)
		return;
	begin();
	if (count < REGIONS && tensor_numel(t) > 0)
		regions[count++] = (struct region){ tensor_mutable_data(t), (size_t)tensor_numel(t),
						    tensor_itemsize(tensor_dtype(t)) };
	pthread_mutex_unlock(&lock);
}

void writer_forget_all(void)
{
	if (!writer_runs)
		return;
	begin();
	count = 0;
	pthread_mutex_unlock(&lock);
}
