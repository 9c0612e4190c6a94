// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Bars and graphs. A character has eight levels, in UTF-8 as block elements. */
#include "top/chart.h"

#define LEVELS 8

static const char *const horizontal[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };
static const char *const vertical[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char plain_vertical[] = " .:-=+*#@";

void history_add(struct history *h, double seconds, uint64_t bytes)
{
	h->seconds[h->n % HISTORY_MAX] = seconds;
	h->bytes[h->n % HISTORY_MAX] = bytes;
	h->n++;
}

/* The number of samples that are still there, at most n. */
static size_t kept(const struct history *h, size_t n)
{
	n = n < HISTORY_MAX ? n : HISTORY_MAX;
	return n < h->n ? n : h->n;
}

uint64_t history_peak(const struct history *h, size_t n)
{
	uint64_t peak = 0;

	n = kept(h, n);
	for (size_t i = h->n - n; i < h->n; i++)
		if (h->bytes[i % HISTORY_MAX] > peak)
			peak = h->bytes[i % HISTORY_MAX];
	return peak;
}

double history_span(const struct history *h, size_t n)
{
	n = kept(h, n);
	if (n < 2)
		return 0;
	return h->seconds[(h->n - 1) % HISTORY_MAX] - h->seconds[(h->n - n) % HISTORY_MAX];
}

void chart_bar(FILE *out, double part, int width, bool utf8)
{
	int filled;

	part = part > 0 ? part : 0;
	part = part < 1 ? part : 1;
	filled = (int)(part * width * LEVELS + 0.5);
	/* A value that is not zero is visible. */
	if (part > 0 && !filled)
		filled = 1;
	for (int i = 0; i < width; i++) {
		int level = filled - i * LEVELS;

		level = level < 0 ? 0 : level > LEVELS ? LEVELS : level;
		if (utf8)
			fputs(horizontal[level], out);
		else
			fputc(level > LEVELS / 2 || (!i && level) ? '#' : ' ', out);
	}
}

void chart_row(FILE *out, const struct history *h, int row, int rows, int width, bool utf8)
{
	size_t n = kept(h, (size_t)width);
	uint64_t peak = history_peak(h, n);

	fprintf(out, "%*s", width - (int)n, "");
	for (size_t i = h->n - n; i < h->n; i++) {
		double part = peak ? (double)h->bytes[i % HISTORY_MAX] / (double)peak : 0;
		int level = (int)(part * rows * LEVELS + 0.5);

		/* Zero is a line on the ground, so that the graph shows where samples exist. */
		level = level > 0 ? level : 1;
		level -= (rows - 1 - row) * LEVELS;
		level = level < 0 ? 0 : level > LEVELS ? LEVELS : level;
		if (utf8)
			fputs(vertical[level], out);
		else
			fputc(plain_vertical[level], out);
	}
}
