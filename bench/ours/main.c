// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Times rows on libtensor. bench/run sends the same requests to it and to the peers:
 *
 *   ours THREADS, then on stdin   time SAMPLES MS ROW    ->  ok NS NS NS ...
 *                                 value ROW              ->  ok NUMBER, or ok none
 *                                 peak ROW               ->  ok BYTES
 *                                 heap ROW               ->  ok BYTES
 *                                 work ROW               ->  ok BYTES FLOPS
 *                                 scale MS ROW           ->  see bench/scaling.c; none without it
 *   ROW is the rest of the line: the name of a row, or an operator and its arguments (call.c).
 *   Each NS is the average over a sample of about MS ms; where one run lasts longer, at least
 *   three samples are taken and no more than fit in ten times SAMPLES * MS.
 *   BYTES is the maximum in the third run, with TENSOR_DEBUG=1 in the environment: in storages, or in blocks of the heap
 *   that were allocated since the row was set up, with bench/heap.c preloaded.
 *   work: bytes of inputs and results, or of a row of limit.c, and multiplications and additions.
 *   The reply to an unknown row is "none", to a failure "error TEXT".
 *
 *   ours THREADS count ROW N      warms up, then runs it N times inside counted(), during
 *                                 which bench/instructions lets callgrind collect
 *
 *   ours THREADS profile ROW        prints where the time of the row goes, by operator
 */
#include "row.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int row_threads = 1;

static const struct row *const tables[] = { tiny_rows,	train_rows,   large_rows,
					    share_rows, blocked_rows, limit_rows };

/* ---- helpers of rows ---- */

static tensor *owned[64];
static int nowned;
static jmp_buf row_failed; /* set while a row is served */
static bool serving;

void row_fail(const char *why)
{
	printf("error %s\n", why);
	if (serving)
		longjmp(row_failed, 1);
	exit(1);
}

static _Noreturn void fail(void)
{
	row_fail(tensor_last_error()->text);
}

void row_check(int err)
{
	if (err < 0)
		fail();
}

tensor *row_own(tensor *t)
{
	if (!t || nowned == 64)
		fail();
	return owned[nowned++] = t;
}

void row_drop(void)
{
	while (nowned)
		tensor_release(owned[--nowned]);
}

tensor *row_wave(tensor_ints size, double seed, double scale)
{
	tensor *t = row_own(tensor_empty(size, TENSOR_OPTIONS(0)));
	float *p = tensor_mutable_data(t);

	for (int64_t i = 0, n = tensor_numel(t); i < n; i++)
		p[i] = (float)(scale * sin(seed + 0.37 * (double)i));
	return t;
}

double row_sum(tensor *t)
{
	int64_t n = t ? tensor_numel(t) : 0;
	float *p = malloc((size_t)n * sizeof(*p) + 1);
	double sum = 0;

	if (!t || !p || tensor_copy_to(t, p, (size_t)n * sizeof(*p)) < 0)
		fail();
	for (int64_t i = 0; i < n; i++)
		sum += p[i];
	free(p);
	tensor_release(t);
	return sum;
}

/* ---- timing ---- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double timed(const struct row *row, int64_t n)
{
	double start = now();

	row->run(n);
	return now() - start;
}

#define WARM_NS 1e7 /* until sleeping threads have woken up on processors of their own */

/* The number of runs that take about ns nanoseconds after the warm-up. */
static int64_t calibrate(const struct row *row, double ns)
{
	for (double start = now(); now() - start < WARM_NS;)
		row->run(1);
	for (int64_t n = 1;; n *= 2) {
		double t = timed(row, n);

		if (t >= ns / 2 || n > INT64_MAX / 4)
			return t >= ns ? n : (int64_t)((double)n * ns / t) + 1;
	}
}

static void time_row(const struct row *row, int samples, double ms)
{
	int64_t n = calibrate(row, ms * 1e6);
	double ns[64], spent = 0;
	int taken = 0;

	while (taken < samples && taken < 64 && (taken < 3 || spent < 10 * samples * ms * 1e6)) {
		ns[taken] = timed(row, n);
		spent += ns[taken++];
	}
	if (tensor_last_error()->code)
		fail();
	printf("ok");
	for (int i = 0; i < taken; i++)
		printf(" %.2f", ns[i] / (double)n);
	printf("\n");
}

/* The largest number that `live` counts in the third run, less `before`. */
static void print_peak(const struct row *row, int64_t (*live)(int64_t *peak), int64_t before)
{
	int64_t peak;

	row->run(2);
	row_check(live(&peak) < 0 ? -1 : 0);
	row->run(1);
	row_check(live(&peak) < 0 ? -1 : 0);
	printf("ok %lld\n", (long long)(peak - before));
}

