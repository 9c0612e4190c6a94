// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The time in which a process with HANDLES buffers, 100,000 by default, exits must grow linearly
 * with their number. It is printed beside the time of the same number of memfds.
 */
#include <sys/resource.h>

#include "stress.h"

/* Four times as many buffers may take 4 * SLACK times as long. */
#define SLACK 1.8

/* A kind of object; all objects are released by the exit of the process. */
struct kind {
	const char *name;
	bool (*make)(int dev);
};

static bool make_handle(int dev)
{
	struct tensor_alloc alloc;

	return !dev_alloc(dev, PAGE, &alloc);
}

static bool make_memfd(int dev)
{
	int fd = memfd_create("scale", MFD_CLOEXEC);

	(void)dev;
	return fd >= 0 && pwrite(fd, "", 1, 0) == 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void hold_until_killed(const struct kind *kind, unsigned long n, int ready)
{
	struct rlimit fds = { n + 64, n + 64 };
	int dev = dev_open();
	unsigned long i;
	char good = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_NOFILE, &fds);
	for (i = 0; i < n && good; i++)
		good = kind->make(dev);
	if (!good)
		printf("# %s %lu: %s\n", kind->name, i, strerror(errno));
	fflush(stdout);
	if (write(ready, &good, 1) == 1)
		pause();
	_exit(0);
}

/*
 * Seconds from SIGKILL to the end of a process that holds n objects; negative: it could not make
 * them.
 */
static double time_of_exit(const struct kind *kind, unsigned long n)
{
	int ready[2];
	double begin;
	char good = 0;
	pid_t pid;

	if (pipe(ready))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid)
		hold_until_killed(kind, n, ready[1]);
	close(ready[1]);
	if (read(ready[0], &good, 1) != 1)
		good = 0;
	close(ready[0]);
	begin = now();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return good ? now() - begin : -1;
}

/* The minimum of three: other load of the machine only adds to it. */
static double least_time_of_exit(const struct kind *kind, unsigned long n)
{
	double least = -1, t;
	int i;

	for (i = 0; i < 3; i++) {
		t = time_of_exit(kind, n);
		if (t < 0)
			return t;
		if (least < 0 || t < least)
			least = t;
	}
	printf("# %lu %s: %.1f ms, %.2f us each\n", n, kind->name, least * 1e3, least * 1e6 / n);
	fflush(stdout);
	return least;
}

int main(void)
{
	static const struct kind handles = { "handles", make_handle };
	static const struct kind memfds = { "memfds", make_memfd };
	unsigned long n = env_number("HANDLES", 100000);
	double few, many;
	bool good = true;
	int dev;

	printf("KTAP version 1\n1..2\n");
	few = least_time_of_exit(&handles, n / 4);
	many = least_time_of_exit(&handles, n);
	least_time_of_exit(&memfds, n / 4);
	least_time_of_exit(&memfds, n);
	good &= tap_result(few > 0 && many > 0 && many < 4 * SLACK * few,
			   "scale.handles_are_closed_in_time_linear_in_their_number");
	dev = dev_open();
	good &= tap_result(used_becomes(dev, 0), "scale.nothing_is_charged");
	close(dev);
	return !good;
}
