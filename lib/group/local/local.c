// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Collectives in steps through shared memory (local.h). */
#include "group/local/local.h"

#include "sharing/link.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL 4096 /* bytes of an all_reduce that each rank reduces on its own, in one step */

/*
 * The phases of a collective: in the slots are parts of tensors, or the shares that ranks have reduced; or ranks read each
 * other's tensors.
 */
enum { FIRST, PARTS, SHARES, IN_PLACE };

static struct local *local_of(const tensor_request *r)
{
	return r->group->state;
}

/* ---- errors ---- */

static int late(tensor_group *g, tensor_request *r)
{
	char ranks[TENSOR_ERROR_TEXT / 2] = "";

	/* This rank may not have posted a step that needs the tensors of the others. */
	for (int i = 0; r && i < g->size; i++)
		if (i != g->rank && !local_has_posted(g->state, i, r->step))
			group_list_rank(ranks, sizeof(ranks), i);
	return group_fail_late(g, r ? "not all ranks have called it" : "no rank sent or received",
			       ranks);
}

/* ---- the parts of a step ---- */

/* An operation on elements at to at + n of each part. */
struct piece {
	const struct local *l;
	tensor_request *r;
	int rank, size;
	size_t item;   /* bytes of an element */
	int64_t at, n; /* elements */
	int64_t share; /* of a slot for each rank, elements */
	uint64_t step;
};

/* Elements that a slot holds, for each of `parts` parts; parts begin at cache lines. */
static int64_t room(const struct local *l, size_t item, int parts)
{
	return (int64_t)(l->slot / (size_t)parts / LOCAL_LINE * LOCAL_LINE / item);
}

/* Reductions of more than a few elements share the work: a rank reduces a part, in a second step all read the parts. */
static bool is_shared(const tensor_request *r)
{
	return (r->call.kind == GROUP_ALL_REDUCE || r->call.kind == GROUP_REDUCE) &&
	       request_bytes(r) > SMALL;
}

static struct piece piece_of(tensor_request *r)
{
	const tensor_group *g = r->group;
	struct local *l = g->state;
	struct piece p = {
		.l = l, .r = r, .rank = g->rank, .size = g->size, .at = r->at, .step = r->step
	};
	int64_t most;

	if (r->call.kind == GROUP_BARRIER)
		return p;
	p.item = dtype_sizes[r->call.dtype];
	p.share = room(l, p.item, g->size);
	most = request_has_parts(r) ? p.share :
	       is_shared(r)	    ? p.share * g->size :
				      room(l, p.item, 1);
	p.n = r->n - r->at < most ? r->n - r->at : most;
	return p;
}

static void put_bytes(const struct piece *p, int part, int64_t slot_at)
{
	const char *in =
		(const char *)p->r->in + ((int64_t)part * p->r->n + p->at) * (int64_t)p->item;

	memcpy(local_slot(p->l, p->rank, p->step) + slot_at * (int64_t)p->item, in,
	       (size_t)p->n * p->item);
}

static void get_bytes(const struct piece *p, int part, int from, int64_t slot_at)
{
	char *out = (char *)p->r->out + ((int64_t)part * p->r->n + p->at) * (int64_t)p->item;

	memcpy(out, local_slot(p->l, from, p->step) + slot_at * (int64_t)p->item,
	       (size_t)p->n * p->item);
}

/* This rank's writes before it posts the step. */
static void put(const struct piece *p)
{
	bool root = p->r->call.root == p->rank;

	if (!p->n)
		return;
	switch (p->r->call.kind) {
	case GROUP_BROADCAST:
		if (root)
			put_bytes(p, 0, 0);
		break;
	case GROUP_SCATTER:
		if (!root)
			break;
		/* fall through */
	case GROUP_REDUCE_SCATTER:
	case GROUP_ALL_TO_ALL:
		for (int i = 0; i < p->size; i++)
			put_bytes(p, i, i * p->share);
		break;
	case GROUP_ALL_REDUCE:
	case GROUP_REDUCE:
	case GROUP_ALL_GATHER:
	case GROUP_GATHER:
		put_bytes(p, 0, 0);
		break;
	default:
		break;
	}
}

/* Reduces n elements at slot_at of all slots. */
static int reduce(const struct piece *p, void *to, int64_t slot_at, int64_t n)
{
	const char *first = local_slot(p->l, 0, p->step) + slot_at * (int64_t)p->item;

	return group_reduce(to, first, 2 * (ptrdiff_t)p->l->slot, p->size, n,
			    (enum tensor_dtype)p->r->call.dtype,
			    (enum tensor_group_op)p->r->call.op);
}

