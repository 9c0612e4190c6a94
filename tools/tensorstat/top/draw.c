// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pictures of top. A small window loses the history first, then the bar, the totals and the title;
 * the status line, the header and the rows remain.
 */
#include "output/table.h"
#include "rows/text.h"
#include "top/screen.h"
#include "top/top.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Windows with fewer rows do not show that part. */
#define ROWS_FOR_TITLE	 6
#define ROWS_FOR_TOTALS	 7
#define ROWS_FOR_BAR	 8
#define ROWS_FOR_HISTORY 11
#define ROWS_FOR_GRAPH	 36
#define GRAPH_ROWS	 5
/* Space for the numbers beside a bar. */
#define BAR_LABEL 34
/* A bar before each row, in windows at least that wide. */
#define COLUMNS_FOR_SHARE 132
#define SHARE		  10

static const char *const help[] = {
	"tensorstat top: keys",
	"",
	"Up Down  k j    one row",
	"PgUp PgDn       one page",
	"Home End  g G   first, last row",
	"Left Right      scroll sideways",
	"b p u           buffers, processes, users",
	"s S             next, previous column to sort by",
	"1..9            sort by that column",
	"r               reverse the order",
	"/               filter by text in any column",
	"o               filter by owner: process ID or name",
	"Esc             remove the filters",
	"Space           pause, continue",
	"+ -             refresh more, less often",
	"? h             this help",
	"q               quit",
	"",
	"The bar shows the memory in use against the",
	"limit of the module, or of the machine without",
	"the module. The graph shows its last minutes.",
};

size_t top_help_lines(void)
{
	return sizeof(help) / sizeof(*help);
}

static int64_t used_bytes(const struct totals *t)
{
	return t->used_bytes != UNKNOWN ? t->used_bytes : t->bytes;
}

/* ---- head ---- */

static void draw_title(const struct top *t, FILE *out)
{
	time_t now = t->now.totals.time_ms / 1000;
	char clock[16];

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
	fprintf(out, "tensorstat %s  backend %s  read and sorted in %.0f ms%s\n", clock,
		t->backend->name, t->now.seconds * 1000, t->paused ? "  PAUSED" : "");
}

static void draw_totals(const struct top *t, FILE *out)
{
	const struct totals *totals = &t->now.totals;
	char used[CELL], limit[CELL];

	put_size(used, sizeof(used), (uint64_t)used_bytes(totals), &t->o);
	fprintf(out, "%lld buffers, %lld %s, %s", (long long)totals->buffers,
		(long long)totals->clients, t->backend == &memfd_backend ? "processes" : "clients",
		used);
	if (totals->limit_bytes > 0) {
		put_size(limit, sizeof(limit), (uint64_t)totals->limit_bytes, &t->o);
		fprintf(out, " of %s (%.1f%%)", limit,
			100.0 * (double)used_bytes(totals) / (double)totals->limit_bytes);
	}
	if (totals->refused > 0)
		fprintf(out, ", %lld refused", (long long)totals->refused);
	fputc('\n', out);
}

/* Without the module the memory of the machine is the limit. */
static void draw_bar(const struct top *t, FILE *out, int columns)
{
	int64_t limit = t->now.totals.limit_bytes;
	const char *name = limit > 0 ? "limit" : "memory";
	int width = columns > BAR_LABEL + 4 ? columns - BAR_LABEL : 4;
	char text[CELL];
	enum tone tone;
	double part;

	if (limit <= 0)
		limit = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	part = limit > 0 ? (double)used_bytes(&t->now.totals) / (double)limit : 0;
	put_size(text, sizeof(text), (uint64_t)limit, &t->o);
	tone = part >= 0.98 ? TONE_BAD : part >= 0.9 ? TONE_WARN : TONE_GOOD;
	fprintf(out, "%-6s [%s", name, tone_begin(tone, &t->o));
	chart_bar(out, part, width, screen_utf8());
	fprintf(out, "%s] %5.1f%% of %s\n", tone_end(tone, &t->o), part * 100, text);
}

static void put_span(char *text, size_t room, double seconds)
{
	int s = (int)(seconds + 0.5);

	if (s < 60)
		snprintf(text, room, "%ds", s);
	else
		snprintf(text, room, "%dm%02ds", s / 60, s % 60);
}

static void draw_history(const struct top *t, FILE *out, int columns, int rows)
{
	int width = columns > BAR_LABEL + 4 ? columns - BAR_LABEL : 4;
	char peak[CELL], span[32];

	put_size(peak, sizeof(peak), history_peak(&t->history, (size_t)width), &t->o);
	put_span(span, sizeof(span), history_span(&t->history, (size_t)width));
	for (int row = 0; row < rows; row++) {
		fprintf(out, "%-6s [", row ? "" : "used");
		chart_row(out, &t->history, row, rows, width, screen_utf8());
		fputc(']', out);
		if (!row)
			fprintf(out, " peak %s in %s", peak, span);
		fputc('\n', out);
	}
}

