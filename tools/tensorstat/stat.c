// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* stat [DELAY [COUNT]]: the totals of the machine, as vmstat shows its own. */
#include "tensorstat.h"

#include <time.h>

#define ROWS_A_HEAD 20

static enum status parse(char **arg, double *delay, uint64_t *count)
{
	*delay = 0;
	*count = 1;
	if (!*arg)
		return STATUS_OK;
	if (!parse_seconds(*arg, delay))
		return bad("DELAY is seconds, not", *arg);
	*count = UINT64_MAX;
	if (!*++arg)
		return STATUS_OK;
	if (!parse_u64(*arg, count) || !*count)
		return bad("COUNT is a number, not", *arg);
	return arg[1] ? bad("what is", arg[1]) : STATUS_OK;
}

static void write_json(const struct totals *t, const struct backend *b, bool many,
		       const struct options *o)
{
	const void *row = t;

	json_open(stdout, o->pretty);
	if (many) {
		json_enter('{');
		totals_json(t, b);
		json_leave('}');
	} else {
		json_rows(&totals_kind, &row, 1, b);
	}
	json_close();
}

static enum status stat_once(const struct backend *b, const struct view *v, uint64_t nth, bool many,
			     const struct options *o)
{
	struct options local = *o;
	struct totals t = { 0 };
	const void *row = &t;
	enum status status = b->totals(&t);

	if (status)
		return status;
	local.no_header |= nth % ROWS_A_HEAD != 0;
	if (o->json)
		write_json(&t, b, many, o);
	else if (o->oneline)
		lines_print(stdout, v, &row, 1, o);
	else
		table_print(stdout, v, &row, 1, &local);
	return fflush(stdout) == EOF ? STATUS_ERROR : STATUS_OK;
}

enum status cmd_stat(char **arg, const struct options *o)
{
	const struct backend *b;
	struct timespec pause;
	uint64_t count;
	double delay;
	struct view v;
	enum status status = parse(arg, &delay, &count);

	if (!status && !delay && o->watch) {
		delay = o->watch;
		count = UINT64_MAX;
	}
	if (!status)
		status = view_init(&v, &totals_kind, o);
	if (!status)
		status = choose_backend(o->backend, &b);
	if (status)
		return status;
	if (!o->json && !o->oneline && !o->no_header)
		printf("backend: %s\n", b->name);
	pause = (struct timespec){ (time_t)delay, (long)((delay - (double)(time_t)delay) * 1e9) };
	for (uint64_t i = 0; i < count && !status; i++) {
		if (i)
			nanosleep(&pause, NULL);
		status = stat_once(b, &v, i, count > 1, o);
	}
	return status;
}
