// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* stat [DELAY [COUNT]]: totals over all buffers, a line for each sample, as vmstat prints them. */
#include "args.h"
#include "backend/backend.h"
#include "commands/commands.h"
#include "output/json.h"
#include "output/table.h"

/* Samples between two headers. */
#define ROWS_PER_HEADER 20

static enum status parse(char **arg, double *delay, uint64_t *count)
{
	*delay = 0;
	*count = 1;
	if (!*arg)
		return STATUS_OK;
	if (!parse_seconds(*arg, delay))
		return usage_error("DELAY expects seconds, not", *arg);
	*count = UINT64_MAX;
	if (!*++arg)
		return STATUS_OK;
	if (!parse_u64(*arg, count) || !*count)
		return usage_error("COUNT expects a positive number, not", *arg);
	return arg[1] ? usage_error("unexpected argument", arg[1]) : STATUS_OK;
}

static void write_json(const struct totals *t, const struct backend *b, bool many,
		       const struct options *o)
{
	const void *row = t;

	json_open(stdout, o->pretty);
	if (many) {
		json_enter('{');
		totals_json(t, b->name);
		json_leave('}');
	} else {
		json_rows(&totals_kind, &row, 1, b->name);
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
	local.no_header |= nth % ROWS_PER_HEADER != 0;
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
	for (uint64_t i = 0; i < count && !status; i++) {
		if (i)
			sleep_seconds(delay);
		status = stat_once(b, &v, i, count > 1, o);
	}
	return status;
}
