/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions that write the error record of the calling thread. */
#ifndef TENSOR_ERROR_RECORD_H
#define TENSOR_ERROR_RECORD_H

#include "base/compiler.h"

/* Records the text for the calling thread; returns -code. */
int tensor_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
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
