// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The error record of a thread. The function that fails writes it: operator, argument, expected and
 * actual value.
 */
#include "base/error.h"

#include "base/thread.h"

#include <tensor/binding.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Callers print the text on terminals: a name with an escape sequence must not reach them. */
static void replace_controls(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			*c++ = '?', *c = '?';
		else if (*c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

TENSOR_EXPORT int tensor_fail(int code, const char *fmt, ...)
{
	struct tensor_error *e = &thread()->error;
	va_list args;

	thread()->no_kernel = false;
	e->code = code;
	e->binding = 0;
	va_start(args, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, args);
	va_end(args);
	replace_controls(e->text);
	return -code;
}

TENSOR_EXPORT int tensor_set_error(int code, const char *fmt, ...)
{
	char text[TENSOR_ERROR_TEXT];
	va_list args;

	va_start(args, fmt);
	/* The arguments may be the text of the record. */
	vsnprintf(text, sizeof(text), fmt ?: "", args);
	va_end(args);
	return tensor_fail(code > 0 ? code : EINVAL, "%s", text);
}

/* n, or less if the n-th byte is within a character of UTF-8. */
static int whole_characters(const char *s, int n)
{
	while (n > 0 && (s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

const char *error_quoted(const char *s, char *text)
{
	const size_t most = 100;

	if (!s)
		return "NULL";
	if (strnlen(s, most + 1) > most)
		snprintf(text, QUOTED_TEXT, "'%.*s...'", whole_characters(s, (int)most), s);
	else
		snprintf(text, QUOTED_TEXT, "'%s'", s);
	return text;
}

const char *error_short_path(const char *s, char *text)
{
	const int begin = 100, end = 150;
	size_t n = strlen(s);

	if (n < SHORT_PATH_TEXT)
		return s;
	snprintf(text, SHORT_PATH_TEXT, "%.*s...%s", whole_characters(s, begin), s, s + n - end);
	return text;
}

/* Length of the name in front of ": ", 0 if the text begins with none. */
static size_t name_length(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");

	return text[n] == ':' && text[n + 1] == ' ' ? n : 0;
}

/* The length of the base name of an operator: without overload and the _ of an in-place form. */
static size_t base_length(const char *name, size_t n)
{
	size_t base = strcspn(name, ".:");

	base = base < n ? base : n;
	while (base && name[base - 1] == '_')
		base--;
	return base;
}

void error_in(const char *op)
{
	struct tensor_error *e = &thread()->error;
	size_t named = name_length(e->text), base = base_length(op, strlen(op));
	const char *inner = e->text;
	char text[2 * TENSOR_ERROR_TEXT];

	if (!e->code ||
	    (named && base_length(e->text, named) == base && !strncmp(e->text, op, base)))
		return;
	/* "addmm: in mm: ..." of a composite within a composite: the middle is left out. */
	if (named && !strncmp(inner + named, ": in ", 5))
		inner += named + 5;
	snprintf(text, sizeof(text), "%s: %s%s", op, named ? "in " : "", inner);
	memcpy(e->text, text, TENSOR_ERROR_TEXT - 1);
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

	thread()->no_kernel = false;
	e->code = 0;
	e->binding = 0;
	e->text[0] = '\0';
}

TENSOR_EXPORT void tensor_set_error_binding(uint64_t value)
{
	thread()->error.binding = value;
}

TENSOR_EXPORT int tensor_perror(const char *prefix)
{
	const struct tensor_error *e = &thread()->error;

	if (prefix && *prefix)
		fprintf(stderr, "%s: ", prefix);
	fprintf(stderr, "%s\n", e->code ? e->text : "no error");
	return -e->code;
}
