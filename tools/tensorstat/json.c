// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rows as JSON. Every object has all of its keys, null where the backend does not know; keys are
 * only ever added.
 */
#include "tensorstat.h"

#include <inttypes.h>
#include <linux/tensor.h>

/* ---- writing ---- */

static FILE *out;
static bool pretty;
static int depth;
static bool first; /* nothing yet at this depth */

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

static void string(const char *s)
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
	string(name);
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
		string(value);
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

/* UNKNOWN is null. */
void json_rights(const char *name, int64_t rights)
{
	bool more = false;

	json_key(name);
	if (rights == UNKNOWN) {
		fputs("null", out);
		return;
	}
	fputc('[', out);
	for (int i = 0; right_names[i]; i++) {
		if (!(rights & 1U << i))
			continue;
		if (more)
			fputs(pretty ? ", " : ",", out);
		string(right_names[i]);
		more = true;
	}
	fputc(']', out);
}

static void put_list(const char *name, const int64_t *value, unsigned n, bool known)
{
	json_key(name);
	if (!known) {
		fputs("null", out);
		return;
	}
	/* A shape belongs on one line. */
	fputc('[', out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%s%" PRId64, i ? (pretty ? ", " : ",") : "", value[i]);
	fputc(']', out);
}

void json_rows(const struct kind *kind, const void *const *row, size_t n, const struct backend *b)
{
	json_enter('[');
	for (size_t i = 0; i < n; i++) {
		json_item();
		json_enter('{');
		kind->json(row[i], b);
		json_leave('}');
	}
	json_leave(']');
}

/* ---- rows ---- */

static void put_owner(const struct owner *o)
{
	json_u64("pid", o->pid);
	json_u64("uid", o->uid);
	json_string("comm", o->comm);
}

static void put_owners(const struct buffer *b)
{
	json_key("owners");
	json_enter('[');
	for (size_t i = 0; i < b->n_owners; i++) {
		json_item();
		json_enter('{');
		put_owner(&b->owners[i]);
		json_known("refs", b->owners[i].refs);
		json_bool("maker", b->owners[i].maker);
		json_leave('}');
	}
	json_leave(']');
}

static void put_what(const struct buffer *b, const struct backend *backend)
{
	bool typed = b->element.bits;
	char text[CELL];

	json_u64("id", b->id);
	json_string("backend", backend->name);
	json_string("name", b->label);
	json_string("dtype", element_name(text, sizeof(text), &b->element));
	put_list("shape", b->sizes, b->ndim, typed);
	put_list("strides", b->strides, b->ndim, typed);
	json_known("offset", typed ? b->offset : UNKNOWN);
}

static void put_counts(const struct buffer *b)
{
	json_u64("refs", b->refs);
	json_known("handles", b->handles);
	json_known("files", b->files);
	json_known("mappings", b->mappings);
	json_known("dmabufs", b->dmabufs);
	json_known("attachments", b->attachments);
}

void buffer_json(const void *row, const struct backend *backend)
{
	const struct buffer *b = row;

	put_what(b, backend);
	json_u64("bytes", b->bytes);
	json_u64("pinned_bytes", b->pinned_bytes);
	json_known("huge_bytes", b->huge_bytes);
	json_known("bits", b->element.bits ? (int64_t)b->element.bits : UNKNOWN);
	json_known("tag", b->element.bits ? (int64_t)b->element.tag : UNKNOWN);
	json_string("kind", b->kind);
	json_known("node", b->node);
	put_counts(b);
	json_known("client", b->client);
	json_known("age_ns", b->age_ns);
	json_bool("shared", b->shared);
	json_bool("readonly", b->seals & TENSOR_SEAL_WRITE);
	json_bool("orphan", b->orphan);
	json_bool("revoked", b->state & TENSOR_STATE_REVOKED);
	json_bool("purgeable", b->state & TENSOR_STATE_PURGEABLE);
	json_bool("purged", b->state & TENSOR_STATE_PURGED);
	put_owners(b);
}

void client_json(const void *row, const struct backend *b)
{
	const struct client *c = row;

	json_u64("id", c->id);
	json_string("backend", b->name);
	put_owner(&c->owner);
	json_u64("handles", c->handles);
	json_u64("bytes", c->bytes);
	json_known("age_ns", c->age_ns);
}

void export_json(const void *row, const struct backend *b)
{
	const struct export *e = row;

	json_u64("id", e->id);
	json_string("backend", b->name);
	json_u64("buffer", e->buffer);
	json_string("type", e->dmabuf ? "dmabuf" : "fd");
	json_bool("readonly", !(e->rights & TENSOR_RIGHT_WRITE));
	json_rights("rights", e->rights);
	json_bool("part", e->part);
	json_u64("offset", e->offset);
	json_u64("bytes", e->bytes);
	put_owner(&e->owner);
	json_known("age_ns", e->age_ns);
}

void payer_json(const void *row, const struct backend *b)
{
	const struct payer *p = row;

	json_string("backend", b->name);
	json_u64("uid", p->uid);
	json_u64("bytes", p->bytes);
	json_u64("limit_bytes", p->limit_bytes);
	json_u64("refused", p->refused);
	json_u64("objects", p->objects);
}

void group_json(const void *row, const struct backend *b)
{
	const struct holder *g = row;

	json_string("backend", b->name);
	put_owner(&g->owner);
	json_u64("buffers", g->buffers);
	json_u64("bytes", g->bytes);
	json_u64("pinned_bytes", g->pinned_bytes);
	json_u64("shared", g->shared);
	json_u64("orphans", g->orphans);
}

void totals_json(const void *row, const struct backend *b)
{
	const struct totals *t = row;

	json_string("backend", b->name);
	json_u64("time_ms", t->time_ms);
	json_known("clients", t->clients);
	json_known("buffers", t->buffers);
	json_known("bytes", t->bytes);
	json_known("huge_bytes", t->huge_bytes);
	json_known("limit_bytes", t->limit_bytes);
	json_known("refused", t->refused);
	json_known("used_bytes", t->used_bytes);
	json_known("purgeable_bytes", t->purgeable_bytes);
	json_known("linger_bytes", t->linger_bytes);
	json_known("files", t->files);
	json_known("dmabufs", t->dmabufs);
	json_known("user_limit_bytes", t->user_limit_bytes);
	json_known("user_refused", t->user_refused);
	json_known("pool_bytes", t->pool_bytes);
	json_known("pool_limit_bytes", t->pool_limit_bytes);
	json_known("pool_hits", t->pool_hits);
	json_known("pool_misses", t->pool_misses);
	json_known("pool_zeroed_bytes", t->pool_zeroed_bytes);
	json_known("pool_fetched_bytes", t->pool_fetched_bytes);
	json_known("pool_reclaimed_bytes", t->pool_reclaimed_bytes);
}
