// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * top: the largest buffers, processes or users on a live screen. Without a terminal, and on a dumb
 * one, it writes a table for each interval.
 */
#include "args.h"
#include "commands/commands.h"
#include "rows/text.h"
#include "top/keys.h"
#include "top/screen.h"
#include "top/top.h"

#include <string.h>

static void draw(struct top *t)
{
	int rows, columns;

	screen_size(&rows, &columns);
	top_draw(t, screen_begin(), rows, columns);
	screen_show();
}

/* Reads when the interval has passed; keys and changes of the window only draw again. */
static enum status show_live(struct top *t)
{
	double begin = seconds_now();
	enum status status = top_read(t);

	while (!status) {
		double left = begin + t->delay - seconds_now();

		draw(t);
		if (t->count == 1 || !top_key(t, key_read(left > 0 ? left : 0)))
			break;
		if (seconds_now() < begin + t->delay)
			continue;
		begin = seconds_now();
		t->count--;
		if (!t->paused)
			status = top_read(t);
	}
	screen_close();
	return status;
}

static enum status show_plain(struct top *t)
{
	enum status status;

	while (1) {
		status = top_read(t);
		if (status)
			return status;
		top_draw(t, stdout, 0, 0);
		if (fflush(stdout) == EOF)
			return STATUS_ERROR;
		if (!--t->count)
			return STATUS_OK;
		sleep_seconds(t->delay);
		putchar('\n');
	}
}

/* ---- arguments ---- */

static enum status unknown_word(const char *arg)
{
	static const char *const words[] = { "buffer", "process", "user", "owner", "text", NULL };

	return usage_unknown("top expects buffer, process, user, owner, text or a COUNT, not", arg,
			     words);
}

static enum status parse(char **arg, struct top *t)
{
	for (; *arg; arg++) {
		enum top_mode mode = MODE_BUFFER;
		char *filter = matches(*arg, "owner") ? t->owner :
			       matches(*arg, "text")  ? t->text :
							NULL;

		while (mode < MODES && !matches(*arg, top_kinds[mode]->name))
			mode++;
		if (mode < MODES)
			t->mode = mode;
		else if (filter && !arg[1])
			return usage_error("a value is missing after", *arg);
		else if (filter)
			copy_text(filter, FILTER_MAX, *++arg);
		else if (!parse_u64(*arg, &t->count) || !t->count)
			return unknown_word(*arg);
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
	status = view_init(&v, top_kinds[t->mode], &o);
	if (!status && v.sort >= 0) {
		t->sort = v.sort;
		t->reverse = v.descending != top_kinds[t->mode]->columns[v.sort].right;
	}
	return status;
}

enum status cmd_top(char **arg, const struct options *o)
{
	static struct top t;
	enum status status;

	t = (struct top){
		.o = *o, .sort = -1, .count = UINT64_MAX, .delay = o->watch ? o->watch : 2
	};
	status = parse(arg, &t);
	if (!status && (o->json || o->oneline))
		status = usage_error("top has no JSON and no --oneline; use",
				     "buffer show -j -w SEC");
	if (!status)
		status = take_sort(&t);
	if (!status)
		status = choose_backend(o->backend, &t.backend);
	if (status)
		return status;
	t.live = screen_open();
	status = t.live ? show_live(&t) : show_plain(&t);
	top_clear(&t);
	return status;
}