static void draw_status(const struct top *t, FILE *out, const struct view *v, size_t shown)
{
	if (t->prompt) {
		char typed[FILTER_MAX];

		copy_text(typed, sizeof(typed), t->typed);
		fprintf(out, "%s: %s_\n", t->prompt == PROMPT_TEXT ? "text" : "owner", typed);
		return;
	}
	fprintf(out, "%s by %s%s: %zu", v->kind->name, v->kind->columns[v->sort].name,
		v->descending == v->kind->columns[v->sort].right ? "" : " reversed", t->now.n);
	if (t->live && shown && shown < t->now.n)
		fprintf(out, ", rows %zu-%zu", t->first + 1, t->first + shown);
	if (*t->text)
		fprintf(out, "  text \"%s\"", t->text);
	if (*t->owner)
		fprintf(out, "  owner %s", t->owner);
	if (t->live)
		fputs("  ?: help", out);
	fputc('\n', out);
}

/* ---- rows ---- */

static uint64_t row_bytes(const struct top *t, const void *row)
{
	return t->mode == MODE_BUFFER ? ((const struct buffer *)row)->bytes :
					((const struct holder *)row)->bytes;
}

/* Writes a line of the table without its first columns; colour sequences are kept. */
static const char *draw_shifted(FILE *out, const char *at, int shift)
{
	while (*at && *at != '\n') {
		size_t n = *at == '\033' ? strcspn(at, "m") + 1 : char_bytes(at);

		if (*at == '\033' || shift <= 0)
			fwrite(at, 1, n, out);
		else
			shift -= char_width(at);
		at += n;
	}
	fputc('\n', out);
	return *at ? at + 1 : at;
}

/* The part that a row has of the memory in use; NULL: the header. */
static void draw_percent(const struct top *t, FILE *out, const void *row)
{
	int64_t all = used_bytes(&t->now.totals);

	if (row)
		chart_bar(out, all > 0 ? (double)row_bytes(t, row) / (double)all : 0, SHARE,
			  screen_utf8());
	else
		fprintf(out, "%-*s", SHARE, "SHARE");
	fputs("  ", out);
}

static void draw_rows(const struct top *t, FILE *out, const struct view *v, size_t shown,
		      int columns)
{
	char *text;
	size_t size, next = t->first;
	bool header = !t->o.no_header;
	FILE *table;

	if (!t->live) {
		table_print(out, v, t->now.row, shown, &t->o);
		return;
	}
	table = check_alloc(open_memstream(&text, &size));
	table_print(table, v, t->now.row + t->first, shown, &t->o);
	fclose(table);
	for (const char *at = text; *at; header = false) {
		const void *row = header ? NULL : t->now.row[next++];

		if (columns >= COLUMNS_FOR_SHARE)
			draw_percent(t, out, row);
		at = draw_shifted(out, at, t->shift);
	}
	free(text);
}

/* ---- screens ---- */

static void draw_help(struct top *t, FILE *out, int rows)
{
	size_t n = top_help_lines(), room = rows > 0 ? (size_t)rows : n;

	if (t->help_first + room > n)
		t->help_first = n > room ? n - room : 0;
	for (size_t i = t->help_first; i < n && i < t->help_first + room; i++)
		fprintf(out, "%s%s%s\n", i ? "" : tone_begin(TONE_HEAD, &t->o), help[i],
			i ? "" : tone_end(TONE_HEAD, &t->o));
}

/* Draws what the window has space for above the status line. Returns the number of lines. */
static int draw_head(const struct top *t, FILE *out, int rows, int columns)
{
	int lines = 0, graph = rows >= ROWS_FOR_GRAPH ? GRAPH_ROWS : 1;

	if (!t->live || rows >= ROWS_FOR_TITLE) {
		draw_title(t, out);
		lines++;
	}
	if (!t->live || rows >= ROWS_FOR_TOTALS) {
		draw_totals(t, out);
		lines++;
	}
	if (t->live && rows >= ROWS_FOR_BAR) {
		draw_bar(t, out, columns);
		lines++;
	}
	if (t->live && rows >= ROWS_FOR_HISTORY) {
		draw_history(t, out, columns, graph);
		lines += graph;
	}
	return lines;
}

void top_draw(struct top *t, FILE *out, int rows, int columns)
{
	struct view v;
	size_t shown;
	int lines;

	if (t->help) {
		draw_help(t, out, rows);
		return;
	}
	lines = draw_head(t, out, rows, columns) + 1 + !t->o.no_header;
	t->room = !t->live ? t->now.n : rows > lines ? (size_t)(rows - lines) : 0;
	if (t->first + t->room > t->now.n)
		t->first = t->now.n > t->room ? t->now.n - t->room : 0;
	shown = t->now.n - t->first < t->room ? t->now.n - t->first : t->room;
	top_view(t, &v);
	draw_status(t, out, &v, shown);
	draw_rows(t, out, &v, shown, columns);
}
