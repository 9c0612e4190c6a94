// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The note of a run of tensors has a struct referrer for each tensor, that of a run of storages a
 * list head for each storage; both are allocated when needed. The reference counts show whether a
 * list is complete. If it is not (two threads changed the same mark, or a tensor changed its
 * storage), all units are sorted, marked or not.
 *
 * The heap's lock protects all of it. It is released after every few units.
 */
#include "core/referrers.h"

#include "base/init.h"
#include "storage/magazine.h"

#include <limits.h>
#include <stdlib.h>

#define UNITS_AT_ONCE	  32
#define REFERRERS_AT_ONCE 1024

/* The note of a run. */
struct unit {
	struct unit *next, **link; /* link in the list of marked units; link NULL: not marked */
	char *base;
	unsigned blocks;
	struct referrer of[];
};

/* A queue: units are sorted in the order in which they were marked. */
static struct {
	struct unit *first, **end;
	unsigned n;
} marked = { .end = &marked.first };

/* ---- units ---- */

/* NULL if there is no memory. */
static struct unit *unit_of(const struct heap_place *at)
{
	struct unit *u = *at->note;

	if (!u) {
		u = calloc(1, sizeof(*u) + at->blocks * sizeof(u->of[0]));
		if (!u)
			return NULL;
		u->base = at->base;
		u->blocks = at->blocks;
		*at->note = u;
	}
	return u;
}

static void unit_out(struct unit *u)
{
	if (!u->link)
		return;
	*u->link = u->next;
	if (u->next)
		u->next->link = u->link;
	else
		marked.end = u->link;
	u->link = NULL;
	marked.n--;
}

static void unit_in(struct unit *u)
{
	if (u->link)
		return;
	u->next = NULL;
	u->link = marked.end;
	*marked.end = u;
	marked.end = &u->next;
	marked.n++;
}

/* Without memory the unit stays unmarked, and the next tensor in it retries. */
void referrer_mark_unit(const tensor *t)
{
	struct heap_place at;
	struct unit *u;

	heap_lock();
	u = heap_find(t, CLASS_TENSOR, &at) ? unit_of(&at) : NULL;
	if (u) {
		unit_in(u);
		atomic_store_explicit(heap_mark(t), true, memory_order_relaxed);
	}
	heap_unlock();
}

/* Tensors on the stack of kernels are in no unit. */
void referrer_note_owner(const tensor *t)
{
	if (heap_has(t))
		referrer_note(t);
}

/* ---- lists ---- */

static void referrer_out(struct referrer *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	r->link = NULL;
}

/* Finds the list head of s; false if s is not a storage or there is no memory. */
static bool list_of(const struct tensor_storage *s, struct referrer ***list, int *err)
{
	struct heap_place at;

	if (!heap_find(s, CLASS_STORAGE, &at))
		return false;
	if (!*at.note)
		*at.note = calloc(at.blocks, sizeof(struct referrer *));
	if (!*at.note) {
		*err = -ENOMEM;
		return false;
	}
	*list = (struct referrer **)*at.note + at.index;
	return true;
}

/*
 * Other threads may be allocating or freeing t. They write the count last when they free a tensor,
 * and after the storage when they allocate one; acquire makes their earlier writes to the referrer
 * visible.
 */
static __attribute__((no_sanitize("thread"))) const struct tensor_storage *
storage_of(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_acquire) > 0 ? t->storage : NULL;
}

static void sort_in(struct referrer *r, tensor *t, int *err)
{
	const struct tensor_storage *s = storage_of(t);
	struct referrer **list;

	if (r->link && r->s == s)
		return;
	if (r->link)
		referrer_out(r);
	if (!s || !list_of(s, &list, err))
		return;
	*r = (struct referrer){ .next = *list, .link = list, .s = s, .t = t };
	if (r->next)
		r->next->link = &r->next;
	*list = r;
}

