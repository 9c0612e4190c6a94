/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Which columns of a kind are shown, and the order of the rows: --fields and --sort. */
#ifndef TENSORSTAT_VIEW_H
#define TENSORSTAT_VIEW_H

#include "output/kinds.h"

#define VIEW_MAX 32

struct view {
	const struct kind *kind;
	int column[VIEW_MAX], n;
	int sort; /* column; -1: the order of the backend */
	bool descending;
};

enum status view_init(struct view *v, const struct kind *kind, const struct options *o);
/* Returns pointers to the rows in the view's order; the caller frees the array. */
const void **view_order(const struct view *v, const struct list *list, const struct options *o);

#endif
