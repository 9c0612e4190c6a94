// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The error record of a thread. The function that fails writes it: operator, argument, expected and
 * actual value.
 */
#include "base/error.h"

#include "base/thread.h"

#include <stdarg.h>
#include <stdio.h>

TENSOR_EXPORT int tensor_fail(int code, const char *fmt, ...)
{
	struct tensor_error *e = &thread()->error;
	va_list args;

	e->code = code;
	va_start(args, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
	return -code;
}

int null_argument_code(const char *op)
{
	struct tensor_error *e = &thread()->error;

	if (!e->code)
		tensor_fail(EINVAL, "%s: an argument is NULL", op);
	return -e->code;
}

tensor *null_argument(const char *op)
{
	null_argument_code(op);
	return NULL;
}

TENSOR_EXPORT const struct tensor_error *tensor_last_error(void)
{
	return &thread()->error;
}

TENSOR_EXPORT void tensor_clear_error(void)
{
	struct tensor_error *e = &thread()->error;

	e->code = 0;
	e->text[0] = '\0';
}

TENSOR_EXPORT int tensor_perror(const char *prefix)
{
	const struct tensor_error *e = &thread()->error;

	if (prefix && *prefix)
		fprintf(stderr, "%s: ", prefix);
	fprintf(stderr, "%s\n", e->code ? e->text : "no error");
	return -e->code;
}
