/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * State of `top`. A snapshot of the rows is read once per interval; keys only change how it is
 * shown, so that they take effect at once also with many buffers.
 */
#ifndef TENSORSTAT_TOP_H
#define TENSORSTAT_TOP_H

#include "backend/backend.h"
#include "output/view.h"
#include "top/chart.h"

#define FILTER_MAX 64

enum top_mode { MODE_BUFFER, MODE_PROCESS, MODE_USER, MODES };
enum top_prompt { PROMPT_NONE, PROMPT_TEXT, PROMPT_OWNER };

struct snapshot {
	struct totals totals;
	struct list buffers; /* of the backend */
	struct list chosen;  /* the buffers that match the owner; their members belong to buffers */
	struct list groups;  /* sums of them */
	const void **row;    /* rows of chosen or groups that match the text, in order */
	size_t n;
	double seconds; /* that it took to read and sort them */
};

struct top {
	struct options o;
	const struct backend *backend;
	enum top_mode mode;
	int sort; /* column; -1: by size */
	bool reverse;
	double delay;
	uint64_t count; /* pictures left */
	bool live, paused, help;
	char text[FILTER_MAX], owner[FILTER_MAX]; /* filters; "": none */
	enum top_prompt prompt;
	char typed[FILTER_MAX];
	size_t first, help_first; /* row at the top of the window */
	size_t room;		  /* rows that the last picture had space for */
	int shift;		  /* columns scrolled to the right */
	struct snapshot now;
	struct history history;
};

extern const struct kind *const top_kinds[MODES];

/* Columns and order. */
void top_view(const struct top *t, struct view *v);
/* Reads a new snapshot, and adds a sample to the history. */
enum status top_read(struct top *t);
/* Applies filters and order to the snapshot. */
void top_arrange(struct top *t);
void top_clear(struct top *t);
/* Writes a picture; rows and columns are those of the window, 0 for plain output. */
void top_draw(struct top *t, FILE *out, int rows, int columns);
size_t top_help_lines(void);
/* Acts on a key; false to end. */
bool top_key(struct top *t, int key);

#endif
