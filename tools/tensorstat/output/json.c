// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A JSON writer. It has one output at a time. */
#include "output/json.h"

#include <inttypes.h>

static FILE *out;
static bool pretty;
static int depth;
static bool first; /* the object or array has no member yet */

static void newline(void)
{
	if (pretty)
		fprintf(out, "\n%*s", 4 * depth, "");
}

void json_item(void)
{
	if (!first)
		fputc(',', out);
	if (depth)
		newline();
	first = false;
}

static void write_string(const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

void json_key(const char *name)
{
	json_item();
	write_string(name);
	fputs(pretty ? ": " : ":", out);
}

void json_enter(char bracket)
{
	fputc(bracket, out);
	depth++;
	first = true;
}

void json_leave(char bracket)
{
	bool empty = first;

	depth--;
	first = false;
	if (!empty)
		newline();
	fputc(bracket, out);
}

void json_open(FILE *to, bool is_pretty)
{
	out = to;
	pretty = is_pretty;
	depth = 0;
	first = true;
}

void json_close(void)
{
	fputc('\n', out);
}

void json_string(const char *name, const char *value)
{
	json_key(name);
	if (value)
		write_string(value);
	else
		fputs("null", out);
}

void json_u64(const char *name, uint64_t value)
{
	json_key(name);
	fprintf(out, "%" PRIu64, value);
}

void json_known(const char *name, int64_t value)
{
	json_key(name);
	if (value == UNKNOWN)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, value);
}

void json_bool(const char *name, bool value)
{
	json_key(name);
	fputs(value ? "true" : "false", out);
}

void json_flags(const char *name, int64_t flags, const char *const *names)
{
	bool more = false;

	json_key(name);
	if (flags == UNKNOWN) {
		fputs("null", out);
		return;
	}
	fputc('[', out);
	for (int i = 0; names[i]; i++) {
		if (!(flags & 1U << i))
			continue;
		if (more)
			fputs(pretty ? ", " : ",", out);
		write_string(names[i]);
		more = true;
	}
	fputc(']', out);
}

void json_s64s(const char *name, const int64_t *value, unsigned n, bool known)
{
	json_key(name);
	if (!known) {
		fputs("null", out);
		return;
	}
	/* All numbers are on one line, also with --pretty. */
	fputc('[', out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%s%" PRId64, i ? (pretty ? ", " : ",") : "", value[i]);
	fputc(']', out);
}

void json_owner(const struct owner *o)
{
	json_u64("pid", o->pid);
	json_u64("uid", o->uid);
	json_string("comm", o->comm);
}