static void sort_unit(struct unit *u, int *err)
{
	/* Cleared before the unit is read: a tensor that is added later marks it again. */
	unit_out(u);
	atomic_store(heap_mark(u->base), false);
	for (unsigned i = 0; i < u->blocks; i++)
		sort_in(&u->of[i], (tensor *)(u->base + i * heap_size(CLASS_TENSOR)), err);
}

static void sort_marked(int *err)
{
	unsigned n = UINT_MAX;

	/* At most as many units as are marked now: other threads may mark more. */
	while (n) {
		heap_lock();
		if (n > marked.n)
			n = marked.n;
		for (int i = 0; n && i < UNITS_AT_ONCE; i++, n--)
			sort_unit(marked.first, err);
		heap_unlock();
	}
}

static void sort_run(void *first, void *err)
{
	struct heap_place at;
	struct unit *u;

	heap_find(first, CLASS_TENSOR, &at);
	u = unit_of(&at);
	if (u)
		sort_unit(u, err);
	else
		*(int *)err = -ENOMEM;
}

static void sort_all(int *err)
{
	uint64_t arena = 0;

	while (heap_next_arena(&arena, CLASS_TENSOR, sort_run, err))
		;
}

/* The caller holds the lock. */
static void sort_one(tensor *t, int *err)
{
	struct heap_place at;
	struct unit *u;

	if (!heap_find(t, CLASS_TENSOR, &at))
		return;
	u = unit_of(&at);
	if (u)
		sort_in(&u->of[at.index], t, err);
	else
		*err = -ENOMEM;
}

static void forget_run(unsigned class, void *note, unsigned blocks)
{
	struct unit *u = note;
	struct referrer **list = note;

	if (class == CLASS_TENSOR)
		unit_out(u);
	for (unsigned i = 0; i < blocks; i++) {
		if (class == CLASS_STORAGE)
			while (list[i])
				referrer_out(list[i]);
		else if (u->of[i].link)
			referrer_out(&u->of[i]);
	}
	free(note);
}

INIT(INIT_HOOKS) static void set_note_free(void)
{
	heap_note_free = forget_run;
}

/* ---- the tensors of one storage ---- */

struct census {
	struct referrer **at; /* link of a tensor of the storage, or the list head */
	int64_t owners, views;
	int64_t views_of_owners; /* number of tensors, from the reference counts */
};

/* The caller holds the lock. Removes tensors that left s; false if more remain. */
static bool count_some(struct census *c, const struct tensor_storage *s)
{
	for (int i = 0; *c->at && i < REFERRERS_AT_ONCE; i++) {
		struct referrer *r = *c->at;

		if (storage_of(r->t) != s) {
			referrer_out(r);
			continue;
		}
		c->owners += r->t->owns_storage;
		c->views += !r->t->owns_storage;
		if (r->t->owns_storage)
			c->views_of_owners += tensor_live_views(r->t);
		c->at = &r->next;
	}
	return !*c->at;
}

/* Whether all tensors of s are in its list. */
static bool is_complete(const struct tensor_storage *s, struct referrer **list)
{
	struct census c = { .at = list };
	bool done;

	do {
		heap_lock();
		done = count_some(&c, s);
		heap_unlock();
	} while (!done);
	return c.owners == atomic_load_explicit(&s->refs, memory_order_relaxed) &&
	       c.views == c.views_of_owners;
}

int referrers_find(tensor *t, const struct referrer **first)
{
	struct referrer **list;
	int err = 0;

	sort_marked(&err);
	heap_lock();
	/* An owner is marked only if another tensor uses its storage. */
	sort_one(t, &err);
	if (t->base)
		sort_one(t->base, &err);
	if (!list_of(t->storage, &list, &err))
		err = -ENOMEM;
	heap_unlock();
	if (!err && !is_complete(t->storage, list)) {
		sort_all(&err);
		is_complete(t->storage, list);
	}
	if (!err)
		*first = *list;
	return err;
}
