// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The picture has a panel of bytes above one of the number of buffers, which share the axis of time,
 * and a legend. Samples are drawn as steps: a value holds until the next sample. Colours are those of
 * Okabe and Ito, which people with colour blindness can tell apart; text and lines follow the
 * light or dark scheme of the viewer.
 */
#include "plot/svg.h"

#include "output/cell.h"
#include "plot/axis.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Pixels. */
#define WIDTH	      960
#define LEFT	      76
#define RIGHT	      34
#define TOP	      64
#define BYTES_HEIGHT  260
#define COUNT_HEIGHT  90
#define GAP	      34
#define LEGEND_TOP    (TOP + BYTES_HEIGHT + GAP + COUNT_HEIGHT + 48)
#define LEGEND_ROW    20
#define LEGEND_COLUMN ((WIDTH - LEFT - RIGHT) / 2)

/* A panel: its place, and the values at its edges. */
struct panel {
	double top, height;
	int64_t begin_ms, end_ms;
	double most;
	bool bytes; /* else the number of buffers */
};

static const char *const colours[SERIES_MAX] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
						 "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f" };

static const char style[] =
	"<style>\n"
	"svg{font:12px system-ui,sans-serif;--ink:#1a1a1a;--grid:#d9d9d9;--back:#fff;"
	"--bad:#c00000}\n"
	"@media (prefers-color-scheme:dark){svg{--ink:#e6e6e6;--grid:#444;--back:#1b1b1b;"
	"--bad:#ff7a7a}}\n"
	".back{fill:var(--back)}text{fill:var(--ink)}.title{font-size:18px;font-weight:600}\n"
	".grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--ink);stroke-width:1}\n"
	".limit{stroke:var(--bad);stroke-dasharray:6 4}.limit-text{fill:var(--bad)}\n"
	".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.area{stroke:none;"
	"fill-opacity:.15}\n"
	"</style>\n";

/* ---- text ---- */

/* For the content of an element; the text has no control characters. */
static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else
			fputc(*text, out);
	}
}

static const char *size_text(char *text, uint64_t bytes)
{
	put_size(text, CELL, bytes, &(struct options){ 0 });
	return text;
}

static void value_text(char *text, const struct panel *p, double value)
{
	if (p->bytes)
		size_text(text, (uint64_t)value);
	else
		snprintf(text, CELL, "%.0f", value);
}

/* ---- positions ---- */

static double x_of(const struct panel *p, int64_t time_ms)
{
	double part = (double)(time_ms - p->begin_ms) / (double)(p->end_ms - p->begin_ms);

	return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct panel *p, double value)
{
	return p->top + p->height * (1 - value / p->most);
}

static double value_of(const struct panel *p, const struct sample *s)
{
	return (double)(p->bytes ? s->bytes : s->buffers);
}

static double step_of(const struct panel *p)
{
	return p->bytes ? axis_step_size(p->most) : axis_step_count(p->most);
}

static const struct series *series_at(const struct recording *r, size_t i)
{
	return list_row(&r->series, i);
}

static const struct sample *sample_at(const struct series *s, size_t i)
{
	return list_row(&s->samples, i);
}

/* Whether the limit is near enough to be drawn without flattening the lines. */
static bool limit_is_near(const struct recording *r, double peak)
{
	return r->limit_bytes > 0 && (double)r->limit_bytes <= 4 * peak;
}

/* Sets the edges so that all samples are inside and the upper edge is a tick. */
static void panel_fit(struct panel *p, const struct recording *r)
{
	double step;

	p->begin_ms = INT64_MAX;
	p->end_ms = 0;
	p->most = 1;
	for (size_t i = 0; i < r->series.n; i++) {
		const struct series *s = series_at(r, i);

		for (size_t j = 0; j < s->samples.n; j++)
			p->most = fmax(p->most, value_of(p, sample_at(s, j)));
		if (sample_at(s, 0)->time_ms < p->begin_ms)
			p->begin_ms = sample_at(s, 0)->time_ms;
		if (sample_at(s, s->samples.n - 1)->time_ms > p->end_ms)
			p->end_ms = sample_at(s, s->samples.n - 1)->time_ms;
	}
	if (p->end_ms < p->begin_ms + 1000)
		p->end_ms = p->begin_ms + 1000;
	if (p->bytes && limit_is_near(r, p->most))
		p->most = fmax(p->most, (double)r->limit_bytes);
	step = step_of(p);
	p->most = ceil(p->most / step) * step;
}

/* ---- axes ---- */

