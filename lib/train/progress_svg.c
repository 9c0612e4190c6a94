// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The loss curve: the mean of each point as a line, in an area from the least to the largest loss of the point. Text
 * and lines follow the light or dark scheme of the viewer.
 */
#include "train/progress.h"

#include "base/error.h"
#include "base/numeric_locale.h"
#include "io/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Pixels. */
#define WIDTH  960
#define HEIGHT 420
#define LEFT   80
#define RIGHT  30
#define TOP    50
#define BOTTOM 56

static const char style[] =
	"<style>\n"
	"svg{font:12px system-ui,sans-serif;--ink:#1a1a1a;--grid:#d9d9d9;--back:#fff;--bad:#c00000}\n"
	"@media (prefers-color-scheme:dark){svg{--ink:#e6e6e6;--grid:#444;--back:#1b1b1b;--bad:#ff7a7a}}\n"
	".back{fill:var(--back)}text{fill:var(--ink)}.title{font-size:18px;font-weight:600}\n"
	".grid{stroke:var(--grid)}.axis{stroke:var(--ink);fill:none}.bad{fill:var(--bad)}\n"
	".line{fill:none;stroke:#0072b2;stroke-width:1.6;stroke-linejoin:round}\n"
	".area{fill:#0072b2;fill-opacity:.2;stroke:#0072b2;stroke-opacity:.3}\n"
	"</style>\n";

/* The values at the edges, and the distance of labels. */
struct axis {
	double low, high, step;
};

struct picture {
	struct file_out out;
	const struct curve *c;
	struct axis x, y;
	int points;
};

static void put(struct picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct picture *p, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n > 0)
		file_write(&p->out, text,
			   (uint64_t)n < sizeof(text) ? (uint64_t)n : sizeof(text) - 1);
}

