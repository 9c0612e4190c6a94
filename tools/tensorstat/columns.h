/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Filling cells: what the kinds of rows share. */
#ifndef TENSORSTAT_COLUMNS_H
#define TENSORSTAT_COLUMNS_H

#include "tensorstat.h"

#define COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof(*(list))

/* Sorted by that instead of the text. */
void cell_by(struct cell *cell, uint64_t key);
void cell_text(struct cell *cell, const char *value);
/* UNKNOWN is a dash in these. */
void cell_number(struct cell *cell, int64_t value);
void cell_size(struct cell *cell, int64_t bytes, const struct options *o);
void cell_age(struct cell *cell, int64_t ns);
size_t put_owner(char *to, size_t room, const struct owner *w, const struct options *o);

#endif
