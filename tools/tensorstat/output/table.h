/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Rows as a table, as lines of names and values, or as JSON. */
#ifndef TENSORSTAT_TABLE_H
#define TENSORSTAT_TABLE_H

#include "output/view.h"

void table_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o);
void lines_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o);
/* An array of objects in the JSON document that is open. */
void json_rows(const struct kind *kind, const void *const *row, size_t n, const char *backend);

#endif
