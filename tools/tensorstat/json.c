// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rows as JSON: one array an invocation. Every object has all of its keys, null where the backend
 * does not know; keys are only ever added.
 */
#include "tensorstat.h"

#include <inttypes.h>

/* ---- writing ---------------------------------------------------------------------------------- */

static bool pretty;
static int depth;
static bool first; /* nothing yet at this depth */

static void newline(void)
{
	if (pretty)
		printf("\n%*s", 4 * depth, "");
}

static void separate(void)
{
	if (!first)
		putchar(',');
	if (depth)
		newline();
	first = false;
}

static void string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void key(const char *name)
{
	separate();
	string(name);
	fputs(pretty ? ": " : ":", stdout);
}

static void enter(char bracket)
{
	putchar(bracket);
	depth++;
	first = true;
}

static void leave(char bracket)
{
	bool empty = first;

	depth--;
	first = false;
	if (!empty)
		newline();
	putchar(bracket);
}

static void put_string(const char *name, const char *value)
{
	key(name);
	string(value);
}

static void put_u64(const char *name, uint64_t value)
{
	key(name);
	printf("%" PRIu64, value);
}

/* UNKNOWN is null. */
static void put_known(const char *name, int64_t value)
{
	key(name);
	if (value == UNKNOWN)
		fputs("null", stdout);
	else
		printf("%" PRId64, value);
}

static void put_bool(const char *name, bool value)
{
	key(name);
	fputs(value ? "true" : "false", stdout);
}

static void put_list(const char *name, const int64_t *value, unsigned n, bool known)
{
	key(name);
	if (!known) {
		fputs("null", stdout);
		return;
	}
	/* A shape belongs on one line. */
	putchar('[');
	for (unsigned i = 0; i < n; i++)
		printf("%s%" PRId64, i ? (pretty ? ", " : ",") : "", value[i]);
	putchar(']');
}

/* ---- rows --------------------------------------------------------------------------------------- */

static void put_owner(const struct owner *o)
{
	put_u64("pid", o->pid);
	put_u64("uid", o->uid);
	put_string("comm", o->comm);
}

static void put_owners(const struct buffer *b)
{
	key("owners");
	enter('[');
	for (size_t i = 0; i < b->n_owners; i++) {
		separate();
		enter('{');
		put_owner(&b->owners[i]);
		put_known("refs", b->owners[i].refs ? (int64_t)b->owners[i].refs : UNKNOWN);
		leave('}');
	}
	leave(']');
}

static void put_what(const struct buffer *b, const struct backend *backend)
{
	bool typed = b->dtype;

	put_u64("id", b->id);
	put_string("backend", backend->name);
	put_string("name", b->label);
	key("dtype");
	if (typed)
		string(dtype_name(b->dtype));
	else
		fputs("null", stdout);
	put_list("shape", b->sizes, b->ndim, typed);
	put_list("strides", b->strides, b->ndim, typed);
	put_known("offset", typed ? b->offset : UNKNOWN);
}

static void put_buffer(const struct buffer *b, const struct backend *backend)
{
	put_what(b, backend);
	put_u64("bytes", b->bytes);
	put_u64("pinned_bytes", b->pinned_bytes);
	put_known("huge_bytes", b->huge_bytes);
	put_known("node", b->node);
	put_u64("refs", b->refs);
	put_known("handles", b->handles);
	put_known("files", b->files);
	put_known("mappings", b->mappings);
	put_known("client", b->client);
	put_known("age_ns", b->age_ns);
	put_bool("shared", b->shared);
	put_bool("readonly", b->readonly);
	put_bool("orphan", b->orphan);
	put_owners(b);
}

static void begin(const struct options *o)
{
	pretty = o->pretty;
	depth = 0;
	first = true;
	enter('[');
}

static void end(void)
{
	leave(']');
	putchar('\n');
}

void json_buffers(const struct buffers *list, const struct backend *b, const struct options *o)
{
	begin(o);
	for (size_t i = 0; i < list->n; i++) {
		separate();
		enter('{');
		put_buffer(&list->row[i], b);
		leave('}');
	}
	end();
}

void json_clients(const struct clients *list, const struct backend *b, const struct options *o)
{
	begin(o);
	for (size_t i = 0; i < list->n; i++) {
		const struct client *c = &list->row[i];

		separate();
		enter('{');
		put_u64("id", c->id);
		put_string("backend", b->name);
		put_owner(&c->owner);
		put_u64("handles", c->handles);
		put_u64("bytes", c->bytes);
		put_known("age_ns", c->age_ns);
		leave('}');
	}
	end();
}
