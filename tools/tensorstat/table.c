// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rows as a table for people: columns as wide as their widest cell, sizes in IEC units. */
#include "tensorstat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CELL	    96
#define MAX_COLUMNS 9

struct column {
	const char *head;
	bool right; /* numbers end where the column ends */
};

struct table {
	const struct column *column;
	int columns;
	char (*cell)[CELL]; /* row by row */
	size_t rows;
};

/* ---- cells ------------------------------------------------------------------------------------ */

static void put_size(char *cell, uint64_t bytes, const struct options *o)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	int unit = 0;

	if (o->raw) {
		snprintf(cell, CELL, "%" PRIu64, bytes);
		return;
	}
	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(cell, CELL, value == (double)(uint64_t)value ? "%.0f%s" : "%.1f%s", value,
		 units[unit]);
}

static void put_shape(char *cell, const struct buffer *b)
{
	size_t at = 0;

	if (!b->dtype) {
		snprintf(cell, CELL, "-");
		return;
	}
	at += snprintf(cell, CELL, "[");
	for (uint32_t i = 0; i < b->ndim && at < CELL; i++)
		at += snprintf(cell + at, CELL - at, "%s%" PRId64, i ? "," : "", b->sizes[i]);
	if (at < CELL)
		snprintf(cell + at, CELL - at, "]");
}

static size_t put_owner(char *cell, size_t room, const struct owner *w, const struct options *o)
{
	int n = o->numeric ? snprintf(cell, room, "%d", w->pid) :
			     snprintf(cell, room, "%d/%s", w->pid, w->comm);

	return (size_t)n < room ? (size_t)n : room - 1;
}

/* The first three; "+2" for two more. */
static void put_owners(char *cell, const struct buffer *b, const struct options *o)
{
	size_t at = 0;

	for (size_t i = 0; i < b->n_owners && i < 3; i++) {
		if (i)
			at += snprintf(cell + at, CELL - at, ",");
		at += put_owner(cell + at, CELL - at - 8, &b->owners[i], o);
	}
	if (b->n_owners > 3)
		snprintf(cell + at, CELL - at, ",+%zu", b->n_owners - 3);
	if (!b->n_owners)
		snprintf(cell, CELL, "-");
}

static void put_state(char *cell, const struct buffer *b)
{
	snprintf(cell, CELL, "%s%s%s", b->shared ? "shared" : "private",
		 b->readonly ? ",readonly" : "", b->orphan ? ",orphan" : "");
}

static void put_age(char *cell, int64_t ns)
{
	int64_t s = ns / 1000000000;

	if (ns == UNKNOWN)
		snprintf(cell, CELL, "-");
	else if (s < 60)
		snprintf(cell, CELL, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(cell, CELL, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else
		snprintf(cell, CELL, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
}

/* ---- the table ---------------------------------------------------------------------------------- */

static struct table table_new(const struct column *column, int columns, size_t rows)
{
	struct table t = {column, columns, calloc(rows * columns + 1, CELL), rows};

	if (!t.cell) {
		complain("out of memory");
		exit(STATUS_ERROR);
	}
	return t;
}

static char *cell(struct table *t, size_t row, int column)
{
	return t->cell[row * t->columns + column];
}

/* Characters, not bytes; wide ones count as one. */
static int width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static void print_cell(const char *text, int wide, bool right, bool last)
{
	int pad = wide - width(text);

	if (right)
		printf("%*s%s", pad, "", text);
	else
		printf("%s%*s", text, last ? 0 : pad, "");
	if (!last)
		fputs("  ", stdout);
}

static void table_print(struct table *t, const struct backend *b, const struct options *o)
{
	int wide[MAX_COLUMNS];

	for (int c = 0; c < t->columns; c++) {
		wide[c] = o->no_header ? 0 : width(t->column[c].head);
		for (size_t r = 0; r < t->rows; r++)
			if (width(cell(t, r, c)) > wide[c])
				wide[c] = width(cell(t, r, c));
	}
	if (!o->no_header) {
		printf("backend: %s\n", b->name);
		for (int c = 0; c < t->columns; c++)
			print_cell(t->column[c].head, wide[c], t->column[c].right,
				   c == t->columns - 1);
		putchar('\n');
	}
	for (size_t r = 0; r < t->rows; r++) {
		for (int c = 0; c < t->columns; c++)
			print_cell(cell(t, r, c), wide[c], t->column[c].right,
				   c == t->columns - 1);
		putchar('\n');
	}
	free(t->cell);
}

void table_buffers(const struct buffers *list, const struct backend *backend,
		   const struct options *o)
{
	static const struct column columns[] = {{"ID", true},	  {"NAME", false}, {"DTYPE", false},
						{"SHAPE", false}, {"SIZE", true},  {"PINNED", true},
						{"REFS", true},	  {"OWNER", false}, {"STATE", false}};
	struct table t = table_new(columns, 9, list->n);

	for (size_t r = 0; r < list->n; r++) {
		const struct buffer *b = &list->row[r];

		snprintf(cell(&t, r, 0), CELL, "%" PRIu64, b->id);
		snprintf(cell(&t, r, 1), CELL, "%s", *b->label ? b->label : "-");
		snprintf(cell(&t, r, 2), CELL, "%s", dtype_name(b->dtype));
		put_shape(cell(&t, r, 3), b);
		put_size(cell(&t, r, 4), b->bytes, o);
		put_size(cell(&t, r, 5), b->pinned_bytes, o);
		snprintf(cell(&t, r, 6), CELL, "%" PRIu64, b->refs);
		put_owners(cell(&t, r, 7), b, o);
		put_state(cell(&t, r, 8), b);
	}
	table_print(&t, backend, o);
}

void table_clients(const struct clients *list, const struct backend *backend,
		   const struct options *o)
{
	static const struct column columns[] = {{"ID", true},	   {"OWNER", false}, {"UID", true},
						{"HANDLES", true}, {"SIZE", true},   {"AGE", true}};
	struct table t = table_new(columns, 6, list->n);

	for (size_t r = 0; r < list->n; r++) {
		const struct client *c = &list->row[r];

		snprintf(cell(&t, r, 0), CELL, "%" PRIu64, c->id);
		put_owner(cell(&t, r, 1), CELL, &c->owner, o);
		snprintf(cell(&t, r, 2), CELL, "%u", c->owner.uid);
		snprintf(cell(&t, r, 3), CELL, "%" PRIu64, c->handles);
		put_size(cell(&t, r, 4), c->bytes, o);
		put_age(cell(&t, r, 5), c->age_ns);
	}
	table_print(&t, backend, o);
}
