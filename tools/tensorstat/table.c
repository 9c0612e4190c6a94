// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rows for people: a table with columns as wide as their widest cell, or a line of words a row. */
#include "tensorstat.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *tone_begin(enum tone tone, const struct options *o)
{
	static const char *const sequence[] = { "", "\033[1m", "\033[32m", "\033[33m", "\033[31m" };

	return o->color ? sequence[tone] : "";
}

const char *tone_end(enum tone tone, const struct options *o)
{
	return o->color && tone != TONE_PLAIN ? "\033[0m" : "";
}

/* Characters, not bytes; wide ones count as one. */
static int width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static void head_of(char *to, const struct column *c)
{
	size_t i;

	for (i = 0; c->name[i]; i++)
		to[i] = (char)toupper((unsigned char)c->name[i]);
	to[i] = '\0';
}

static void print_cell(FILE *out, const struct cell *cell, int wide, bool right, bool last,
		       const struct options *o)
{
	int pad = wide - width(cell->text);

	fprintf(out, "%*s%s%s%s%*s%s", right ? pad : 0, "", tone_begin(cell->tone, o), cell->text,
		tone_end(cell->tone, o), right || last ? 0 : pad, "", last ? "" : "  ");
}

static const struct column *view_column(const struct view *v, int i)
{
	return &v->kind->columns[v->column[i]];
}

/* Row 0 is the head. */
static struct cell *fill(const struct view *v, const void *const *row, size_t n, int *wide,
			 const struct options *o)
{
	struct cell *cells = calloc((n + 1) * v->n, sizeof(*cells));

	if (!cells) {
		complain("out of memory");
		exit(STATUS_ERROR);
	}
	for (int c = 0; c < v->n; c++) {
		head_of(cells[c].text, view_column(v, c));
		cells[c].tone = TONE_HEAD;
		wide[c] = o->no_header ? 0 : width(cells[c].text);
	}
	for (size_t r = 0; r < n; r++)
		for (int c = 0; c < v->n; c++) {
			struct cell *cell = &cells[(r + 1) * v->n + c];

			view_column(v, c)->put(cell, row[r], o);
			if (width(cell->text) > wide[c])
				wide[c] = width(cell->text);
		}
	return cells;
}

void table_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o)
{
	int wide[VIEW_MAX];
	struct cell *cells = fill(v, row, n, wide, o);

	for (size_t r = o->no_header; r <= n; r++) {
		for (int c = 0; c < v->n; c++)
			print_cell(out, &cells[r * v->n + c], wide[c], view_column(v, c)->right,
				   c == v->n - 1, o);
		fputc('\n', out);
	}
	free(cells);
}

/* A word that would not end where it ends is quoted. */
static void print_word(FILE *out, const char *s)
{
	bool quote = s[strcspn(s, " \"\\")];

	if (quote)
		fputc('"', out);
	for (; *s; s++)
		fprintf(out, quote && (*s == '"' || *s == '\\') ? "\\%c" : "%c", *s);
	if (quote)
		fputc('"', out);
}

void lines_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o)
{
	for (size_t r = 0; r < n; r++) {
		for (int c = 0; c < v->n; c++) {
			struct cell cell = { 0 };

			view_column(v, c)->put(&cell, row[r], o);
			fprintf(out, "%s%s ", c ? " " : "", view_column(v, c)->name);
			print_word(out, cell.text);
		}
		fputc('\n', out);
	}
}
