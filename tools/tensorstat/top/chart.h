/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Bars and graphs made of characters. */
#ifndef TENSORSTAT_CHART_H
#define TENSORSTAT_CHART_H

#include "tensorstat.h"

#define HISTORY_MAX 1024

/* Samples of the bytes in use; the oldest is overwritten. */
struct history {
	double seconds[HISTORY_MAX];
	uint64_t bytes[HISTORY_MAX];
	size_t n; /* all samples so far */
};

void history_add(struct history *h, double seconds, uint64_t bytes);
/* The largest of the last n samples. */
uint64_t history_peak(const struct history *h, size_t n);
/* Seconds between the first of the last n samples and the last one. */
double history_span(const struct history *h, size_t n);

/* A bar of `width` columns, filled to `part`, which is cut to 0..1. */
void chart_bar(FILE *out, double part, int width, bool utf8);
/* Row `row` (0: the top) of a graph of `rows` rows with the last `width` samples, right aligned. */
void chart_row(FILE *out, const struct history *h, int row, int rows, int width, bool utf8);

#endif
