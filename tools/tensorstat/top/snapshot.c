// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The rows of top: reading, filtering and sorting. */
#include "args.h"
#include "rows/text.h"
#include "top/top.h"

#include <stdlib.h>
#include <string.h>

const struct kind *const top_kinds[MODES] = { &buffer_kind, &process_kind, &user_kind };

/* Copies whose owners belong to the original. */
static const struct row_type chosen_rows = { "buffer", sizeof(struct buffer), NULL };

static int size_column(const struct kind *kind)
{
	for (int i = 0; i < kind->n_columns; i++)
		if (!strcmp(kind->columns[i].name, "size"))
			return i;
	return 0;
}

void top_view(const struct top *t, struct view *v)
{
	const struct kind *kind = top_kinds[t->mode];

	view_init(v, kind,
		  &(struct options){ .fields = t->mode == MODE_BUFFER ? t->o.fields : NULL });
	v->sort = t->sort >= 0 ? t->sort : size_column(kind);
	v->descending = kind->columns[v->sort].right != t->reverse;
}

/* ---- filters ---- */

static bool holder_matches(const void *row, const void *arg)
{
	const struct holder *g = row;
	const char *owner = arg;
	pid_t pid;

	return parse_pid(owner, &pid) ? g->owner.pid == pid : text_contains(g->owner.comm, owner);
}

static bool buffer_matches(const struct buffer *b, const char *owner)
{
	pid_t pid;

	if (!*owner)
		return true;
	return parse_pid(owner, &pid) ? owned_by(b, pid, NULL) : owned_by(b, 0, owner);
}

static void choose_buffers(struct snapshot *s, const char *owner)
{
	for (size_t i = 0; i < s->buffers.n; i++) {
		const struct buffer *b = list_row(&s->buffers, i);

		if (buffer_matches(b, owner))
			*(struct buffer *)list_add(&s->chosen) = *b;
	}
}

/* Whether a cell of a shown column contains the text. */
static bool row_contains(const struct top *t, const struct view *v, const void *row)
{
	for (int i = 0; i < v->n; i++) {
		struct cell cell = { 0 };

		cell_put(&cell, &v->kind->columns[v->column[i]], row, &t->o);
		if (text_contains(cell.text, t->text))
			return true;
	}
	return false;
}

/* ---- snapshots ---- */

void top_arrange(struct top *t)
{
	struct snapshot *s = &t->now;
	struct list *list = &s->chosen;
	struct view v;

	list_clear(&s->chosen);
	list_clear(&s->groups);
	free(s->row);
	choose_buffers(s, t->mode == MODE_PROCESS ? "" : t->owner);
	if (t->mode != MODE_BUFFER) {
		list = &s->groups;
		(t->mode == MODE_PROCESS ? group_by_process : group_by_user)(&s->chosen, list);
		if (t->mode == MODE_PROCESS && *t->owner)
			list_filter(list, holder_matches, t->owner);
	}
	top_view(t, &v);
	s->row = view_order(&v, list, &t->o);
	s->n = 0;
	for (size_t i = 0; i < list->n; i++)
		if (!*t->text || row_contains(t, &v, s->row[i]))
			s->row[s->n++] = s->row[i];
}

enum status top_read(struct top *t)
{
	double begin = seconds_now();
	struct snapshot *s = &t->now;
	enum status status;

	top_clear(t);
	status = t->backend->totals(&s->totals);
	if (!status)
		status = t->backend->buffers(&s->buffers);
	if (status)
		return status;
	top_arrange(t);
	s->seconds = seconds_now() - begin;
	history_add(&t->history, begin,
		    (uint64_t)(s->totals.used_bytes != UNKNOWN ? s->totals.used_bytes :
								 s->totals.bytes));
	return STATUS_OK;
}

void top_clear(struct top *t)
{
	struct snapshot *s = &t->now;

	if (s->buffers.type) {
		list_clear(&s->chosen);
		list_clear(&s->groups);
		list_clear(&s->buffers);
		free(s->row);
	}
	*s = (struct snapshot){ .buffers.type = &buffer_rows,
				.chosen.type = &chosen_rows,
				.groups.type = &holder_rows };
}
