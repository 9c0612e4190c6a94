/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions that write the error record of the calling thread. */
#ifndef TENSOR_ERROR_RECORD_H
#define TENSOR_ERROR_RECORD_H

#include "base/compiler.h"

/* Records the text for the calling thread, control characters replaced by ?; returns -code. */
int tensor_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
/*
 * A caller's text within an error text: in quotes, "NULL" for NULL, and at most 100 bytes of it, so that what
 * follows fits into the record. SHORT_PATH() is without quotes, and leaves the middle of a long path out.
 */
#define QUOTED(s)     error_quoted(s, (char[QUOTED_TEXT]){ 0 })
#define SHORT_PATH(s) error_short_path(s, (char[SHORT_PATH_TEXT]){ 0 })
enum { QUOTED_TEXT = 108, SHORT_PATH_TEXT = 260 };
const char *error_quoted(const char *s, char *text) __attribute__((cold));
const char *error_short_path(const char *s, char *text) __attribute__((cold));
/* The same for functions that return a tensor. */
#define tensor_fail_null(code, ...) ((void)tensor_fail(code, __VA_ARGS__), (tensor *)NULL)
/*
 * For an operator that called another one, which failed: puts its name in front of the text, "linear: in matmul:
 * other must have ...". Does nothing if the text has the name already.
 */
void error_in(const char *op) __attribute__((cold));
/* For a NULL argument: keeps the record of the earlier call that returned NULL, if there is one. */
tensor *null_argument(const char *op) __attribute__((cold));
int null_argument_code(const char *op) __attribute__((cold));

#endif
