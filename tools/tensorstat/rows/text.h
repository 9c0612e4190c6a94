/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Text of other processes, and its width on a terminal. */
#ifndef TENSORSTAT_TEXT_H
#define TENSORSTAT_TEXT_H

#include "tensorstat.h"

/*
 * Copies text that another process wrote, cut to @size bytes at a character. Control characters,
 * bidirectional marks and bytes that are no UTF-8 become '?'.
 */
void copy_text(char *to, size_t size, const char *from);
/* Bytes and terminal columns (0, 1 or 2) of the character at s, which is valid UTF-8. */
size_t char_bytes(const char *s);
int char_width(const char *s);
/* Terminal columns of valid UTF-8. */
int text_width(const char *s);
/* Whether text contains words, without regard to the case of ASCII letters. */
bool text_contains(const char *text, const char *words);

#endif
