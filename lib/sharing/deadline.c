// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Waiting with deadlines: for a socket, for a lock. */
#include "sharing/link.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>

#define SPIN_NS	 50000	 /* about as long as it takes to wake an idle processor */
#define LOOK_NS	 1000000 /* while spinning, between looks whether the peer lives */
#define SKIP_MAX 127	 /* waits without spinning after one that spun in vain */

int64_t link_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t link_deadline(int64_t timeout_ns)
{
	int64_t until;

	return timeout_ns < 0 || __builtin_add_overflow(link_now(), timeout_ns, &until) ?
		       LINK_FOREVER :
		       until;
}

int64_t link_left(int64_t until)
{
	int64_t left = until - link_now();

	return left > 0 ? left : 0;
}

int link_resolve(const tensor_channel *ch, int64_t *until)
{
	if (*until != LINK_BY_SOCKET)
		return 0;
	*until = LINK_FOREVER;
	return fcntl(ch->socket, F_GETFL) & O_NONBLOCK ? -EAGAIN : 0;
}

int link_late(tensor_channel *ch, int64_t until)
{
	int err = link_resolve(ch, &until);

	if (!err && link_left(until))
		return 0;
	if (ch->ring_in.ring.page)
		ring_arm(&ch->ring_in.ring);
	return err ? err : -ETIMEDOUT;
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

/* ThreadSanitizer of GCC 12 does not see pthread_mutex_clocklock(): a clock that is set is good enough for it. */
static int lock_until(pthread_mutex_t *lock, int64_t until)
{
#ifdef __SANITIZE_THREAD__
	struct timespec now, t;
	int64_t left = link_left(until);

	clock_gettime(CLOCK_REALTIME, &now);
	t = timespec_of(now.tv_sec * INT64_C(1000000000) + now.tv_nsec + left);
	return pthread_mutex_timedlock(lock, &t);
#else
	struct timespec t = timespec_of(until);

	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &t);
#endif
}

int link_lock(pthread_mutex_t *lock, int64_t until)
{
	if (until == LINK_BY_SOCKET || until == LINK_FOREVER)
		return -pthread_mutex_lock(lock);
	return pthread_mutex_trylock(lock) ? -lock_until(lock, until) : 0;
}

/* Of those that share a processor one cannot run while another one spins. */
static int64_t spin_on(const cpu_set_t *set, int processes)
{
	return CPU_COUNT(set) < processes ? 0 : SPIN_NS;
}

int64_t link_default_spin(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? spin_on(&set, 2) : SPIN_NS;
}

int64_t link_spin_among(const int32_t *pids, int n)
{
	cpu_set_t all, set;

	CPU_ZERO(&all);
	for (int i = 0; i < n; i++)
		if (sched_getaffinity(pids[i], sizeof(set), &set) == 0)
			CPU_OR(&all, &all, &set);
	return spin_on(&all, n);
}

struct link_spin link_spin_begin(const tensor_channel *ch, int64_t until)
{
	int64_t begin = link_now();
	struct link_spin s = { ch->socket, begin + LOOK_NS, INT64_MAX };

	if (__builtin_add_overflow(begin, ch->spin_ns, &s.end))
		s.end = INT64_MAX;
	if (until != LINK_BY_SOCKET && s.end > until)
		s.end = until;
	return s;
}

bool link_spin_on(struct link_spin *s)
{
	int64_t now = link_now();

	if (now >= s->look) {
		if (link_wait_socket(s->socket, 0, 0) != -ETIMEDOUT)
			return false;
		s->look = now + LOOK_NS;
	}
	return now < s->end;
}

bool link_may_spin(const tensor_channel *ch, struct link_habit *h)
{
	return ch->spin_ns && !(h->skip && h->skip--);
}

/*
 * In vain: messages are rare, or the scheduler has put the peer on this processor. Skips 1, 3, 7, ... waits if the program
 * has set no time.
 */
void link_has_spun(const tensor_channel *ch, struct link_habit *h, bool in_vain)
{
	if (!in_vain) {
		h->failed = 0;
		return;
	}
	h->failed = h->failed < SKIP_MAX ? 2 * h->failed + 1 : SKIP_MAX;
	h->skip = ch->adaptive ? h->failed : 0;
}

int link_poll(struct pollfd *fds, int n, int64_t until)
{
	struct timespec t;
	int came;

	do {
		t = timespec_of(link_left(until));
		came = ppoll(fds, (nfds_t)n, until == LINK_FOREVER ? NULL : &t, NULL);
	} while (came < 0 && errno == EINTR);
	return came < 0 ? -errno : came ? came : -ETIMEDOUT;
}

int link_wait_socket(int socket, short events, int64_t until)
{
	struct pollfd p = { .fd = socket, .events = events };
	int came = link_poll(&p, 1, until);

	return came < 0 ? came : p.revents;
}
