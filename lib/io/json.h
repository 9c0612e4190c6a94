/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The subset of JSON in the header of a safetensors file: objects, arrays, strings and non-negative
 * integers. The parser makes one pass; strings are decoded in place. */
#ifndef TENSOR_IO_JSON_H
#define TENSOR_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *begin, *p, *end;
};

/* Skip white space; consume the next character and return true if it is c. */
bool json_take(struct json *j, char c);
/* Parse a string into NUL-terminated UTF-8. False for an invalid escape, a control character or a
 * NUL. */
bool json_string(struct json *j, char **text);
/* Parse an integer of at most INT64_MAX without leading zeros. */
bool json_number(struct json *j, int64_t *value);
/* True if only white space is left. */
bool json_at_end(struct json *j);

/* Write a quoted string, or only count if `to` is NULL. Returns the bytes. */
size_t json_quote(char *to, const char *text);

#endif
