// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Groups: one send to several receivers, each with its own channel. Every message has a lease (lease.h), so the group
 * knows which ones a receiver has not released: at most `window` of them are on their way to a receiver or with it.
 */
#include "sharing/fanout.h"

#include "base/init.h"
#include "sharing/link.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WINDOW	   8
#define WINDOW_MAX 4096

/* All groups, for fanout_wake_all(). No function blocks while it holds the lock. */
static tensor_channel_group *groups;
static pthread_mutex_t groups_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_groups(void)
{
	pthread_mutex_lock(&groups_lock);
}

static void unlock_groups(void)
{
	pthread_mutex_unlock(&groups_lock);
}

static void wake(const tensor_channel_group *g)
{
	uint64_t one = 1;

	if (atomic_load(&g->waiters) && write(g->event, &one, sizeof(one)) < 0)
		return; /* it has been written to before */
}

void fanout_wake_all(void)
{
	lock_groups();
	for (const tensor_channel_group *g = groups; g; g = g->next)
		wake(g);
	unlock_groups();
}

/* In a child of fork(): a thread that the child does not have may have been in the middle of a call. */
static void orphan_groups(void)
{
	for (tensor_channel_group *g = groups; g; g = g->next) {
		if (pthread_mutex_trylock(&g->lock)) {
			pthread_mutex_init(&g->lock, NULL);
			g->orphan = true;
		} else {
			pthread_mutex_unlock(&g->lock);
		}
	}
	unlock_groups();
}

int group_lock(tensor_channel_group *g)
{
	pthread_mutex_lock(&g->lock);
	if (!g->orphan)
		return 0;
	pthread_mutex_unlock(&g->lock);
	return tensor_fail(EBUSY,
			   "group: another thread used it at the fork(), so it is the parent's");
}

INIT(INIT_GROUP) static void group_init(void)
{
	pthread_atfork(lock_groups, unlock_groups, orphan_groups);
	lease_watch_wake = fanout_wake_all;
}

/* ---- messages on their way; the caller holds the lock of the group ---- */

void flight_end(struct member *m, int i)
{
	lease_put(m->flights[i].lease);
	memmove(&m->flights[i], &m->flights[i + 1], (size_t)(m->n - i - 1) * sizeof(m->flights[0]));
	m->n--;
}

void member_bury(tensor_channel_group *g, struct member *m)
{
	m->dead = true;
	for (; m->n; flight_end(m, 0))
		if (g->kind == TENSOR_CHANNEL_GROUP_NEXT && !lease_released(m->flights[0].lease))
			g->lost[g->nlost++] = m->flights[0].tag;
}

void member_settle(tensor_channel_group *g, struct member *m)
{
	bool gone = false;

	for (int i = m->n - 1; i >= 0; i--) {
		const struct lease *l = m->flights[i].lease;

		if (!lease_over(l))
			continue;
		if (!lease_released(l) && !lease_recalled(l)) {
			gone = true;
			continue;
		}
		m->dropped += lease_recalled(l);
		flight_end(m, i);
	}
	if (gone)
		member_bury(g, m);
}

void fanout_settle(tensor_channel_group *g)
{
	for (int i = 0; i < g->n; i++) {
		struct member *m = g->members[i];

		member_settle(g, m);
		if (!m->dead && link_wait_socket(m->ch->socket, 0, 0) != -ETIMEDOUT)
			member_bury(g, m);
	}
}

int fanout_reserve(tensor_channel_group *g)
{
	int need = g->nlost + g->n * g->window, space = 2 * need;
	uint64_t *more;

	if (g->kind != TENSOR_CHANNEL_GROUP_NEXT || need <= g->lost_space)
		return 0;
	more = realloc(g->lost, (size_t)space * sizeof(*more));
	if (!more)
		return tensor_fail(ENOMEM, "group: no memory");
	g->lost = more;
	g->lost_space = space;
	return 0;
}

/* ---- receivers ---- */

static int find_member(const tensor_channel_group *g, const tensor_channel *ch)
{
	for (int i = 0; i < g->n; i++)
		if (g->members[i]->ch == ch)
			return i;
	return -1;
}

static void free_member(struct member *m)
{
	while (m->n)
		flight_end(m, m->n - 1);
	free(m);
}

/* The caller holds the lock. 0 or -errno with the error set. */
static int add_member(tensor_channel_group *g, tensor_channel *ch)
{
	int space = g->n < g->space ? g->space : 2 * g->space + 4;
	struct member **more = g->members, *m;

	if (find_member(g, ch) >= 0)
		return tensor_fail(EEXIST, "group_add: the channel is in the group");
	m = calloc(1, sizeof(*m) + (size_t)g->window * sizeof(m->flights[0]));
	if (m && space > g->space)
		more = realloc(g->members, (size_t)space * sizeof(*more));
	if (!m || !more) {
		free(m);
		return tensor_fail(ENOMEM, "group_add: no memory");
	}
	g->members = more;
	g->space = space;
	m->ch = ch;
	g->members[g->n++] = m;
	wake(g);
	return 0;
}

