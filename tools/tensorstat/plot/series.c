// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "plot/series.h"

#include "output/cell.h"
#include "rows/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void series_clear(void *row)
{
	list_clear(&((struct series *)row)->samples);
}

static const struct row_type sample_rows = { "sample", sizeof(struct sample), NULL };
static const struct row_type series_rows = { "series", sizeof(struct series), series_clear };

void recording_init(struct recording *r)
{
	*r = (struct recording){ .series.type = &series_rows, .limit_bytes = UNKNOWN };
}

void recording_clear(struct recording *r)
{
	list_clear(&r->series);
}

static struct series *series_add(struct recording *r, const char *name)
{
	struct series *s = list_add(&r->series);

	s->samples.type = &sample_rows;
	copy_text(s->name, sizeof(s->name), name);
	return s;
}

static struct series *series_get(struct recording *r, const char *name)
{
	for (size_t i = 0; i < r->series.n; i++) {
		struct series *s = list_row(&r->series, i);

		if (!strcmp(s->name, name))
			return s;
	}
	return series_add(r, name);
}

static const struct sample *last_sample(const struct series *s)
{
	return s->samples.n ? list_row(&s->samples, s->samples.n - 1) : NULL;
}

static void sample_add(struct series *s, const struct sample *sample)
{
	if (!s->samples.n || sample->bytes > s->peak.bytes)
		s->peak = *sample;
	*(struct sample *)list_add(&s->samples) = *sample;
}

/* The bytes that are compared with the limit, where the backend has one. */
static uint64_t bytes_in_use(const struct totals *t)
{
	int64_t bytes = t->used_bytes != UNKNOWN ? t->used_bytes : t->bytes;

	return bytes > 0 ? (uint64_t)bytes : 0;
}

static struct sample sample_of(const struct totals *t)
{
	return (struct sample){
		.time_ms = t->time_ms,
		.bytes = bytes_in_use(t),
		.buffers = t->buffers > 0 ? (uint64_t)t->buffers : 0,
	};
}

/* ---- from a backend ---- */

/* A process without buffers goes to zero once, so that its line does not end above zero. */
static void close_series(struct recording *r, int64_t time_ms)
{
	for (size_t i = 1; i < r->series.n; i++) {
		struct series *s = list_row(&r->series, i);
		const struct sample *last = last_sample(s);

		if (last->bytes && last->time_ms != time_ms)
			sample_add(s, &(struct sample){ .time_ms = time_ms });
	}
}

static void sample_processes(struct recording *r, const struct list *buffers, int64_t time_ms)
{
	struct list groups = { .type = &holder_rows };

	group_by_process(buffers, &groups);
	for (size_t i = 0; i < groups.n; i++) {
		const struct holder *g = list_row(&groups, i);
		char raw[CELL], name[SERIES_NAME];

		put_owner(raw, sizeof(raw), &g->owner, &(struct options){ 0 });
		copy_text(name, sizeof(name), raw);
		sample_add(series_get(r, name), &(struct sample){ time_ms, g->bytes, g->buffers });
	}
	list_clear(&groups);
	close_series(r, time_ms);
}

enum status recording_sample(struct recording *r, const struct backend *b)
{
	struct list buffers = { .type = &buffer_rows };
	struct totals t = { 0 };
	struct sample sample;
	enum status status = b->totals(&t);

	if (!status)
		status = b->buffers(&buffers);
	if (!status) {
		sample = sample_of(&t);
		r->limit_bytes = t.limit_bytes;
		sample_add(series_get(r, "all buffers"), &sample);
		sample_processes(r, &buffers, sample.time_ms);
	}
	list_clear(&buffers);
	return status;
}

/* ---- from a file ---- */

/* The value of a key in a line of JSON without nested objects; UNKNOWN for null or no such key. */
static int64_t value_of(const char *line, const char *key)
{
	char quoted[32];
	const char *at;
	char *end;
	int64_t value;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(line, quoted);
	if (!at)
		return UNKNOWN;
	at += strlen(quoted);
	errno = 0;
	value = strtoll(at, &end, 10);
	return end == at || errno || value < 0 ? UNKNOWN : value;
}

/* The end of the year 9999: axes of time have labels up to it, and sums do not overflow. */
#define MOST_TIME_MS 253402300799999

/* False if the line is none of `tensorstat -j stat`, or older than the one before. */
static bool take_line(struct recording *r, struct series *s, const char *line)
{
	const struct totals t = {
		.time_ms = value_of(line, "time_ms"),
		.bytes = value_of(line, "bytes"),
		.used_bytes = value_of(line, "used_bytes"),
		.limit_bytes = value_of(line, "limit_bytes"),
		.buffers = value_of(line, "buffers"),
	};
	const struct sample sample = sample_of(&t), *last = last_sample(s);

	if (t.time_ms == UNKNOWN || t.time_ms > MOST_TIME_MS ||
	    (t.bytes == UNKNOWN && t.used_bytes == UNKNOWN) ||
	    (last && last->time_ms > sample.time_ms))
		return false;
	if (t.limit_bytes != UNKNOWN)
		r->limit_bytes = t.limit_bytes;
	sample_add(s, &sample);
	return true;
}

static enum status take_lines(struct recording *r, const char *path, FILE *in)
{
	const char *slash = strrchr(path, '/');
	struct series *s = series_add(r, slash ? slash + 1 : path);
	enum status status = STATUS_OK;
	char *line = NULL;
	size_t room = 0, n = 0;

	while (!status && getline(&line, &room, in) >= 0) {
		n++;
		if (line[strspn(line, " \t\r\n")] && !take_line(r, s, line)) {
			complain("%s:%zu: not a line of tensorstat -j stat, or not in order of "
				 "time",
				 path, n);
			status = STATUS_ERROR;
		}
	}
	if (!status && ferror(in)) {
		complain("%s: %s", path, strerror(errno));
		status = STATUS_ERROR;
	}
	if (!status && !s->samples.n) {
		complain("%s: no samples", path);
		status = STATUS_ERROR;
	}
	free(line);
	return status;
}

enum status recording_read(struct recording *r, const char *path)
{
	FILE *in;
	enum status status;

	if (!strcmp(path, "-"))
		return take_lines(r, "standard input", stdin);
	in = fopen(path, "r");
	if (!in) {
		status = errno == EACCES ? STATUS_PERMISSION : STATUS_ERROR;
		complain("%s: %s", path, strerror(errno));
		return status;
	}
	status = take_lines(r, path, in);
	fclose(in);
	return status;
}

/* ---- largest processes ---- */

static int by_peak(const void *a, const void *b)
{
	uint64_t x = ((const struct series *)a)->peak.bytes;
	uint64_t y = ((const struct series *)b)->peak.bytes;

	return x < y ? 1 : x > y ? -1 : 0;
}

void recording_trim(struct recording *r, size_t n)
{
	if (r->series.n < 2)
		return;
	qsort(list_row(&r->series, 1), r->series.n - 1, sizeof(struct series), by_peak);
	while (r->series.n > n) {
		series_clear(list_row(&r->series, r->series.n - 1));
		r->series.n--;
		r->dropped++;
	}
}
