// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Waiting for the first message of several channels. */
#include "sharing/link.h"

#include <stdlib.h>

/* Whether a receive would return at once. A channel from which another thread receives is not ready. */
static bool is_ready(tensor_channel *ch, const struct pollfd *p)
{
	bool ready;

	if (pthread_mutex_trylock(&ch->receiving))
		return false;
	ready = ch->group.complete || link_ready(ch) || (!ch->ring_wanted && p->revents);
	pthread_mutex_unlock(&ch->receiving);
	return ready;
}

/* The index of the ready channel that was chosen longest ago, or -1. */
static int choose(tensor_channel *const *channels, int n, const struct pollfd *fds)
{
	uint64_t newest = 0;
	int best = -1;

	for (int i = 0; i < n; i++) {
		newest = channels[i]->chosen > newest ? channels[i]->chosen : newest;
		if (is_ready(channels[i], &fds[i]) &&
		    (best < 0 || channels[i]->chosen < channels[best]->chosen))
			best = i;
	}
	if (best >= 0)
		channels[best]->chosen = newest + 1;
	return best;
}

static int wait_for_one(tensor_channel *const *channels, int n, struct pollfd *fds, int64_t until)
{
	for (int i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = channels[i]->socket, .events = POLLIN };
	for (;;) {
		int64_t left = link_left(until);
		int found, came;

		/* First without waiting: plain channels are ready when their sockets are. */
		poll(fds, (nfds_t)n, 0);
		found = choose(channels, n, fds);
		if (found >= 0)
			return found;
		if (!left)
			return -ETIMEDOUT;
		came = link_poll(fds, n, until);
		if (came < 0 && came != -ETIMEDOUT)
			return came;
	}
}

TENSOR_EXPORT int tensor_channel_wait(tensor_channel *const *channels, int n, int64_t timeout_ns)
{
	int64_t until = link_deadline(timeout_ns);
	struct pollfd *fds;
	int res;

	if (n < 1 || !channels)
		return tensor_fail(EINVAL, "channel_wait: %d channels", n);
	for (int i = 0; i < n; i++)
		if (!channels[i])
			return tensor_fail(EINVAL, "channel_wait: channel %d is NULL", i);
	for (int i = 0; i < n; i++)
		if (channel_orphan(channels[i]) < 0)
			return -EBUSY;
	fds = calloc((size_t)n, sizeof(*fds));
	if (!fds)
		return tensor_fail(ENOMEM, "channel_wait: no memory for %d channels", n);
	res = wait_for_one(channels, n, fds, until);
	free(fds);
	return res < 0 ?
		       tensor_fail(-res, "channel_wait: %s",
				   res == -ETIMEDOUT ? "no message came in time" : strerror(-res)) :
		       res;
}
