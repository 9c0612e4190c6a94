// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Row types, owners of buffers, sums by process and by user, clocks. */
#include "rows/rows.h"

#include "rows/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void buffer_clear(void *row)
{
	free(((struct buffer *)row)->owners);
}

const struct row_type buffer_rows = { "buffer", sizeof(struct buffer), buffer_clear };
const struct row_type client_rows = { "client", sizeof(struct client), NULL };
const struct row_type export_rows = { "export", sizeof(struct export), NULL };
const struct row_type payer_rows = { "user", sizeof(struct payer), NULL };
const struct row_type rank_rows = { "rank", sizeof(struct rank), NULL };
const struct row_type holder_rows = { "holder", sizeof(struct holder), NULL };

const char *const right_names[] = { "read", "write", "attach", "seal", "revoke", "export", NULL };

/* ---- owners ---- */

struct owner *owners_add(struct buffer *b)
{
	b->owners = grow(b->owners, b->n_owners, &b->cap_owners, sizeof(*b->owners));
	return &b->owners[b->n_owners++];
}

bool owned_by(const struct buffer *b, pid_t pid, const char *comm)
{
	for (size_t i = 0; i < b->n_owners; i++)
		if (pid ? b->owners[i].pid == pid : text_contains(b->owners[i].comm, comm))
			return true;
	return false;
}

/* ---- groups ---- */

static struct holder *group_of(struct list *groups, const struct owner *o, bool by_user)
{
	struct holder *g;

	/* Search from the end: rows of one process are usually adjacent. */
	for (size_t i = groups->n; i-- > 0;) {
		g = list_row(groups, i);
		if (by_user ? g->owner.uid == o->uid : g->owner.pid == o->pid)
			return g;
	}
	g = list_add(groups);
	g->owner = *o;
	return g;
}

static void group_by(const struct list *buffers, struct list *groups, bool by_user)
{
	for (size_t i = 0; i < buffers->n; i++) {
		const struct buffer *b = list_row(buffers, i);
		struct holder *g;

		if (!b->n_owners)
			continue;
		g = group_of(groups, &b->owners[0], by_user);
		g->buffers++;
		g->bytes += b->bytes;
		g->pinned_bytes += b->pinned_bytes;
		g->shared += b->shared;
		g->orphans += b->orphan;
	}
}

void group_by_process(const struct list *buffers, struct list *groups)
{
	group_by(buffers, groups, false);
}

void group_by_user(const struct list *buffers, struct list *groups)
{
	group_by(buffers, groups, true);
}

/* ---- clocks ---- */

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void sleep_seconds(double seconds)
{
	const struct timespec pause = { (time_t)seconds,
					(long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&pause, NULL);
}
