// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Waiting for the end of leases of several tables (lease.h). */
#include "sharing/lease.h"

#include <errno.h>
#include <stdlib.h>

void (*lease_watch_wake)(void);

int lease_watch_begin(struct lease_watch *w, size_t most, int event)
{
	*w = (struct lease_watch){ .tables = calloc(most + 1, sizeof(struct lease_table *)),
				   .fds = calloc(most + 1, sizeof(struct pollfd)) };
	if (!w->tables || !w->fds)
		return -ENOMEM;
	w->fds[w->n++] = (struct pollfd){ .fd = event, .events = POLLIN };
	return 0;
}

void lease_watch_add(struct lease_watch *w, struct lease_table *t)
{
	for (int i = 1; i < w->n; i++)
		if (w->tables[i] == t)
			return;
	lease_table_get(t);
	lease_table_arm(t);
	w->tables[w->n] = t;
	w->fds[w->n++] = (struct pollfd){ .fd = lease_table_fd(t), .events = POLLIN };
}

bool lease_watch_end(struct lease_watch *w)
{
	bool any = false;

	for (int i = 1; i < w->n; i++) {
		if (w->fds[i].revents)
			lease_table_drain(w->tables[i], w->fds[i].revents & (POLLHUP | POLLERR));
		any |= w->fds[i].revents;
		lease_table_put(w->tables[i]);
	}
	free(w->tables);
	free(w->fds);
	return any;
}
