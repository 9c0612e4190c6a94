/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A kind is a row type with its columns and its JSON. */
#ifndef TENSORSTAT_KINDS_H
#define TENSORSTAT_KINDS_H

#include "output/cell.h"

struct kind {
	const char *name;
	const struct row_type *rows;
	const struct column *columns;
	int n_columns;
	/* Writes the keys of one object. */
	void (*json)(const void *row, const char *backend);
};

/* The members columns and n_columns. */
#define COLUMNS(list) (list), sizeof(list) / sizeof(*(list))

extern const struct kind buffer_kind, client_kind, export_kind, payer_kind, rank_kind;
extern const struct kind process_kind, user_kind, totals_kind;

void totals_json(const void *row, const char *backend);

#endif
