/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Draws a recording. */
#ifndef TENSORSTAT_SVG_H
#define TENSORSTAT_SVG_H

#include "plot/series.h"

/* Each series has a colour of its own. */
#define SERIES_MAX 8

/* A document of its own, or with html a page that also has the numbers as a table. */
void svg_write(FILE *out, const struct recording *r, const char *title, bool html);

#endif