/* Not inlined: callgrind collects while this function runs. */
static __attribute__((noinline)) void counted(void (*run)(int64_t), int64_t n)
{
	run(n);
	__asm__ volatile("");
}

/* ---- requests ---- */

static const struct row *find(const char *name)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (const struct row *row = tables[t]; row->name; row++)
			if (!strcmp(row->name, name))
				return row;
	if (step_row(name))
		return step_row(name);
	return call_row(name);
}

enum request {
	REQUEST_TIME,
	REQUEST_PEAK,
	REQUEST_HEAP,
	REQUEST_WORK,
	REQUEST_SCALE,
	REQUEST_VALUE
};

struct asked {
	enum request request;
	char name[256];
	int samples;
	double ms;
};

static bool parse(const char *line, struct asked *a)
{
	if (sscanf(line, "time %d %lf %255[^\n]", &a->samples, &a->ms, a->name) == 3)
		a->request = REQUEST_TIME;
	else if (sscanf(line, "peak %255[^\n]", a->name) == 1)
		a->request = REQUEST_PEAK;
	else if (sscanf(line, "heap %255[^\n]", a->name) == 1)
		a->request = REQUEST_HEAP;
	else if (sscanf(line, "work %255[^\n]", a->name) == 1)
		a->request = REQUEST_WORK;
	else if (sscanf(line, "scale %lf %255[^\n]", &a->ms, a->name) == 2)
		a->request = REQUEST_SCALE;
	else if (sscanf(line, "value %255[^\n]", a->name) == 1)
		a->request = REQUEST_VALUE;
	else
		return false;
	return true;
}

static void print_work(const char *name)
{
	int64_t bytes = 0, flops = 0;

	if (limit_work(name, &bytes, &flops) || (bytes = call_bytes()) > 0)
		printf("ok %lld %lld\n", (long long)bytes, (long long)flops);
	else
		printf("none\n");
}

static void answer(const struct row *row, const struct asked *a)
{
	int64_t before = 0, ignored, (*heap_bytes)(int64_t * peak) = NULL;

	if (a->request == REQUEST_HEAP) {
		*(void **)&heap_bytes = dlsym(RTLD_DEFAULT, "heap_bytes");
		if (!heap_bytes) {
			printf("error bench/heap.c is not preloaded\n");
			return;
		}
		before = heap_bytes(&ignored);
	}
	row->setup();
	if (a->request == REQUEST_TIME)
		time_row(row, a->samples, a->ms);
	else if (a->request == REQUEST_PEAK)
		print_peak(row, tensor_live_bytes, 0);
	else if (a->request == REQUEST_HEAP)
		print_peak(row, heap_bytes, before);
	else if (a->request == REQUEST_WORK)
		print_work(a->name);
	else if (a->request == REQUEST_SCALE && scale_row)
		scale_row(row, a->ms);
	else if (row->value && a->request == REQUEST_VALUE)
		printf("ok %.9g\n", row->value());
	else
		printf("ok none\n");
	if (row->teardown)
		row->teardown();
}

/* A row that fails costs its own reply; what it had allocated beside its tensors is lost. */
static void serve(const char *line)
{
	struct tensor_scope_guard none = tensor_scope_enter(), before = none;
	const struct row *row;
	struct asked a;

	tensor_scope_leave(&none);
	if (!parse(line, &a)) {
		printf("error request not understood: %s", line);
		return;
	}
	tensor_clear_error();
	serving = true;
	if (setjmp(row_failed))
		tensor_scope_leave(&before); /* of the scopes that the row had opened */
	else if (!(row = find(a.name)))
		printf("none\n");
	else
		answer(row, &a);
	serving = false;
	row_drop();
}

#define PROFILED 5 /* runs */

static int print_profile(const char *name)
{
	const struct row *row = find(name);
	tensor_profiler *p;

	if (!row)
		return 77;
	row->setup();
	row->run(2);
	p = tensor_profiler_start(0);
	row_check(p ? 0 : -1);
	row->run(PROFILED);
	row_check(tensor_profiler_stop(p));
	printf("%s, %d threads, %d runs\n", name, row_threads, PROFILED);
	tensor_profiler_print(p, stdout, 25);
	tensor_profiler_free(p);
	return tensor_last_error()->code != 0;
}

int main(int argc, char **argv)
{
	char line[320];

	row_threads = argc > 1 ? atoi(argv[1]) : 1;
	row_check(tensor_set_num_threads(row_threads));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 5 && !strcmp(argv[2], "count")) {
		const struct row *row = find(argv[3]);

		if (!row)
			return 77;
		row->setup();
		row->run(200);
		counted(row->run, atoll(argv[4]));
		return tensor_last_error()->code != 0;
	}
	if (argc == 4 && !strcmp(argv[2], "profile"))
		return print_profile(argv[3]);
	while (fgets(line, sizeof(line), stdin))
		serve(line);
	return 0;
}
