// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * top: the largest buffers, processes or users, on a screen that follows. Only rows that fit into
 * the window are drawn, so ten thousand of them cost the reading and a sort. In a pipe it writes
 * one plain table after the other.
 */
#include "screen.h"
#include "tensorstat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEAD_LINES 4

enum mode { MODE_BUFFER, MODE_PROCESS, MODE_USER, MODES };

struct top {
	struct options o;
	const struct backend *backend;
	enum mode mode;
	int sort; /* column; -1: by size */
	bool reverse;
	double delay;
	uint64_t count; /* pictures left */
	bool live;
	double seconds; /* the last picture took */
};

static const struct kind *const kinds[MODES] = { &buffer_kind, &process_kind, &user_kind };

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- a picture ---- */

static int size_column(const struct kind *kind)
{
	for (int i = 0; i < kind->n_columns; i++)
		if (!strcmp(kind->columns[i].name, "size"))
			return i;
	return 0;
}

static void top_view(const struct top *t, struct view *v)
{
	const struct kind *kind = kinds[t->mode];

	view_init(v, kind,
		  &(struct options){ .fields = t->mode == MODE_BUFFER ? t->o.fields : NULL });
	v->sort = t->sort >= 0 ? t->sort : size_column(kind);
	v->descending = kind->columns[v->sort].right != t->reverse;
}

static void put_totals(FILE *out, const struct top *t, const struct totals *totals)
{
	int64_t bytes = totals->used_bytes != UNKNOWN ? totals->used_bytes : totals->bytes;
	char used[CELL], limit[CELL] = "-", clock[16];
	time_t now = totals->time_ms / 1000;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
	put_size(used, sizeof(used), (uint64_t)bytes, &t->o);
	if (totals->limit_bytes != UNKNOWN)
		put_size(limit, sizeof(limit), (uint64_t)totals->limit_bytes, &t->o);
	fprintf(out, "tensorstat %s  backend %s  read and sorted in %.0f ms\n", clock,
		t->backend->name, t->seconds * 1000);
	fprintf(out, "%lld buffers, %lld clients, %s of %s", (long long)totals->buffers,
		(long long)totals->clients, used, limit);
	if (totals->limit_bytes > 0)
		fprintf(out, " (%.1f%%)", 100.0 * (double)bytes / (double)totals->limit_bytes);
	if (totals->refused > 0)
		fprintf(out, ", %lld refused", (long long)totals->refused);
	fputc('\n', out);
}

static void put_rows(FILE *out, const struct top *t, const struct view *v, const struct list *list,
		     const void *const *row, size_t room)
{
	size_t shown = list->n < room ? list->n : room;

	fprintf(out, "%s by %s%s: %zu", kinds[t->mode]->name, v->kind->columns[v->sort].name,
		v->descending ? "" : ", smallest first", list->n);
	if (shown < list->n)
		fprintf(out, ", the first %zu shown", shown);
	if (t->live)
		fputs("   [b]uffer [p]rocess [u]ser [s]ort [r]everse [q]uit", out);
	fputc('\n', out);
	table_print(out, v, row, shown, &t->o);
}

static enum status read_rows(const struct top *t, struct totals *totals, struct list *buffers,
			     struct list *rows)
{
	enum status status = t->backend->totals(totals);

	if (!status)
		status = t->backend->buffers(buffers);
	if (!status && t->mode == MODE_PROCESS)
		group_by_process(buffers, rows);
	if (!status && t->mode == MODE_USER)
		group_by_user(buffers, rows);
	return status;
}

static enum status picture(struct top *t, FILE *out, int height)
{
	struct list buffers = { .kind = &buffer_kind }, rows = { .kind = kinds[t->mode] };
	double begun = seconds_now();
	struct totals totals = { 0 };
	struct list *list;
	enum status status;

	status = read_rows(t, &totals, &buffers, &rows);
	if (!status) {
		struct view v;
		const void **row;

		list = t->mode == MODE_BUFFER ? &buffers : &rows;
		top_view(t, &v);
		row = view_order(&v, list, &t->o);
		t->seconds = seconds_now() - begun;
		put_totals(out, t, &totals);
		put_rows(out, t, &v, list, row, height > HEAD_LINES ? height - HEAD_LINES : 0);
		free(row);
	}
	list_clear(&buffers);
	list_clear(&rows);
	return status;
}

/* ---- keys ---- */

static void set_mode(struct top *t, enum mode mode)
{
	t->mode = mode;
	t->sort = -1;
	t->reverse = false;
}

/* The next column that is shown. */
static void next_sort(struct top *t)
{
	struct view v;
	int i = 0;

	top_view(t, &v);
	while (i < v.n && v.column[i] != v.sort)
		i++;
	t->sort = v.column[(i + 1) % v.n];
	t->reverse = false;
}

/* Whether to go on. */
static bool on_key(struct top *t, int key)
{
	switch (key) {
	case -1:
	case 'q':
		return false;
	case 'b':
		set_mode(t, MODE_BUFFER);
		break;
	case 'p':
		set_mode(t, MODE_PROCESS);
		break;
	case 'u':
		set_mode(t, MODE_USER);
		break;
	case 's':
		next_sort(t);
		break;
	case 'r':
		t->reverse = !t->reverse;
		break;
	}
	return true;
}

static enum status run_live(struct top *t)
{
	enum status status = STATUS_OK;
	int rows, columns;

	while (1) {
		screen_size(&rows, &columns);
		status = picture(t, screen_begin(), rows);
		if (status)
			break;
		screen_show();
		if (!--t->count || !on_key(t, screen_key(t->delay)))
			break;
	}
	screen_close();
	return status;
}

static enum status run_batch(struct top *t)
{
	const struct timespec pause = { (time_t)t->delay,
					(long)((t->delay - (double)(time_t)t->delay) * 1e9) };
	enum status status;

	while (1) {
		status = picture(t, stdout, INT32_MAX);
		if (status || fflush(stdout) == EOF || !--t->count)
			return status;
		nanosleep(&pause, NULL);
		putchar('\n');
	}
}

/* ---- arguments ---- */

static enum status parse(char **arg, struct top *t)
{
	for (; *arg; arg++) {
		enum mode mode = MODE_BUFFER;

		while (mode < MODES && !is(*arg, kinds[mode]->name))
			mode++;
		if (mode < MODES)
			t->mode = mode;
		else if (!parse_u64(*arg, &t->count) || !t->count)
			return bad("top wants buffer, process, user or a COUNT, not", *arg);
	}
	return STATUS_OK;
}

static enum status take_sort(struct top *t)
{
	struct view v;
	struct options o = t->o;
	enum status status;

	if (t->mode != MODE_BUFFER)
		o.fields = NULL;
	status = view_init(&v, kinds[t->mode], &o);
	if (!status && v.sort >= 0) {
		t->sort = v.sort;
		t->reverse = v.descending != kinds[t->mode]->columns[v.sort].right;
	}
	return status;
}

enum status cmd_top(char **arg, const struct options *o)
{
	struct top t = {
		.o = *o, .sort = -1, .count = UINT64_MAX, .delay = o->watch ? o->watch : 2
	};
	enum status status = parse(arg, &t);

	if (!status && (o->json || o->oneline))
		status = bad("top is for people; for programs there is", "buffer show -j -w SEC");
	if (!status)
		status = take_sort(&t);
	if (!status)
		status = choose_backend(o->backend, &t.backend);
	if (status)
		return status;
	t.live = screen_open();
	return t.live ? run_live(&t) : run_batch(&t);
}
