// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Which columns are shown and in which order the rows come: --fields and --sort. */
#include "tensorstat.h"

#include <stdlib.h>
#include <string.h>

static int column_by_name(const struct kind *kind, const char *name, size_t len)
{
	for (int i = 0; i < kind->n_columns; i++)
		if (strlen(kind->columns[i].name) == len &&
		    !strncasecmp(kind->columns[i].name, name, len))
			return i;
	return -1;
}

static enum status unknown(const struct kind *kind, const char *option, const char *name)
{
	char list[512] = "";

	for (int i = 0; i < kind->n_columns; i++) {
		strcat(list, i ? ", " : "");
		strcat(list, kind->columns[i].name);
	}
	complain("%s: %s has no column \"%s\", but %s", option, kind->name, name, list);
	return STATUS_USAGE;
}

static enum status take_fields(struct view *v, const char *fields)
{
	while (1) {
		size_t len = strcspn(fields, ",");
		int c = column_by_name(v->kind, fields, len);

		if (c < 0 || v->n == VIEW_MAX)
			return unknown(v->kind, "--fields", fields);
		v->column[v->n++] = c;
		if (!fields[len])
			return STATUS_OK;
		fields += len + 1;
	}
}

/* NAME, NAME:asc or NAME:desc. Numbers begin with the largest, text with A. */
static enum status take_sort(struct view *v, const char *sort)
{
	size_t len = strcspn(sort, ":");

	v->sort = column_by_name(v->kind, sort, len);
	if (v->sort < 0)
		return unknown(v->kind, "--sort", sort);
	v->descending = v->kind->columns[v->sort].right;
	if (!sort[len])
		return STATUS_OK;
	if (strcmp(sort + len, ":asc") && strcmp(sort + len, ":desc"))
		return bad("--sort wants NAME, NAME:asc or NAME:desc, not", sort);
	v->descending = sort[len + 1] == 'd';
	return STATUS_OK;
}

enum status view_init(struct view *v, const struct kind *kind, const struct options *o)
{
	enum status status = STATUS_OK;

	*v = (struct view){ .kind = kind, .sort = -1 };
	if (o->fields)
		status = take_fields(v, o->fields);
	else
		/* One line a row is for programs: all there is. */
		for (int i = 0; i < kind->n_columns; i++)
			if (kind->columns[i].shown || o->oneline)
				v->column[v->n++] = i;
	if (!status && o->sort)
		status = take_sort(v, o->sort);
	return status;
}

struct keyed {
	const void *row;
	struct cell cell;
};

static int compare(const void *a, const void *b)
{
	const struct keyed *x = *(const struct keyed *const *)a,
			   *y = *(const struct keyed *const *)b;

	if (x->cell.by_key && x->cell.key != y->cell.key)
		return x->cell.key < y->cell.key ? -1 : 1;
	return x->cell.by_key ? 0 : strcmp(x->cell.text, y->cell.text);
}

/* Ties keep the order by id: a screen that is drawn again must not dance. */
static int rising(const void *a, const void *b)
{
	const struct keyed *x = *(const struct keyed *const *)a,
			   *y = *(const struct keyed *const *)b;
	int c = compare(a, b);

	return c ? c : (x->row > y->row) - (x->row < y->row);
}

static int falling(const void *a, const void *b)
{
	const struct keyed *x = *(const struct keyed *const *)a,
			   *y = *(const struct keyed *const *)b;
	int c = compare(b, a);

	return c ? c : (x->row > y->row) - (x->row < y->row);
}

static void *must(void *p)
{
	if (!p) {
		complain("out of memory");
		exit(STATUS_ERROR);
	}
	return p;
}

const void **view_order(const struct view *v, const struct list *list, const struct options *o)
{
	const void **row = must(calloc(list->n + 1, sizeof(*row)));
	struct keyed *keyed, **order;

	for (size_t i = 0; i < list->n; i++)
		row[i] = list_row(list, i);
	if (v->sort < 0)
		return row;
	keyed = must(calloc(list->n + 1, sizeof(*keyed)));
	order = must(calloc(list->n + 1, sizeof(*order)));
	for (size_t i = 0; i < list->n; i++) {
		order[i] = &keyed[i];
		keyed[i].row = row[i];
		v->kind->columns[v->sort].put(&keyed[i].cell, row[i], o);
	}
	qsort(order, list->n, sizeof(*order), v->descending ? falling : rising);
	for (size_t i = 0; i < list->n; i++)
		row[i] = order[i]->row;
	free(order);
	free(keyed);
	return row;
}
