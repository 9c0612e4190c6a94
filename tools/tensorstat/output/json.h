/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A JSON writer. Every object has all of its keys, null where a value is unknown. A release adds
 * keys and never removes one.
 */
#ifndef TENSORSTAT_JSON_H
#define TENSORSTAT_JSON_H

#include "rows/rows.h"

void json_open(FILE *out, bool pretty);
/* Ends the document with a newline. */
void json_close(void);
/* '{' or '[', and the end of it. */
void json_enter(char bracket);
void json_leave(char bracket);
void json_key(const char *name);
/* Writes the comma before a member of an array. */
void json_item(void);
/* NULL is null; control characters are escaped. */
void json_string(const char *name, const char *value);
void json_u64(const char *name, uint64_t value);
/* UNKNOWN is null in these two. */
void json_known(const char *name, int64_t value);
void json_flags(const char *name, int64_t flags, const char *const *names);
void json_bool(const char *name, bool value);
/* An array of numbers; null unless known. */
void json_s64s(const char *name, const int64_t *value, unsigned n, bool known);
/* The keys pid, uid and comm of the current object. */
void json_owner(const struct owner *o);

#endif
