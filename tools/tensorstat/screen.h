/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A terminal that is drawn on again and again, and is as it was afterwards. */
#ifndef TENSORSTAT_SCREEN_H
#define TENSORSTAT_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

/* False if standard output is no terminal: then nothing here does anything. */
bool screen_open(void);
void screen_close(void);
/* Rows and columns now. */
void screen_size(int *rows, int *columns);
/* Where to write the next picture; screen_show() puts it over the last one. */
FILE *screen_begin(void);
void screen_show(void);
/* Waits for a key: the key, 0 when the time is over or the window has changed, -1 at the end. */
int screen_key(double seconds);

#endif
