// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rows as a table whose columns are as wide as their widest cell, as lines, or as JSON. */
#include "output/table.h"

#include "output/json.h"
#include "rows/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void put_head(char *to, const struct column *c)
{
	size_t i;

	for (i = 0; c->name[i]; i++)
		to[i] = (char)toupper((unsigned char)c->name[i]);
	to[i] = '\0';
}

static void print_cell(FILE *out, const struct cell *cell, int wide, bool right, bool last,
		       const struct options *o)
{
	int pad = wide - text_width(cell->text);

	fprintf(out, "%*s%s%s%s%*s%s", right ? pad : 0, "", tone_begin(cell->tone, o), cell->text,
		tone_end(cell->tone, o), right || last ? 0 : pad, "", last ? "" : "  ");
}

static const struct column *view_column(const struct view *v, int i)
{
	return &v->kind->columns[v->column[i]];
}

/* Returns the cells of all rows, the header first, and the width of each column. */
static struct cell *table_cells(const struct view *v, const void *const *row, size_t n, int *wide,
				const struct options *o)
{
	struct cell *cells = check_alloc(calloc((n + 1) * v->n, sizeof(*cells)));

	for (int c = 0; c < v->n; c++) {
		put_head(cells[c].text, view_column(v, c));
		cells[c].tone = TONE_HEAD;
		wide[c] = o->no_header ? 0 : text_width(cells[c].text);
	}
	for (size_t r = 0; r < n; r++)
		for (int c = 0; c < v->n; c++) {
			struct cell *cell = &cells[(r + 1) * v->n + c];

			cell_put(cell, view_column(v, c), row[r], o);
			if (text_width(cell->text) > wide[c])
				wide[c] = text_width(cell->text);
		}
	return cells;
}

void table_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o)
{
	int wide[VIEW_MAX];
	struct cell *cells = table_cells(v, row, n, wide, o);

	for (size_t r = o->no_header; r <= n; r++) {
		for (int c = 0; c < v->n; c++)
			print_cell(out, &cells[r * v->n + c], wide[c], view_column(v, c)->right,
				   c == v->n - 1, o);
		fputc('\n', out);
	}
	free(cells);
}

/* Quotes values that contain a blank, a quote or a backslash. */
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

			cell_put(&cell, view_column(v, c), row[r], o);
			fprintf(out, "%s%s ", c ? " " : "", view_column(v, c)->name);
			print_word(out, cell.text);
		}
		fputc('\n', out);
	}
}

void json_rows(const struct kind *kind, const void *const *row, size_t n, const char *backend)
{
	json_enter('[');
	for (size_t i = 0; i < n; i++) {
		json_item();
		json_enter('{');
		kind->json(row[i], backend);
		json_leave('}');
	}
	json_leave(']');
}