static void draw_values(FILE *out, const struct panel *p)
{
	double step = step_of(p);
	char text[CELL];

	for (int i = 0; i * step <= p->most; i++) {
		double value = i * step, y = y_of(p, value);

		value_text(text, p, value);
		fprintf(out,
			"<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			value ? "grid" : "axis", LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, text);
	}
	fprintf(out, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT, p->top - 8,
		p->bytes ? "bytes in use" : "buffers");
}

static void draw_times(FILE *out, const struct panel *p, bool labels)
{
	int64_t step = axis_step_time(p->end_ms - p->begin_ms);
	char text[32];

	for (int64_t t = axis_first_time(p->begin_ms, step); t <= p->end_ms; t += step) {
		double x = x_of(p, t), bottom = p->top + p->height;

		fprintf(out,
			"<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
			x, p->top, x, bottom);
		if (!labels)
			continue;
		axis_time_label(text, sizeof(text), t, step);
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x,
			bottom + 18, text);
	}
}

static void draw_limit(FILE *out, const struct panel *p, const struct recording *r)
{
	char text[CELL];
	double y;

	if (!p->bytes || r->limit_bytes <= 0 || (double)r->limit_bytes > p->most)
		return;
	y = y_of(p, (double)r->limit_bytes);
	fprintf(out,
		"<line class=\"limit\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
		"<text class=\"limit-text\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">"
		"limit %s</text>\n",
		LEFT, y, WIDTH - RIGHT, y, WIDTH - RIGHT - 4, y - 4,
		size_text(text, (uint64_t)r->limit_bytes));
}

/* ---- lines ---- */

/* The samples within one pixel of the axis of time, from sample i on. Returns the one after them. */
static size_t pixel_end(const struct panel *p, const struct series *s, size_t i, double *low,
			double *high)
{
	double x = floor(x_of(p, sample_at(s, i)->time_ms));

	*low = *high = value_of(p, sample_at(s, i));
	for (; i < s->samples.n && floor(x_of(p, sample_at(s, i)->time_ms)) == x; i++) {
		*low = fmin(*low, value_of(p, sample_at(s, i)));
		*high = fmax(*high, value_of(p, sample_at(s, i)));
	}
	return i;
}

/*
 * Writes the steps of a series. A pixel with several samples gets a vertical line from the least to
 * the largest of them, so that a long recording is not larger and no peak is lost.
 */
static void put_path(FILE *out, const struct panel *p, const struct series *s)
{
	size_t i = 0;

	fprintf(out, "M%.1f %.1f", x_of(p, sample_at(s, 0)->time_ms),
		y_of(p, value_of(p, sample_at(s, 0))));
	while (i < s->samples.n) {
		double low, high, x = x_of(p, sample_at(s, i)->time_ms);
		size_t end = pixel_end(p, s, i, &low, &high);

		fprintf(out, "H%.1f", x);
		if (end - i > 1)
			fprintf(out, "V%.1fV%.1f", y_of(p, low), y_of(p, high));
		fprintf(out, "V%.1f", y_of(p, value_of(p, sample_at(s, end - 1))));
		i = end;
	}
}

static void draw_series(FILE *out, const struct panel *p, const struct series *s, size_t n)
{
	double bottom = p->top + p->height;

	if (!n) {
		fprintf(out, "<path class=\"area\" fill=\"%s\" d=\"", colours[n]);
		put_path(out, p, s);
		fprintf(out, "V%.1fH%.1fZ\"/>\n", bottom, x_of(p, sample_at(s, 0)->time_ms));
	}
	fprintf(out, "<path class=\"line\" stroke=\"%s\" d=\"", colours[n]);
	put_path(out, p, s);
	fputs("\"><title>", out);
	put_escaped(out, s->name);
	fputs("</title></path>\n", out);
}

static void draw_peak(FILE *out, const struct panel *p, const struct series *s)
{
	double x = x_of(p, s->peak.time_ms), y = y_of(p, (double)s->peak.bytes);
	bool left = x > LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
	char size[CELL], at[32];

	if (!s->peak.bytes)
		return;
	axis_time_label(at, sizeof(at), s->peak.time_ms, 1000);
	fprintf(out,
		"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>"
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">peak %s at %s</text>\n",
		x, y, colours[0], left ? x - 8 : x + 8, y - 6, left ? "end" : "start",
		size_text(size, s->peak.bytes), at);
}

