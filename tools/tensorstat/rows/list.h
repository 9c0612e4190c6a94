/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Growing arrays of rows of one type. */
#ifndef TENSORSTAT_LIST_H
#define TENSORSTAT_LIST_H

#include "tensorstat.h"

struct row_type {
	const char *name;
	size_t size;
	void (*clear)(void *row); /* frees what a row owns; NULL if it owns nothing */
};

struct list {
	const struct row_type *type;
	char *row;
	size_t n, cap;
};

static inline void *list_row(const struct list *list, size_t i)
{
	return list->row + i * list->type->size;
}

/* Appends a zeroed row. */
void *list_add(struct list *list);
/* Frees all rows. The list can be used again. */
void list_clear(struct list *list);
/* Keeps the rows for which wanted() returns true, in their order. */
void list_filter(struct list *list, bool (*wanted)(const void *row, const void *arg),
		 const void *arg);
/* Makes room for element n of an array with room for *cap, and zeroes it. Returns the array. */
void *grow(void *array, size_t n, size_t *cap, size_t size);

#endif
