/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Words and numbers of the command line. */
#ifndef TENSORSTAT_ARGS_H
#define TENSORSTAT_ARGS_H

#include "tensorstat.h"

/* Whether arg is word or an abbreviation of it, as in iproute2. */
bool matches(const char *arg, const char *word);
/* Prints WHAT "TEXT" and the way to the help text. Returns STATUS_USAGE. */
enum status usage_error(const char *what, const char *text);
/* As usage_error(); also suggests the nearest of the known words, a list that ends with NULL. */
enum status usage_unknown(const char *what, const char *text, const char *const *known);
/*
 * The word with the smallest edit distance to text, without regard to case; NULL if none is
 * similar. An insertion, a deletion, a substitution and a swap of neighbours count 1 each.
 */
const char *nearest_word(const char *text, const char *const *known);

bool parse_u64(const char *text, uint64_t *value);
bool parse_pid(const char *text, pid_t *pid);
/* 4096, 64K, 1.5M, 2GiB: units of 1024. */
bool parse_size(const char *text, uint64_t *bytes);
/* More than 0, at most a year. */
bool parse_seconds(const char *text, double *seconds);

#endif