static void draw_panel(FILE *out, const struct recording *r, struct panel *p)
{
	panel_fit(p, r);
	draw_times(out, p, !p->bytes);
	draw_values(out, p);
	/* The first series is drawn last, over the others. */
	for (size_t i = r->series.n; i-- > 0;)
		draw_series(out, p, series_at(r, i), i);
	draw_limit(out, p, r);
	if (p->bytes)
		draw_peak(out, p, series_at(r, 0));
}

/* ---- title and legend ---- */

static int legend_rows(const struct recording *r)
{
	return (int)(r->series.n + 1) / 2 + (r->dropped > 0);
}

static int picture_height(const struct recording *r)
{
	return LEGEND_TOP + LEGEND_ROW * legend_rows(r);
}

static void draw_legend(FILE *out, const struct recording *r)
{
	char size[CELL];
	int x = LEFT, y = LEGEND_TOP;

	for (size_t i = 0; i < r->series.n; i++) {
		const struct series *s = series_at(r, i);

		x = LEFT + (int)(i % 2) * LEGEND_COLUMN;
		y = LEGEND_TOP + (int)(i / 2) * LEGEND_ROW;
		fprintf(out,
			"<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"4\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"%d\">",
			x, y - 6, colours[i], x + 22, y);
		put_escaped(out, s->name);
		fprintf(out, ", peak %s</text>\n", size_text(size, s->peak.bytes));
	}
	if (r->dropped)
		fprintf(out, "<text x=\"%d\" y=\"%d\">and %zu smaller processes</text>\n",
			LEFT + 22, y + LEGEND_ROW, r->dropped);
}

static void put_period(FILE *out, const struct panel *p)
{
	char begin[32], end[32], day[32];

	axis_time_label(day, sizeof(day), p->begin_ms, INT64_MAX);
	axis_time_label(begin, sizeof(begin), p->begin_ms, 1000);
	axis_time_label(end, sizeof(end), p->end_ms, 1000);
	fprintf(out, "%s %s to ", day, begin);
	axis_time_label(begin, sizeof(begin), p->end_ms, INT64_MAX);
	if (strcmp(begin, day))
		fprintf(out, "%s ", begin);
	fputs(end, out);
}

static void draw_picture(FILE *out, const struct recording *r, const char *title)
{
	struct panel bytes = { .top = TOP, .height = BYTES_HEIGHT, .bytes = true };
	struct panel count = { .top = TOP + BYTES_HEIGHT + GAP, .height = COUNT_HEIGHT };
	int height = picture_height(r);

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\">\n<title>",
		WIDTH, height, WIDTH, height);
	put_escaped(out, title);
	fprintf(out, "</title>\n%s<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", style,
		WIDTH, height);
	fprintf(out, "<text class=\"title\" x=\"%d\" y=\"24\">", LEFT);
	put_escaped(out, title);
	fprintf(out, "</text>\n<text x=\"%d\" y=\"24\" text-anchor=\"end\">", WIDTH - RIGHT);
	panel_fit(&bytes, r);
	put_period(out, &bytes);
	fputs("</text>\n", out);
	draw_panel(out, r, &bytes);
	draw_panel(out, r, &count);
	draw_legend(out, r);
	fputs("</svg>\n", out);
}

/* ---- HTML page ---- */

static void put_table(FILE *out, const struct recording *r)
{
	fputs("<table>\n<tr><th>series</th><th>samples</th><th>peak</th><th>last</th>"
	      "<th>buffers, last</th></tr>\n",
	      out);
	for (size_t i = 0; i < r->series.n; i++) {
		const struct series *s = series_at(r, i);
		const struct sample *last = sample_at(s, s->samples.n - 1);
		char peak[CELL], size[CELL];

		fputs("<tr><td>", out);
		put_escaped(out, s->name);
		fprintf(out, "</td><td>%zu</td><td>%s</td><td>%s</td><td>%" PRIu64 "</td></tr>\n",
			s->samples.n, size_text(peak, s->peak.bytes), size_text(size, last->bytes),
			last->buffers);
	}
	fputs("</table>\n", out);
}

void svg_write(FILE *out, const struct recording *r, const char *title, bool html)
{
	if (!html) {
		draw_picture(out, r, title);
		return;
	}
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      out);
	put_escaped(out, title);
	fprintf(out,
		"</title>\n<style>:root{color-scheme:light dark}body{font:14px system-ui,"
		"sans-serif;max-width:%dpx;margin:16px auto;padding:0 8px}svg{max-width:100%%;"
		"height:auto}td,th{padding:2px 12px;text-align:right}td:first-child,"
		"th:first-child{text-align:left}</style>\n",
		WIDTH);
	draw_picture(out, r, title);
	put_table(out, r);
	fputs("</html>\n", out);
}
