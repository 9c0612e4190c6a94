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

/* How a column without a function shows a member of the row. */
enum cell_format { FORMAT_NUMBER, FORMAT_SIZE, FORMAT_AGE, FORMAT_OWNER };

struct column {
	const char *name; /* for --fields and --sort; the header has it in capitals */
	bool shown;	  /* without --fields */
	bool right;	  /* aligned right; sorted with the largest first */
	/* NULL: the member at offset, a number of that many bytes or a struct owner */
	void (*put)(struct cell *cell, const void *row, const struct options *o);
	enum cell_format format;
	size_t offset, bytes;
};

#define COLUMN_MEMBER(format, right, name, shown, type, member)                   \
	{                                                                         \
		(name), (shown), (right), NULL, (format), offsetof(type, member), \
			sizeof(((type *)0)->member)                               \
	}
#define COLUMN_NUMBER(...) COLUMN_MEMBER(FORMAT_NUMBER, true, __VA_ARGS__)
#define COLUMN_SIZE(...)   COLUMN_MEMBER(FORMAT_SIZE, true, __VA_ARGS__)
#define COLUMN_AGE(...)	   COLUMN_MEMBER(FORMAT_AGE, true, __VA_ARGS__)
#define COLUMN_OWNER(...)  COLUMN_MEMBER(FORMAT_OWNER, false, __VA_ARGS__)

/* Fills the cell of a row in a column. */
void cell_put(struct cell *cell, const struct column *c, const void *row, const struct options *o);
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