/* Text as the content of an element. Control characters, which XML refuses, become ?. */
static void put_escaped(struct picture *p, const char *text)
{
	for (; *text; text++) {
		const char *escaped = *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : NULL;

		if (escaped)
			put(p, "%s", escaped);
		else
			put(p, "%c", (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
	}
}

/* ---- scales ---- */

/* 1, 2 or 5 times a power of ten, of which at most `labels` are in the range. */
static double step_of(double range, int labels)
{
	double step = pow(10, floor(log10(range / labels)));
	static const double factors[] = { 1, 2, 5, 10 };

	for (int i = 0; i < 4; i++)
		if (range / (step * factors[i]) <= labels)
			return step * factors[i];
	return step * 20;
}

static void set_scales(struct picture *p)
{
	double low = INFINITY, high = -INFINITY;

	for (int i = 0; i < p->points; i++)
		if (p->c->points[i].n) {
			low = fmin(low, p->c->points[i].least);
			high = fmax(high, p->c->points[i].most);
		}
	if (!(low <= high))
		low = 0, high = 1;
	/* A range of losses that overflows, or that is below their precision, has no scale. */
	low = fmax(low, -1e300);
	high = fmin(high, 1e300);
	if (high - low <= fabs(high) * 1e-12)
		low -= fabs(low) / 2 + 0.5, high += fabs(high) / 2 + 0.5;
	p->y.step = step_of(high - low, 6);
	p->y.low = floor(low / p->y.step) * p->y.step;
	p->y.high = ceil(high / p->y.step) * p->y.step;
	p->x.low = 0;
	p->x.high = (double)(p->c->steps > 1 ? p->c->steps : 1);
	p->x.step = fmax(step_of(p->x.high, 8), 1);
}

static double x_of(const struct picture *p, double step)
{
	return LEFT + (step - p->x.low) / (p->x.high - p->x.low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct picture *p, double loss)
{
	return TOP + (p->y.high - loss) / (p->y.high - p->y.low) * (HEIGHT - TOP - BOTTOM);
}

static void draw_axes(struct picture *p, const char *label)
{
	for (int i = 0; i <= 10; i++) {
		double v = p->y.low + i * p->y.step, y;

		if (v > p->y.high + p->y.step / 2)
			break;
		y = y_of(p, v);
		put(p, "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>", LEFT,
		    WIDTH - RIGHT, y, y);
		put(p, "<text x='%d' y='%.1f' text-anchor='end'>%.6g</text>\n", LEFT - 8, y + 4,
		    fabs(v) < p->y.step / 1e6 ? 0 : v);
	}
	for (int i = 0; i <= 10 && i * p->x.step <= p->x.high; i++) {
		double x = x_of(p, i * p->x.step);

		put(p, "<line class='axis' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/>", x, x,
		    HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5);
		put(p, "<text x='%.1f' y='%d' text-anchor='middle'>%.12g</text>\n", x,
		    HEIGHT - BOTTOM + 20, i * p->x.step);
	}
	put(p, "<path class='axis' d='M%d %dV%dH%d'/>\n", LEFT, TOP, HEIGHT - BOTTOM,
	    WIDTH - RIGHT);
	put(p, "<text x='%d' y='%d' text-anchor='middle'>step</text>\n", (LEFT + WIDTH - RIGHT) / 2,
	    HEIGHT - 12);
	put(p, "<text transform='translate(20 %d) rotate(-90)' text-anchor='middle'>",
	    (TOP + HEIGHT - BOTTOM) / 2);
	put_escaped(p, label);
	put(p, "</text>\n");
}

/* ---- curves ---- */

/* The middle of the steps of point i. */
static double middle_of(const struct picture *p, int i)
{
	double begin = (double)i * (double)p->c->width,
	       end = fmin(begin + (double)p->c->width, (double)p->c->steps);

	return x_of(p, (begin + end) / 2);
}

/* From point i to before `end`: the area, if points have several losses. */
static void draw_area(struct picture *p, int i, int end)
{
	put(p, "<path class='area' d='");
	for (int k = i; k < end; k++)
		put(p, "%c%.1f %.1f", k == i ? 'M' : 'L', middle_of(p, k),
		    y_of(p, p->c->points[k].most));
	for (int k = end - 1; k >= i; k--)
		put(p, "L%.1f %.1f", middle_of(p, k), y_of(p, p->c->points[k].least));
	put(p, "Z'/>\n");
}

static void draw_line(struct picture *p, int i, int end)
{
	put(p, "<path class='line' d='");
	for (int k = i; k < end; k++) {
		const struct curve_point *point = &p->c->points[k];

		put(p, "%c%.1f %.1f", k == i ? 'M' : 'L', middle_of(p, k),
		    y_of(p, point->sum / (double)point->n));
	}
	/* A single point has a length, so that it is visible. */
	put(p, "%s'/>\n", end - i == 1 ? "h1" : "");
}

static void draw_curve(struct picture *p)
{
	for (int i = 0; i < p->points;) {
		int end = i;

		while (end < p->points && p->c->points[end].n)
			end++;
		if (end > i && p->c->width > 1)
			draw_area(p, i, end);
		if (end > i)
			draw_line(p, i, end);
		i = end > i ? end : i + 1;
	}
	if (p->c->bad >= 0)
		put(p,
		    "<text class='bad' x='%d' y='%d' text-anchor='end'>not finite from step %lld on</text>\n",
		    WIDTH - RIGHT, TOP - 8, (long long)p->c->bad);
}

int curve_save(const struct curve *c, const char *path, const char *title, const char *label)
{
	struct picture p = { .c = c };
	int err = file_create(&p.out, "progress_save_svg", path);
	struct numeric_locale numeric = numeric_locale_begin();

	if (!err) {
		p.points = (int)((c->steps + c->width - 1) / c->width);
		set_scales(&p);
		put(&p,
		    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' role='img'>\n",
		    WIDTH, HEIGHT, WIDTH, HEIGHT);
		file_write(&p.out, style, sizeof(style) - 1);
		put(&p, "<rect class='back' width='%d' height='%d'/>\n", WIDTH, HEIGHT);
		if (title) {
			put(&p, "<text class='title' x='%d' y='30'>", LEFT);
			put_escaped(&p, title);
			put(&p, "</text>\n");
		}
		draw_axes(&p, label);
		draw_curve(&p);
		put(&p, "</svg>\n");
	}
	numeric_locale_end(&numeric);
	return file_finish(&p.out, err);
}
