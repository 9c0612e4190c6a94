// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Waiting for other ranks, and for their end (local.h). */
#include "group/local/local.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

void local_ring(struct local *l, int rank)
{
	struct local_rank *to = &l->page->ranks[rank];

	if (!atomic_load(&to->asleep))
		return;
	atomic_fetch_add(&to->bell, 1);
	syscall(SYS_futex, &to->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void local_ring_all(const tensor_group *g)
{
	struct local *l = g->state;

	if (!atomic_load(&l->page->sleepers))
		return;
	for (int i = 0; i < g->size; i++)
		if (i != g->rank)
			local_ring(l, i);
}

void local_post(const tensor_group *g, uint64_t step)
{
	struct local *l = g->state;

	/* Sequentially consistent, like the stores of local_arm(): one of both sides sees the other's. */
	atomic_store(&l->page->ranks[g->rank].posted, step);
	local_ring_all(g);
}

bool local_has_posted(const struct local *l, int rank, uint64_t step)
{
	return atomic_load_explicit(&l->page->ranks[rank].posted, memory_order_acquire) >= step;
}

/* The first rank that has not posted the step, or -1. */
int local_missing(const tensor_group *g, uint64_t step)
{
	for (int i = 0; i < g->size; i++)
		if (!local_has_posted(g->state, i, step))
			return i;
	return -1;
}

void local_arm(tensor_group *g)
{
	struct local *l = g->state;
	struct local_rank *me = &l->page->ranks[g->rank];

	l->heard = atomic_load(&me->bell);
	atomic_store(&me->asleep, 1);
	atomic_fetch_add(&l->page->sleepers, 1);
}

bool local_is_dead(const struct local *l, int rank)
{
	struct pollfd p = { .fd = l->pidfds[rank], .events = POLLIN };

	return p.fd >= 0 && poll(&p, 1, 0) == 1;
}

bool local_has_given_up(const tensor_group *g, int rank)
{
	const struct local *l = g->state;

	/* After the reads. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load(&l->page->ranks[rank].state) == LOCAL_GAVE_UP;
}

/* A rank that has left after an error may have done so because of one that has died. */
static int culprit(const tensor_group *g, int rank)
{
	const struct local *l = g->state;

	for (int i = 0; i < g->size; i++)
		if (atomic_load(&l->page->ranks[rank].state) == LOCAL_GAVE_UP &&
		    atomic_load(&l->page->ranks[i].state) == LOCAL_ALIVE && local_is_dead(l, i))
			return i;
	return rank;
}

int local_gone(tensor_group *g, int rank)
{
	struct local *l = g->state;

	rank = culprit(g, rank);
	switch (atomic_load(&l->page->ranks[rank].state)) {
	case LOCAL_CLOSED:
		return group_fail(g, rank, EPIPE, "rank %d has closed the group", rank);
	case LOCAL_GAVE_UP:
		return group_fail(g, rank, EPIPE, "rank %d has left the group after an error",
				  rank);
	default:
		return group_fail(g, rank, ECONNRESET, "rank %d (process %d) has died", rank,
				  l->pids[rank]);
	}
}

/* Whether a rank that has not posted the step is gone; the error is set. */
static int check_ranks(tensor_group *g, uint64_t step)
{
	struct local *l = g->state;

	for (int i = 0; i < g->size; i++) {
		bool gone;

		if (local_has_posted(l, i, step))
			continue;
		gone = atomic_load(&l->page->ranks[i].state) != LOCAL_ALIVE || local_is_dead(l, i);
		/* It may have posted before its end. */
		if (gone && !local_has_posted(l, i, step))
			return local_gone(g, i);
	}
	return 0;
}

int local_sleep(tensor_group *g, tensor_request *r, int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	struct local *l = g->state;
	struct local_rank *me = &l->page->ranks[g->rank];

	if (ns)
		syscall(SYS_futex, &me->bell, FUTEX_WAIT, l->heard, &t, NULL, 0);
	atomic_store(&me->asleep, 0);
	atomic_fetch_sub(&l->page->sleepers, 1);
	/* message_step() looks for the peer of a message. */
	return r && ns && !request_is_message(r) ? check_ranks(g, r->step) : 0;
}
