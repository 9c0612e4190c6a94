// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The choice of the provider for new buffers, and functions for all providers. */
#include "storage/provider/provider.h"

#include "base/compiler.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

void (*buffer_forget)(const struct tensor_buffer *b);

static const struct tensor_provider *const providers[] = { &device_provider, &memfd_provider };
static const struct tensor_provider *chosen;
static pthread_once_t choose_once = PTHREAD_ONCE_INIT;

_Atomic uint32_t fork_generation;

static void count_fork(void)
{
	atomic_fetch_add(&fork_generation, 1);
}

static void choose(void)
{
	const char *want = secure_getenv("TENSOR_PROVIDER");

	pthread_atfork(count_fork, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(providers) && !chosen; i++) {
		const struct tensor_provider *p = providers[i];

		if (want && *want ? !strcmp(want, p->name) : p->probe() == 0)
			chosen = p;
	}
	/* An unknown name is an error here: the failure of the first buffer would not name it. */
	if (!chosen)
		chosen = &memfd_provider;
}

const struct tensor_provider *tensor_provider(void)
{
	pthread_once(&choose_once, choose);
	return chosen;
}

int provider_open_fd(int fd, bool foreign, struct tensor_buffer *b)
{
	int err = -EBADMSG;

	for (size_t i = 0; i < ARRAY_SIZE(providers) && err == -EBADMSG; i++)
		err = providers[i]->open(fd, foreign, b);
	return err;
}

TENSOR_EXPORT unsigned long long fd_limit(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) < 0 ? 0 : r.rlim_cur;
}

TENSOR_EXPORT bool fd_limit_raise(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= r.rlim_max)
		return false;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r) == 0;
}

/*
 * The number of free descriptors from one on, at least n if there are so many. poll() says which are not open, and takes none
 * from other threads.
 */
static unsigned count_free(int from, unsigned n)
{
	unsigned long long limit = fd_limit();
	struct pollfd p[64];
	unsigned found = 0;

	for (unsigned long long at = (unsigned)from; at < limit && found < n; at += ARRAY_SIZE(p)) {
		nfds_t k = limit - at < ARRAY_SIZE(p) ? limit - at : ARRAY_SIZE(p);

		for (nfds_t i = 0; i < k; i++)
			p[i] = (struct pollfd){ .fd = (int)(at + i) };
		if (poll(p, k, 0) < 0)
			break;
		for (nfds_t i = 0; i < k; i++)
			found += !!(p[i].revents & POLLNVAL);
	}
	return found;
}

bool fd_limit_leaves(int fd, unsigned n)
{
	int lowest = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (lowest < 0)
		return fd_limit_raise() && fd_limit_leaves(fd, n);
	close(lowest);
	return count_free(lowest, n) >= n || (fd_limit_raise() && count_free(lowest, n) >= n);
}

TENSOR_EXPORT const char *tensor_provider_name(void)
{
	return tensor_provider()->name;
}
