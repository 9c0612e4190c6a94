/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A full-screen picture on the terminal, which is restored at the end. */
#ifndef TENSORSTAT_SCREEN_H
#define TENSORSTAT_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

/* False if standard output is no terminal or TERM is unset or "dumb"; then nothing was changed. */
bool screen_open(void);
void screen_close(void);
void screen_size(int *rows, int *columns);
/* Whether the terminal shows UTF-8, according to the locale. */
bool screen_utf8(void);
/* Returns the stream for the next picture; screen_show() draws it over the last one. */
FILE *screen_begin(void);
void screen_show(void);
/*
 * Waits for input. Returns the number of bytes read; 0 after a timeout, a change of the window size
 * or a continue after a stop; -1 if the terminal is gone.
 */
int screen_read(unsigned char *bytes, size_t room, double seconds);

#endif
