/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * As much of JSON as the header of a safetensors file has: objects, arrays, strings, and whole
 * numbers that are not negative. A reader walks the text once; strings are decoded where they lie.
 */
#ifndef TENSOR_IO_JSON_H
#define TENSOR_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *begin, *p, *end;
};

/* The next character after white space, which is taken if it is c. */
bool json_take(struct json *j, char c);
/* A string as UTF-8, ended by a zero; false for bad escapes, control characters, zeros. */
bool json_string(struct json *j, char **text);
/* At most INT64_MAX, without leading zeros. */
bool json_number(struct json *j, int64_t *value);
/* Nothing but white space is left. */
bool json_at_end(struct json *j);

/* Writes a string with its quotes; to NULL only counts. Returns bytes. */
size_t json_quote(char *to, const char *text);

#endif
