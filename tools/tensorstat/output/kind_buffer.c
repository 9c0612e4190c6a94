// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Columns and JSON of a buffer. */
#include "output/json.h"
#include "output/kinds.h"

#include <inttypes.h>
#include <linux/tensor.h>

static void cell_dims(struct cell *cell, const struct buffer *b, const int64_t *value)
{
	size_t at = 0;

	if (!b->element.bits) {
		cell_text(cell, "-");
		return;
	}
	at += snprintf(cell->text, CELL, "[");
	for (uint32_t i = 0; i < b->ndim && at < CELL; i++)
		at += snprintf(cell->text + at, CELL - at, "%s%" PRId64, i ? "," : "", value[i]);
	if (at < CELL)
		snprintf(cell->text + at, CELL - at, "]");
}

/* ---- columns ---- */

#define BUFFER(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define B	   ((const struct buffer *)row)

BUFFER(buffer_name)
{
	cell_text(cell, B->label);
}

BUFFER(buffer_dtype)
{
	if (!element_name(cell->text, CELL, &B->element))
		cell_text(cell, "-");
}

BUFFER(buffer_shape)
{
	cell_dims(cell, B, B->sizes);
}

BUFFER(buffer_strides)
{
	cell_dims(cell, B, B->strides);
}

BUFFER(buffer_kind_of)
{
	cell_text(cell, B->kind);
}

BUFFER(buffer_uid)
{
	cell_number(cell, B->n_owners ? (int64_t)B->owners[0].uid : UNKNOWN);
}

/* The first three owners, then the number of the others. */
BUFFER(buffer_owner)
{
	size_t at = 0;

	for (size_t i = 0; i < B->n_owners && i < 3; i++) {
		if (i)
			at += snprintf(cell->text + at, CELL - at, ",");
		at += put_owner(cell->text + at, CELL - at - 8, &B->owners[i], o);
	}
	if (B->n_owners > 3)
		snprintf(cell->text + at, CELL - at, ",+%zu", B->n_owners - 3);
	if (!B->n_owners)
		cell_text(cell, "-");
	cell_by(cell, B->n_owners ? (uint64_t)B->owners[0].pid : 0);
}

BUFFER(buffer_state_of)
{
	const struct {
		bool on;
		const char *word;
	} words[] = {
		{ B->seals & TENSOR_SEAL_WRITE, "readonly" },
		{ B->orphan, "orphan" },
		{ B->state & TENSOR_STATE_REVOKED, "revoked" },
		{ B->state & TENSOR_STATE_PURGED, "purged" },
		{ B->state & TENSOR_STATE_PURGEABLE && !(B->state & TENSOR_STATE_PURGED),
		  "purgeable" },
	};
	size_t at = snprintf(cell->text, CELL, B->shared ? "shared" : "private");

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i].on && at < CELL)
			at += snprintf(cell->text + at, CELL - at, ",%s", words[i].word);
	if (B->state & TENSOR_STATE_REVOKED)
		cell->tone = TONE_BAD;
	else if (B->orphan || B->state & TENSOR_STATE_PURGED)
		cell->tone = TONE_WARN;
}

static const struct column buffer_columns[] = {
	COLUMN_NUMBER("id", true, struct buffer, id),
	{ "name", true, false, .put = buffer_name },
	{ "dtype", true, false, .put = buffer_dtype },
	{ "shape", true, false, .put = buffer_shape },
	COLUMN_SIZE("size", true, struct buffer, bytes),
	COLUMN_SIZE("pinned", true, struct buffer, pinned_bytes),
	COLUMN_NUMBER("refs", true, struct buffer, refs),
	{ "owner", true, false, .put = buffer_owner },
	{ "state", true, false, .put = buffer_state_of },
	{ "uid", false, true, .put = buffer_uid },
	{ "kind", false, false, .put = buffer_kind_of },
	{ "strides", false, false, .put = buffer_strides },
	COLUMN_SIZE("huge", false, struct buffer, huge_bytes),
	COLUMN_NUMBER("node", false, struct buffer, node),
	COLUMN_NUMBER("handles", false, struct buffer, handles),
	COLUMN_NUMBER("files", false, struct buffer, files),
	COLUMN_NUMBER("mappings", false, struct buffer, mappings),
	COLUMN_NUMBER("dmabufs", false, struct buffer, dmabufs),
	COLUMN_NUMBER("devices", false, struct buffer, attachments),
	COLUMN_NUMBER("client", false, struct buffer, client),
	COLUMN_AGE("age", false, struct buffer, age_ns),
};

/* ---- JSON ---- */

static void put_owners(const struct buffer *b)
{
	json_key("owners");
	json_enter('[');
	for (size_t i = 0; i < b->n_owners; i++) {
		json_item();
		json_enter('{');
		json_owner(&b->owners[i]);
		json_known("refs", b->owners[i].refs);
		json_bool("maker", b->owners[i].maker);
		json_leave('}');
	}
	json_leave(']');
}

static void put_identity(const struct buffer *b, const char *backend)
{
	bool typed = b->element.bits;
	char text[CELL];

	json_u64("id", b->id);
	json_string("backend", backend);
	json_string("name", b->label);
	json_string("dtype", element_name(text, sizeof(text), &b->element));
	json_s64s("shape", b->sizes, b->ndim, typed);
	json_s64s("strides", b->strides, b->ndim, typed);
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

static void buffer_json(const void *row, const char *backend)
{
	const struct buffer *b = row;

	put_identity(b, backend);
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

const struct kind buffer_kind = { "buffer", &buffer_rows, COLUMNS(buffer_columns), buffer_json };