/* This rank's reads when all have posted the step. 0, or -errno with the error set. */
static int get(const struct piece *p)
{
	bool root = p->r->call.root == p->rank;

	if (!p->n)
		return 0;
	switch (p->r->call.kind) {
	case GROUP_BROADCAST:
		if (!root)
			get_bytes(p, 0, p->r->call.root, 0);
		return 0;
	case GROUP_SCATTER:
		get_bytes(p, 0, p->r->call.root, p->rank * p->share);
		return 0;
	case GROUP_ALL_TO_ALL:
		for (int i = 0; i < p->size; i++)
			get_bytes(p, i, i, p->rank * p->share);
		return 0;
	case GROUP_GATHER:
		if (!root)
			return 0;
		/* fall through */
	case GROUP_ALL_GATHER:
		for (int i = 0; i < p->size; i++)
			get_bytes(p, i, i, 0);
		return 0;
	case GROUP_REDUCE_SCATTER:
		return reduce(p, (char *)p->r->out + p->at * (int64_t)p->item, p->rank * p->share,
			      p->n);
	case GROUP_REDUCE:
		if (!root)
			return 0;
		/* fall through */
	case GROUP_ALL_REDUCE:
		return reduce(p, (char *)p->r->out + p->at * (int64_t)p->item, 0, p->n);
	default:
		return 0;
	}
}

/* Elements of the part of a rank in a shared reduction of n elements. */
static int64_t share_of(const struct piece *p, int rank, int64_t *begin)
{
	*begin = rank * p->share < p->n ? rank * p->share : p->n;
	return p->n - *begin < p->share ? p->n - *begin : p->share;
}

/* Between the steps of a shared reduction: this rank's part, into its other slot. */
static int reduce_share(const struct piece *p)
{
	int64_t begin, n = share_of(p, p->rank, &begin);

	return reduce(p, local_slot(p->l, p->rank, p->step + 1), begin, n);
}

/* After the second one: the parts of all ranks. */
static void get_shares(const struct piece *p)
{
	if (p->r->call.kind == GROUP_REDUCE && p->r->call.root != p->rank)
		return;
	for (int i = 0; i < p->size; i++) {
		int64_t begin, n = share_of(p, i, &begin);

		memcpy((char *)p->r->out + (p->at + begin) * (int64_t)p->item,
		       local_slot(p->l, i, p->step), (size_t)n * p->item);
	}
}

/* ---- operations ---- */

/* The next step, with a part of this rank's tensor. */
static void put_next(tensor_request *r)
{
	struct piece p;

	local_begin_step(r);
	p = piece_of(r);
	put(&p);
	local_post(r->group, r->step);
}

static int start(tensor_request *r)
{
	struct local *l = local_of(r);
	struct local_rank *me = &l->page->ranks[r->group->rank];
	struct piece p;

	if (request_is_message(r))
		return 0;
	local_begin_step(r);
	me->calls[r->step & 1] = r->call;
	if (in_place_is_possible(r)) {
		atomic_store_explicit(&me->offers[r->step & 1], in_place_is_offered(r),
				      memory_order_relaxed);
	} else {
		p = piece_of(r);
		put(&p);
	}
	local_post(r->group, r->step);
	return 0;
}

/* After the first step, which all ranks have posted. */
static int compare_calls(const tensor_request *r)
{
	const struct local *l = r->group->state;
	struct group_call first = l->page->ranks[0].calls[r->step & 1];

	for (int i = 1; i < r->group->size; i++) {
		struct group_call other = l->page->ranks[i].calls[r->step & 1];

		if (!group_calls_match(&first, &other))
			return group_calls_differ(0, &first, i, &other);
	}
	return 0;
}

static bool is_offered_by_all(const tensor_request *r)
{
	const struct local *l = r->group->state;
	bool all = true;

	for (int i = 0; i < r->group->size; i++)
		all &= atomic_load_explicit(&l->page->ranks[i].offers[r->step & 1],
					    memory_order_relaxed) == 1;
	return all;
}

/* After the first step of an operation that can be in place. */
static void choose(tensor_request *r)
{
	if (is_offered_by_all(r)) {
		r->phase = IN_PLACE;
		local_begin_step(r);
		in_place_begin(r);
	} else {
		r->phase = PARTS;
		put_next(r);
	}
}

/* All ranks have posted the step. 1: the operation has ended, 0: it goes on with the next step. */
static int end_step(tensor_request *r)
{
	struct piece p = piece_of(r);
	int err = 0;

	if (r->phase == FIRST) {
		err = compare_calls(r);
		if (err < 0)
			return err;
		if (in_place_is_possible(r)) {
			choose(r);
			return 0;
		}
		r->phase = PARTS;
	}
	if (is_shared(r) && r->phase == PARTS) {
		if (reduce_share(&p) < 0)
			return group_fail_here(r->group);
		r->phase = SHARES;
		local_begin_step(r);
		local_post(r->group, r->step);
		return 0;
	}
	if (is_shared(r))
		get_shares(&p);
	else
		err = get(&p);
	if (err < 0)
		return group_fail_here(r->group);
	r->phase = PARTS;
	r->at += p.n;
	if (r->at >= r->n)
		return 1;
	put_next(r);
	return 0;
}

