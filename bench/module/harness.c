// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Clock, counters, and lines of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "module.h"

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t page_faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_minflt + (uint64_t)u.ru_majflt;
}

void rest_ms(unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* End the program: after a failed call the benchmark would measure the failure. */
void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

bool setting(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, value, strlen(value));
	close(fd);
	return n == (ssize_t)strlen(value);
}

bool setting_read(const char *path, char *value, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, value, room - 1);
	close(fd);
	if (n < 0)
		return false;
	value[n] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return true;
}

void result_add(struct result *r, struct sample s)
{
	if (r->nr < MAX_ROUNDS)
		r->samples[r->nr++] = s;
}

static void print_numbers(const char *name, const struct result *r, size_t member)
{
	unsigned int i;

	printf(", \"%s\": [", name);
	for (i = 0; i < r->nr; i++)
		printf("%s%.6g", i ? ", " : "",
		       *(const double *)((const char *)&r->samples[i] + member));
	printf("]");
}

void result_print(const struct result *r)
{
	if (!r->nr)
		return;
	printf("{\"group\": \"%s\", \"row\": \"%s\", \"side\": \"%s\", \"bytes\": %llu, \"count\": %llu",
	       r->group, r->row, r->side, (unsigned long long)r->bytes,
	       (unsigned long long)r->count);
	print_numbers("ns", r, offsetof(struct sample, ns));
	print_numbers("faults", r, offsetof(struct sample, faults));
	print_numbers("calls", r, offsetof(struct sample, calls));
	printf("}\n");
	fflush(stdout);
}

/* A value that is not a time. */
void fact_print(const char *group, const char *row, const char *side, uint64_t bytes,
		const char *unit, double value)
{
	printf("{\"group\": \"%s\", \"row\": \"%s\", \"side\": \"%s\", \"bytes\": %llu, \"unit\": \"%s\", \"value\": %.12g}\n",
	       group, row, side, (unsigned long long)bytes, unit, value);
	fflush(stdout);
}
