// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The profiler's public functions: start and stop, the table, the trace. */
#include "base/profile.h"

#include "base/error.h"
#include "dispatch/trace.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- start and stop ---- */

TENSOR_EXPORT tensor_profiler *tensor_profiler_start(unsigned flags)
{
	tensor_profiler *p;

	if (flags & ~(TENSOR_PROFILE_SHAPES | TENSOR_PROFILE_EVENTS)) {
		tensor_fail(EINVAL, "profiler_start: flags 0x%x are unknown", flags);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		tensor_fail(ENOMEM, "profiler_start: no memory");
		return NULL;
	}
	p->flags = flags;
	/* The operators first: nodes of backward are recorded from the beginning of the profile. */
	if (trace_operators(true) < 0) {
		free(p);
		return NULL;
	}
	if (profile_begin(p) < 0) {
		tensor_fail(EBUSY, "profiler_start: a profile is recorded already");
		free(p);
		return NULL;
	}
	/* Another thread may have stopped the one before meanwhile. */
	if (trace_operators(true) < 0) {
		tensor_profiler_free(p);
		return NULL;
	}
	return p;
}

TENSOR_EXPORT int tensor_profiler_stop(tensor_profiler *p)
{
	if (!p)
		return null_argument_code("profiler_stop");
	profile_end(p);
	/* Another thread may have started the next one meanwhile. */
	if (!trace_on())
		trace_operators(false);
	if (trace_on())
		return trace_operators(true);
	return 0;
}

TENSOR_EXPORT void tensor_profiler_free(tensor_profiler *p)
{
	if (!p)
		return;
	tensor_profiler_stop(p);
	profile_clear(p);
	free(p);
}

/* ---- rows ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct tensor_profile_row *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* All rows, sorted; the caller frees them. NULL with the error set. *n: their number. */
static struct tensor_profile_row *sorted_rows(tensor_profiler *p, const char *function, int64_t *n)
{
	struct tensor_profile_row *rows;

	pthread_mutex_lock(&profile_lock);
	*n = 0;
	rows = calloc((size_t)p->nrows + 1, sizeof(*rows));
	for (int i = 0; i < PROFILE_CHAINS && rows; i++)
		for (const struct profile_row *r = p->chains[i]; r; r = r->next)
			rows[(*n)++] = r->row;
	pthread_mutex_unlock(&profile_lock);
	if (rows)
		qsort(rows, (size_t)*n, sizeof(*rows), compare_rows);
	else
		tensor_fail(ENOMEM, "%s: no memory", function);
	return rows;
}

TENSOR_EXPORT int64_t tensor_profiler_rows(tensor_profiler *p, struct tensor_profile_row *rows,
					   int64_t n)
{
	struct tensor_profile_row *all;
	int64_t count;

	if (!p)
		return null_argument_code("profiler_rows");
	if (n < 0 || (n && !rows))
		return tensor_fail(EINVAL, "profiler_rows: there is no space for %lld rows",
				   (long long)n);
	all = sorted_rows(p, "profiler_rows", &count);
	if (!all)
		return -ENOMEM;
	if (n)
		memcpy(rows, all, (size_t)(n < count ? n : count) * sizeof(*rows));
	free(all);
	return count;
}

/* ---- the table ---- */

/* "1.25 ms" in 10 columns. */
static const char *format_time(double ns, char text[16])
{
	static const char *const units[] = { "ns", "us", "ms", "s " };
	int u = 0;

	for (; u < 3 && ns >= 999.5; u++)
		ns /= 1000;
	snprintf(text, 16, u ? "%.2f %s" : "%.0f %s", ns, units[u]);
	return text;
}

static const char *format_bytes(double bytes, char text[16])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	int u = 0;

	for (; u < 4 && bytes >= 1023.5; u++)
		bytes /= 1024;
	snprintf(text, 16, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
	return text;
}

#define TIME(ns)     format_time((double)(ns), (char[16]){ 0 })
#define BYTES(bytes) format_bytes((double)(bytes), (char[16]){ 0 })

static void print_rows(FILE *f, const struct tensor_profile_row *rows, int64_t n, int64_t total)
{
	fprintf(f, "%-28s %-9s %9s %11s %6s %11s %11s %11s %11s\n", "NAME", "CATEGORY", "CALLS",
		"SELF", "SELF%", "TOTAL", "MEAN", "MAX", "BYTES");
	for (int64_t i = 0; i < n; i++) {
		const struct tensor_profile_row *r = &rows[i];

		fprintf(f, "%-28s %-9s %9lld %11s %5.1f%% %11s %11s %11s %11s%s%s\n", r->name,
			r->category, (long long)r->count, TIME(r->self_ns),
			total ? 100 * (double)r->self_ns / (double)total : 0, TIME(r->total_ns),
			TIME((double)r->total_ns / (double)r->count), TIME(r->max_ns),
			BYTES(r->bytes), *r->inputs ? "  " : "", r->inputs);
	}
}

