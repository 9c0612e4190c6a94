// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Plans that were used lately are kept, up to a number of plans and bytes. */
#include "kernels/cpu/linalg/fft/plan.h"

#include "core/tensor_impl.h"
#include "storage/trim.h"

#include <pthread.h>
#include <stdlib.h>

#define PLANS_KEPT 64
#define BYTES_KEPT ((size_t)64 << 20)

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct fft_plan *plan[PLANS_KEPT];
	size_t bytes;  /* of all plans */
	uint64_t uses; /* so far */
} cache = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock_plans(void)
{
	pthread_mutex_lock(&cache.lock);
}

static void unlock_plans(void)
{
	pthread_mutex_unlock(&cache.lock);
}

void CPU_NAME(fft_free_tables)(struct fft_plan *p)
{
	for (int i = 0; i < p->ntables; i++)
		free(p->tables[i]);
}

void CPU_NAME(fft_plan_put)(struct fft_plan *p)
{
	if (!p || !ref_put(&p->refs))
		return;
	CPU_NAME(fft_free_tables)(p);
	free(p);
}

void *CPU_NAME(fft_table)(struct fft_plan *p, size_t bytes)
{
	void *table;

	bytes = (bytes + 63) & ~(size_t)63;
	table = p->ntables < FFT_TABLES_MAX ? aligned_alloc(64, bytes ? bytes : 64) : NULL;
	if (!table)
		return NULL;
	p->tables[p->ntables++] = table;
	p->bytes += bytes;
	return table;
}

static bool same(const struct fft_plan *a, const struct fft_plan *b)
{
	return a->key_n == b->key_n && a->kind == b->kind && a->lines == b->lines &&
	       a->f64 == b->f64;
}

/* A new reference to the plan for key, or NULL. */
static struct fft_plan *find(const struct fft_plan *key)
{
	struct fft_plan *p = NULL;

	lock_plans();
	for (int i = 0; i < PLANS_KEPT && !p; i++)
		if (cache.plan[i] && same(cache.plan[i], key))
			p = cache.plan[i];
	if (p) {
		p->used = ++cache.uses;
		ref_get(&p->refs);
	}
	unlock_plans();
	return p;
}

/* An empty place, or -1. */
static int empty_place(void)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		if (!cache.plan[i])
			return i;
	return -1;
}

/* The place of the plan that was not used for the longest time, or -1 if there is none. */
static int oldest_place(void)
{
	int at = -1;

	for (int i = 0; i < PLANS_KEPT; i++)
		if (cache.plan[i] && (at < 0 || cache.plan[i]->used < cache.plan[at]->used))
			at = i;
	return at;
}

/*
 * Keeps a reference to p, unless p is too large, in place of plans that were not used for long. If
 * two threads make the same plan, both are kept until they are the oldest.
 */
static void keep(struct fft_plan *p)
{
	struct fft_plan *old[PLANS_KEPT];
	int n = 0, at;

	if (p->bytes > BYTES_KEPT / 2)
		return;
	lock_plans();
	while (empty_place() < 0 || cache.bytes + p->bytes > BYTES_KEPT) {
		at = oldest_place();
		old[n] = cache.plan[at];
		cache.plan[at] = NULL;
		cache.bytes -= old[n++]->bytes;
	}
	p->used = ++cache.uses;
	ref_get(&p->refs);
	cache.plan[empty_place()] = p;
	cache.bytes += p->bytes;
	unlock_plans();
	while (n--)
		CPU_NAME(fft_plan_put)(old[n]);
}

/* Plans that a transform uses stay until its end. */
static void drop_plans(void)
{
	struct fft_plan *old[PLANS_KEPT];

	lock_plans();
	memcpy(old, cache.plan, sizeof(old));
	memset(cache.plan, 0, sizeof(cache.plan));
	cache.bytes = 0;
	unlock_plans();
	for (int i = 0; i < PLANS_KEPT; i++)
		CPU_NAME(fft_plan_put)(old[i]);
}

/* A fork while another thread holds the lock would leave it locked in the child. */
static void setup(void)
{
	pthread_atfork(lock_plans, unlock_plans, unlock_plans);
	trim_register(TRIM_PLANS, drop_plans);
}

struct fft_plan *CPU_NAME(fft_plan_get)(const struct fft_plan *key, fft_make_tables make)
{
	struct fft_plan *p;

	pthread_once(&cache.once, setup);
	p = find(key);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (p) {
		*p = *key;
		p->refs = 1;
		CPU_NAME(fft_choose)(p);
		if (make(p)) {
			keep(p);
			return p;
		}
	}
	CPU_NAME(fft_plan_put)(p);
	tensor_fail(ENOMEM, "fft: no memory for the tables of %lld elements",
		    (long long)key->key_n);
	return NULL;
}