TENSOR_EXPORT int tensor_channel_group_add(tensor_channel_group *g, tensor_channel *ch)
{
	int err;

	if (!g || !ch)
		return tensor_fail(EINVAL, "group_add: the %s is NULL", g ? "channel" : "group");
	if (ch->remote)
		return tensor_fail(ENOTSUP,
				   "group_add: the channel leads to another machine, which "
				   "has no leases");
	if (group_lock(g) < 0)
		return -EBUSY;
	err = add_member(g, ch);
	if (!err && fanout_reserve(g) < 0) {
		free_member(g->members[--g->n]);
		err = -ENOMEM;
	}
	pthread_mutex_unlock(&g->lock);
	return err;
}

TENSOR_EXPORT int tensor_channel_group_remove(tensor_channel_group *g, tensor_channel *ch)
{
	int i;

	if (!g || !ch)
		return tensor_fail(EINVAL, "group_remove: the %s is NULL", g ? "channel" : "group");
	if (group_lock(g) < 0)
		return -EBUSY;
	i = find_member(g, ch);
	if (i >= 0) {
		free_member(g->members[i]);
		memmove(&g->members[i], &g->members[i + 1],
			(size_t)(g->n - i - 1) * sizeof(g->members[0]));
		g->n--;
		wake(g);
	}
	pthread_mutex_unlock(&g->lock);
	return i < 0 ? tensor_fail(ENOENT, "group_remove: the channel is not in the group") : 0;
}

TENSOR_EXPORT int tensor_channel_group_count(tensor_channel_group *g)
{
	int n = 0;

	if (!g)
		return tensor_fail(EINVAL, "group_count: the group is NULL");
	if (group_lock(g) < 0)
		return -EBUSY;
	fanout_settle(g);
	for (int i = 0; i < g->n; i++)
		n += !g->members[i]->dead;
	pthread_mutex_unlock(&g->lock);
	return n;
}

TENSOR_EXPORT int tensor_channel_group_stats(tensor_channel_group *g, tensor_channel *ch,
					     struct tensor_channel_group_stats *stats)
{
	int i;

	if (!g || !ch || !stats)
		return tensor_fail(EINVAL, "group_stats: an argument is NULL");
	if (group_lock(g) < 0)
		return -EBUSY;
	fanout_settle(g);
	i = find_member(g, ch);
	if (i >= 0) {
		const struct member *m = g->members[i];

		*stats = (struct tensor_channel_group_stats){ m->sent, m->dropped, (uint32_t)m->n,
							      !m->dead };
	}
	pthread_mutex_unlock(&g->lock);
	return i < 0 ? tensor_fail(ENOENT, "group_stats: the channel is not in the group") : 0;
}

TENSOR_EXPORT int tensor_channel_group_lost(tensor_channel_group *g, uint64_t *tag)
{
	int any;

	if (!g || !tag)
		return tensor_fail(EINVAL, "group_lost: the %s is NULL", g ? "tag" : "group");
	if (group_lock(g) < 0)
		return -EBUSY;
	fanout_settle(g);
	any = g->nlost > 0;
	if (any) {
		*tag = g->lost[0];
		memmove(g->lost, g->lost + 1, (size_t)--g->nlost * sizeof(*g->lost));
	}
	pthread_mutex_unlock(&g->lock);
	return any;
}

/* ---- begin and end ---- */

TENSOR_EXPORT tensor_channel_group *
tensor_channel_group_open(const struct tensor_channel_group_options *o)
{
	static const struct tensor_channel_group_options none;
	tensor_channel_group *g;

	o = o ? o : &none;
	if (o->window < 0 || o->window > WINDOW_MAX || (unsigned)o->full > TENSOR_POOL_REFUSE ||
	    (unsigned)o->kind > TENSOR_CHANNEL_GROUP_NEXT) {
		tensor_fail(
			EINVAL,
			"group_open: a window of %d, kind %d, full %d: 0 to %d, and values of the "
			"enumerations, are possible",
			o->window, (int)o->kind, (int)o->full, WINDOW_MAX);
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		tensor_fail(ENOMEM, "group_open: no memory");
		return NULL;
	}
	g->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->event < 0) {
		tensor_fail(errno, "group_open: %s", strerror(errno));
		free(g);
		return NULL;
	}
	pthread_mutex_init(&g->lock, NULL);
	g->kind = o->kind;
	g->full = o->full;
	g->window = o->window ? o->window : WINDOW;
	lock_groups();
	g->next = groups;
	g->link = &groups;
	if (groups)
		groups->link = &g->next;
	groups = g;
	unlock_groups();
	return g;
}

TENSOR_EXPORT void tensor_channel_group_close(tensor_channel_group *g)
{
	if (!g)
		return;
	lock_groups();
	*g->link = g->next;
	if (g->next)
		g->next->link = g->link;
	unlock_groups();
	/* The members of an orphan may be half changed, so they are not freed. */
	for (int i = 0; i < g->n && !g->orphan; i++)
		free_member(g->members[i]);
	pthread_mutex_destroy(&g->lock);
	close(g->event);
	if (!g->orphan) {
		free(g->members);
		free(g->lost);
	}
	free(g);
}