static int64_t elapsed(const tensor_profiler *p)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (p->end ? p->end : t.tv_sec * INT64_C(1000000000) + t.tv_nsec) - p->start;
}

TENSOR_EXPORT int tensor_profiler_print(tensor_profiler *p, void *stream, int64_t n)
{
	FILE *f = stream ? stream : stdout;
	struct tensor_profile_row *rows;
	int64_t count, total = 0, time, lost;
	uint64_t peak;

	if (!p)
		return null_argument_code("profiler_print");
	if (n < 0)
		return tensor_fail(EINVAL, "profiler_print: %lld rows", (long long)n);
	rows = sorted_rows(p, "profiler_print", &count);
	if (!rows)
		return -ENOMEM;
	pthread_mutex_lock(&profile_lock);
	time = elapsed(p);
	peak = p->peak;
	lost = p->lost;
	pthread_mutex_unlock(&profile_lock);
	for (int64_t i = 0; i < count; i++)
		total += rows[i].self_ns;
	print_rows(f, rows, n && n < count ? n : count, total);
	fprintf(f, "%s in %lld rows, of %s; peak memory %s", TIME(total), (long long)count,
		TIME(time), BYTES(peak));
	fprintf(f, lost ? "; %lld calls are not in the trace\n" : "\n", (long long)lost);
	free(rows);
	return fflush(f) ? tensor_fail(errno, "profiler_print: %s", strerror(errno)) : 0;
}

/* ---- the trace ---- */

static void write_text(struct file_out *out, const char *text)
{
	file_write(out, text, strlen(text));
}

/* An arrow: begins in the operator that made a node, ends in the node. */
static void write_arrow(struct file_out *out, const struct profile_event *e, bool backward)
{
	char text[256];

	snprintf(
		text, sizeof(text),
		",\n{\"name\":\"backward\",\"cat\":\"graph\",\"ph\":\"%s\",\"id\":\"%p\",\"ts\":%lld.%03d,"
		"\"pid\":%d,\"tid\":%d%s}",
		backward ? "f" : "s", e->node, (long long)(e->start / 1000), (int)(e->start % 1000),
		(int)getpid(), (int)e->tid, backward ? ",\"bp\":\"e\"" : "");
	write_text(out, text);
}

static void write_event(struct file_out *out, const struct profile_event *e)
{
	const struct tensor_profile_row *r = &e->row->row;
	char text[512];

	snprintf(
		text, sizeof(text),
		",\n{\"name\":\"%.100s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%lld.%03d,\"dur\":%lld.%03d,"
		"\"pid\":%d,\"tid\":%d,\"args\":{",
		r->name, r->category, (long long)(e->start / 1000), (int)(e->start % 1000),
		(long long)(e->ns / 1000), (int)(e->ns % 1000), (int)getpid(), (int)e->tid);
	write_text(out, text);
	if (*r->inputs) {
		write_text(out, "\"inputs\":");
		write_text(out, r->inputs);
	}
	write_text(out, "}}");
	if (e->node)
		write_arrow(out, e, !strcmp(r->category, "backward"));
}

TENSOR_EXPORT int tensor_profiler_save_trace(tensor_profiler *p, const char *path)
{
	struct file_out out;
	char text[160];
	bool running;
	int err;

	if (!p || !path)
		return null_argument_code("profiler_save_trace");
	if (!(p->flags & TENSOR_PROFILE_EVENTS))
		return tensor_fail(EINVAL, "profiler_save_trace: the profile was recorded without "
					   "TENSOR_PROFILE_EVENTS");
	pthread_mutex_lock(&profile_lock);
	running = !p->end;
	pthread_mutex_unlock(&profile_lock);
	if (running)
		return tensor_fail(EBUSY,
				   "profiler_save_trace: the profile is recorded: stop it first");
	err = file_create(&out, "profiler_save_trace", path);
	if (err < 0)
		return file_finish(&out, err);
	snprintf(
		text, sizeof(text),
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":0,"
		"\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"libtensor\"}}",
		(int)getpid(), (int)getpid());
	write_text(&out, text);
	/* A profile that has ended does not change. */
	for (int64_t i = 0; i < p->nevents; i++)
		write_event(&out, &p->events[i]);
	write_text(&out, "\n]}\n");
	return file_finish(&out, 0);
}
