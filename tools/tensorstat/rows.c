// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rows: lists that grow, groups of rows, and text of strangers. */
#include "tensorstat.h"

#include "lib/storage/descriptor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("tensorstat: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

/* The program has nothing to do without memory. */
void *grow(void *list, size_t n, size_t *cap, size_t size)
{
	if (n == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		list = reallocarray(list, *cap, size);
		if (!list) {
			complain("out of memory");
			exit(STATUS_ERROR);
		}
	}
	memset((char *)list + n * size, 0, size);
	return list;
}

void *list_add(struct list *list)
{
	list->row = grow(list->row, list->n, &list->cap, list->kind->size);
	return list_row(list, list->n++);
}

void list_clear(struct list *list)
{
	for (size_t i = 0; list->kind->clear && i < list->n; i++)
		list->kind->clear(list_row(list, i));
	free(list->row);
	*list = (struct list){ .kind = list->kind };
}

void list_filter(struct list *list, bool (*wanted)(const void *row, const void *arg),
		 const void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		void *row = list_row(list, i);

		if (wanted(row, arg))
			memmove(list_row(list, kept++), row, list->kind->size);
		else if (list->kind->clear)
			list->kind->clear(row);
	}
	list->n = kept;
}

struct owner *owners_add(struct buffer *b)
{
	b->owners = grow(b->owners, b->n_owners, &b->cap_owners, sizeof(*b->owners));
	return &b->owners[b->n_owners++];
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- groups ---- */

static struct holder *group_of(struct list *groups, const struct owner *o, bool by_user)
{
	struct holder *g;

	/* Rows of one process stand together mostly. */
	for (size_t i = groups->n; i-- > 0;) {
		g = list_row(groups, i);
		if (by_user ? g->owner.uid == o->uid : g->owner.pid == o->pid)
			return g;
	}
	g = list_add(groups);
	g->owner = *o;
	return g;
}

/* A buffer counts for the first of its owners: who made it, where that is known. */
static void group_by(const struct list *buffers, struct list *groups, bool by_user)
{
	for (size_t i = 0; i < buffers->n; i++) {
		const struct buffer *b = list_row(buffers, i);
		struct holder *g;

		if (!b->n_owners)
			continue;
		g = group_of(groups, &b->owners[0], by_user);
		g->buffers++;
		g->bytes += b->bytes;
		g->pinned_bytes += b->pinned_bytes;
		g->shared += b->shared;
		g->orphans += b->orphan;
	}
}

void group_by_process(const struct list *buffers, struct list *groups)
{
	group_by(buffers, groups, false);
}

void group_by_user(const struct list *buffers, struct list *groups)
{
	group_by(buffers, groups, true);
}

/* ---- text ---- */

void copy_text(char *to, size_t size, const char *from)
{
	size_t at = 0, n;

	while (*from) {
		n = label_char((const unsigned char *)from);
		if (at + (n ? n : 1) >= size)
			break;
		if (n)
			memcpy(to + at, from, n);
		else
			to[at] = '?';
		at += n ? n : 1;
		from += n ? n : 1;
	}
	to[at] = '\0';
}
