// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* --fields and --sort. */
#include "output/view.h"

#include "args.h"
#include "rows/text.h"

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

static enum status unknown_column(const struct kind *kind, const char *option, const char *name,
				  size_t len)
{
	const char *names[VIEW_MAX + 1] = { NULL }, *near;
	char list[512] = "", safe[64], text[64];
	size_t at = 0;

	for (int i = 0; i < kind->n_columns && at < sizeof(list); i++) {
		names[i] = kind->columns[i].name;
		at += snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "", names[i]);
	}
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	copy_text(safe, sizeof(safe), text);
	near = nearest_word(text, names);
	complain("%s: %s has no column \"%s\"%s%s%s The columns are %s.", option, kind->name, safe,
		 near ? "; did you mean \"" : ".", near ? near : "", near ? "\"?" : "", list);
	return STATUS_USAGE;
}

static enum status take_fields(struct view *v, const char *fields)
{
	while (1) {
		size_t len = strcspn(fields, ",");
		int c = column_by_name(v->kind, fields, len);

		if (c < 0 || v->n == VIEW_MAX)
			return unknown_column(v->kind, "--fields", fields, len);
		v->column[v->n++] = c;
		if (!fields[len])
			return STATUS_OK;
		fields += len + 1;
	}
}

/* NAME, NAME:asc or NAME:desc. The default is descending for numbers, ascending for text. */
static enum status take_sort(struct view *v, const char *sort)
{
	size_t len = strcspn(sort, ":");

	v->sort = column_by_name(v->kind, sort, len);
	if (v->sort < 0)
		return unknown_column(v->kind, "--sort", sort, len);
	v->descending = v->kind->columns[v->sort].right;
	if (!sort[len])
		return STATUS_OK;
	if (strcmp(sort + len, ":asc") && strcmp(sort + len, ":desc"))
		return usage_error("--sort expects NAME, NAME:asc or NAME:desc, not", sort);
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
		/* --oneline is for programs and has all columns. */
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

/* Rows with equal keys keep their order, so that they do not move between two refreshes of top. */
static int compare_rising(const void *a, const void *b)
{
	const struct keyed *x = *(const struct keyed *const *)a,
			   *y = *(const struct keyed *const *)b;
	int c = compare(a, b);

	return c ? c : (x->row > y->row) - (x->row < y->row);
}

static int compare_falling(const void *a, const void *b)
{
	const struct keyed *x = *(const struct keyed *const *)a,
			   *y = *(const struct keyed *const *)b;
	int c = compare(b, a);

	return c ? c : (x->row > y->row) - (x->row < y->row);
}

const void **view_order(const struct view *v, const struct list *list, const struct options *o)
{
	const void **row = check_alloc(calloc(list->n + 1, sizeof(*row)));
	struct keyed *keyed, **order;

	for (size_t i = 0; i < list->n; i++)
		row[i] = list_row(list, i);
	if (v->sort < 0)
		return row;
	keyed = check_alloc(calloc(list->n + 1, sizeof(*keyed)));
	order = check_alloc(calloc(list->n + 1, sizeof(*order)));
	for (size_t i = 0; i < list->n; i++) {
		order[i] = &keyed[i];
		keyed[i].row = row[i];
		cell_put(&keyed[i].cell, &v->kind->columns[v->sort], row[i], o);
	}
	qsort(order, list->n, sizeof(*order), v->descending ? compare_falling : compare_rising);
	for (size_t i = 0; i < list->n; i++)
		row[i] = order[i]->row;
	free(order);
	free(keyed);
	return row;
}
