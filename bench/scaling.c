// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * How rows would scale: the library is linked with this file's parallel_for(), which runs the chunks of each range one after
 * the other on one thread, measures each, and computes when N workers would have finished that take the next chunk as soon
 * as they are free, as the pool's do. bench/scaling.py sends `scale MS ROW` and prints the table.
 *
 * Not in the simulation: caches and memory that processors share, and the clock rates of busy processors.
 */
#include "ours/row.h"

#include "iter/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SAMPLES = 9, COUNTS = 4, MOST = 64 };

static const int counts[COUNTS] = { 2, 4, 16, MOST };

/* A sample: nanoseconds in all, those in ranges of several chunks, and what these would take; counts of both and of runs. */
static struct totals {
	double all, parallel, simulated;
	int64_t ranges, chunks, runs;
} totals;

static int workers; /* that are simulated */

static double region_ns; /* to hand a range to the pool and wait for it, measured with two threads */
static __thread bool inside;

void __real_parallel_for(int64_t begin, int64_t end, int64_t grain, parallel_fn fn, void *ctx);
void __wrap_parallel_for(int64_t begin, int64_t end, int64_t grain, parallel_fn fn, void *ctx);

static double read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The processor time of this thread, in which other programs do not count. */
static double now(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Gives a chunk of ns to the worker that is free first. */
static void give(double *free_at, double ns)
{
	int first = 0;

	for (int i = 1; i < workers; i++)
		if (free_at[i] < free_at[first])
			first = i;
	free_at[first] += ns;
}

static double last(const double *free_at)
{
	double end = 0;

	for (int i = 0; i < workers; i++)
		end = free_at[i] > end ? free_at[i] : end;
	return end;
}

void __wrap_parallel_for(int64_t begin, int64_t end, int64_t grain, parallel_fn fn, void *ctx)
{
	double free_at[MOST] = { 0 }, before, ns;

	if (inside || end - begin <= grain) {
		__real_parallel_for(begin, end, end > begin ? end - begin : 1, fn, ctx);
		return;
	}
	inside = true;
	for (int64_t i = begin; i < end; i += grain) {
		before = now();
		fn(i, i + grain < end ? i + grain : end, ctx);
		ns = now() - before;
		totals.parallel += ns;
		totals.chunks++;
		give(free_at, ns);
	}
	inside = false;
	totals.ranges++;
	totals.simulated += last(free_at) + region_ns;
}

static void nothing(int64_t begin, int64_t end, void *ctx)
{
	(void)begin, (void)end, (void)ctx;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A twentieth of many ranges of two chunks that do nothing take less, so that other programs hardly count. */
static void measure_region(void)
{
	static double ns[1000];

	tensor_set_num_threads(2);
	for (int i = 0; i < 1000; i++) {
		double before = read_ns(CLOCK_MONOTONIC);

		__real_parallel_for(0, 2, 1, nothing, NULL);
		ns[i] = read_ns(CLOCK_MONOTONIC) - before;
	}
	tensor_set_num_threads(1);
	qsort(ns, 1000, sizeof(*ns), by_size);
	region_ns = ns[50];
}

static struct totals sample(const struct row *row, double ms)
{
	double begin = now();

	totals = (struct totals){ .runs = 0 };
	do {
		row->run(1);
		totals.runs++;
	} while (now() - begin < ms * 1e6);
	totals.all = now() - begin;
	return totals;
}

static int by_time(const void *a, const void *b)
{
	const struct totals *x = a, *y = b;
	double s = x->all / (double)x->runs, t = y->all / (double)y->runs;

	return (s > t) - (s < t);
}

/* The sample whose runs took the median time, with so many workers. Ranges are divided as for so many threads. */
static struct totals simulate(const struct row *row, double ms, int count)
{
	struct totals all[SAMPLES];

	workers = count;
	tensor_set_num_threads(count);
	sample(row, ms);
	for (int i = 0; i < SAMPLES; i++)
		all[i] = sample(row, ms);
	qsort(all, SAMPLES, sizeof(*all), by_time);
	return all[SAMPLES / 2];
}

/* The reply to `scale`. Not defined in bench/ours. */
void scale_row(const struct row *row, double ms)
{
	struct totals t;

	if (!region_ns)
		measure_region();
	t = simulate(row, ms, 1);
	printf("ok %.1f %.1f %lld %lld", t.all / (double)t.runs, t.parallel / (double)t.runs,
	       (long long)(t.ranges / t.runs), (long long)(t.chunks / t.runs));
	for (int k = 0; k < COUNTS; k++) {
		t = simulate(row, ms, counts[k]);
		printf(" %.1f", (t.all - t.parallel + t.simulated) / (double)t.runs);
	}
	printf("\n");
}
