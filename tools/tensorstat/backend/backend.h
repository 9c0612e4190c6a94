/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Where the rows come from: the module, or memfds in /proc. */
#ifndef TENSORSTAT_BACKEND_H
#define TENSORSTAT_BACKEND_H

#include "rows/rows.h"

/*
 * A table of functions. Lists are sorted by id. Failures are printed on stderr before a function
 * returns, except STATUS_NO_MODULE of open().
 */
struct backend {
	const char *name; /* the same as the name of the library's provider */
	enum status (*open)(void);
	enum status (*buffers)(struct list *list);
	enum status (*clients)(struct list *list);
	/* NULL where the backend has no such list */
	enum status (*exports)(struct list *list);
	enum status (*payers)(struct list *list);
	enum status (*totals)(struct totals *totals);
};

extern const struct backend device_backend, memfd_backend;

/* The ranks of process groups, whatever the backend: a list of struct rank. */
enum status read_ranks(struct list *list);

/* Opens the named backend; NULL: the module if it is loaded, else memfd. */
enum status choose_backend(const char *name, const struct backend **b);

#endif
