/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Cells of a table: their text, sort key and colour. */
#ifndef TENSORSTAT_CELL_H
#define TENSORSTAT_CELL_H

#include "rows/rows.h"

#define CELL 96 /* bytes */

enum tone { TONE_PLAIN, TONE_HEAD, TONE_GOOD, TONE_WARN, TONE_BAD };

struct cell {
	char text[CELL];
	uint64_t key; /* sort key if by_key is set; otherwise the text is */
	bool by_key;
	enum tone tone;
};

struct column {
	const char *name; /* for --fields and --sort; the header has it in capitals */
	bool shown;	  /* without --fields */
	bool right;	  /* aligned right; sorted with the largest first */
	void (*put)(struct cell *cell, const void *row, const struct options *o);
};

/* Sets the sort key. */
void cell_by(struct cell *cell, uint64_t key);
void cell_text(struct cell *cell, const char *value);
/* These three show UNKNOWN as a dash. */
void cell_number(struct cell *cell, int64_t value);
void cell_size(struct cell *cell, int64_t bytes, const struct options *o);
void cell_age(struct cell *cell, int64_t ns);
void cell_owner(struct cell *cell, const struct owner *w, const struct options *o);

/* "1.5GiB"; bytes as a plain number with --raw. */
void put_size(char *text, size_t room, uint64_t bytes, const struct options *o);
/* "812/loader"; "812" with --numeric. Returns the length. */
size_t put_owner(char *to, size_t room, const struct owner *w, const struct options *o);
/* "read,write"; "-" for none. */
void put_rights(char *text, size_t room, uint32_t rights);

/* Escape sequences, empty without colour. */
const char *tone_begin(enum tone tone, const struct options *o);
const char *tone_end(enum tone tone, const struct options *o);

#endif