static int step(tensor_request *r)
{
	int res = 0;

	if (request_is_message(r))
		return message_step(r);
	while (!res && r->phase != IN_PLACE && local_missing(r->group, r->step) < 0)
		res = end_step(r);
	return res || r->phase != IN_PLACE ? res : in_place_step(r);
}

/* ---- the group ---- */

static void leave(tensor_group *g, enum local_state state)
{
	struct local *l = g->state;

	atomic_store(&l->page->ranks[g->rank].state, state);
	local_ring_all(g);
}

static void give_up(tensor_group *g)
{
	leave(g, LOCAL_GAVE_UP);
}

/* For tensorstat. */
static void counted(tensor_group *g)
{
	struct local *l = g->state;
	struct local_rank *me = &l->page->ranks[g->rank];

	atomic_store_explicit(&me->operations, g->stats.operations, memory_order_relaxed);
	atomic_store_explicit(&me->bytes, g->stats.bytes, memory_order_relaxed);
}

static void wake(tensor_group *g)
{
	local_ring(g->state, g->rank);
}

static int lost(tensor_group *g, bool closed)
{
	const struct local *l = g->state;

	for (int i = 0; i < g->size; i++) {
		uint32_t state = atomic_load(&l->page->ranks[i].state);
		bool gone = state == LOCAL_GAVE_UP || (state == LOCAL_CLOSED && closed) ||
			    (state == LOCAL_ALIVE && local_is_dead(l, i));

		if (gone && i != g->rank)
			return local_gone(g, i);
	}
	return 0;
}

static void free_local(struct local *l, int size)
{
	for (int i = 0; l->pidfds && i < size; i++)
		if (l->pidfds[i] >= 0)
			close(l->pidfds[i]);
	if (l->page)
		munmap(l->page, l->bytes);
	if (l->fd >= 0)
		close(l->fd);
	if (l->listener >= 0)
		close(l->listener);
	free(l->pidfds);
	free(l->pids);
	free(l);
}

static void local_close(tensor_group *g)
{
	if (!g->left)
		leave(g, LOCAL_CLOSED);
	in_place_close(&((struct local *)g->state)->in_place);
	local_channels_close(g);
	free_local(g->state, g->size);
}

/* A number of the environment, or -1. */
static int number(const char *text)
{
	char *end;
	long n = text ? strtol(text, &end, 10) : -1;

	return text && end != text && !*end && n >= 0 && n <= INT_MAX ? (int)n : -1;
}

static int local_open(tensor_group *g, const struct tensor_group_options *o)
{
	const char *address = o->address ? o->address : secure_getenv("TENSOR_GROUP_ADDRESS");
	bool given = o->size, set = !given && secure_getenv("TENSOR_SIZE");
	struct local *l;

	g->rank = given ? o->rank : set ? number(secure_getenv("TENSOR_RANK")) : 0;
	g->size = given ? o->size : set ? number(secure_getenv("TENSOR_SIZE")) : 1;
	if (g->size < 1 || g->size > LOCAL_MAX || g->rank < 0 || g->rank >= g->size)
		return tensor_fail(EINVAL,
				   "group_open: local: rank %d of %d%s: 1 to %d ranks are possible",
				   g->rank, g->size, set ? " (TENSOR_RANK, TENSOR_SIZE)" : "",
				   LOCAL_MAX);
	if (g->size > 1 && (!address || !*address))
		return tensor_fail(EINVAL, "group_open: local: %d ranks need an address", g->size);
	if (address && strlen(address) >= LOCAL_NAME)
		return tensor_fail(EINVAL, "group_open: local: the address has more than %d bytes",
				   LOCAL_NAME - 1);
	l = calloc(1, sizeof(*l));
	if (l) {
		l->fd = l->listener = -1;
		l->pidfds = malloc(sizeof(int) * (size_t)g->size);
		l->pids = calloc((size_t)g->size, sizeof(*l->pids));
	}
	if (!l || !l->pidfds || !l->pids) {
		if (l)
			free_local(l, 0);
		return tensor_fail(ENOMEM, "group_open: no memory");
	}
	memset(l->pidfds, 0xff, sizeof(int) * (size_t)g->size);
	g->state = l;
	if (local_join(g, l, address ? address : "") < 0 || local_channels_open(g) < 0) {
		local_channels_close(g);
		free_local(l, g->size);
		return -thread()->error.code;
	}
	g->spin_ns = link_spin_among(l->pids, g->size);
	return 0;
}

const struct group_engine group_local = {
	.name = "local",
	.open = local_open,
	.close = local_close,
	.start = start,
	.step = step,
	.drop = message_drop,
	.arm = local_arm,
	.sleep = local_sleep,
	.wake = wake,
	.late = late,
	.give_up = give_up,
	.counted = counted,
	.lost = lost,
};
