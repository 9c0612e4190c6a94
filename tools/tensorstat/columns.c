// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* What rows say in the columns of a table. A column has one function; a kind has a list of them. */
#include "columns.h"

#include <inttypes.h>
#include <linux/tensor.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---- */

void put_size(char *text, size_t room, uint64_t bytes, const struct options *o)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	int unit = 0;

	if (o->raw) {
		snprintf(text, room, "%" PRIu64, bytes);
		return;
	}
	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(text, room, value == (double)(uint64_t)value ? "%.0f%s" : "%.1f%s", value,
		 units[unit]);
}

const char *const right_names[] = { "read", "write", "attach", "seal", "revoke", "export", NULL };

void put_rights(char *text, size_t room, uint32_t rights)
{
	size_t at = 0;

	snprintf(text, room, "-");
	for (int i = 0; right_names[i] && at < room; i++)
		if (rights & 1U << i)
			at += snprintf(text + at, room - at, "%s%s", at ? "," : "", right_names[i]);
}

void cell_by(struct cell *cell, uint64_t key)
{
	cell->key = key;
	cell->by_key = true;
}

void cell_text(struct cell *cell, const char *value)
{
	snprintf(cell->text, CELL, "%s", *value ? value : "-");
}

void cell_number(struct cell *cell, int64_t value)
{
	if (value == UNKNOWN)
		cell_text(cell, "-");
	else
		snprintf(cell->text, CELL, "%" PRId64, value);
	cell_by(cell, value == UNKNOWN ? 0 : (uint64_t)value);
}

void cell_size(struct cell *cell, int64_t bytes, const struct options *o)
{
	if (bytes == UNKNOWN)
		cell_text(cell, "-");
	else
		put_size(cell->text, CELL, (uint64_t)bytes, o);
	cell_by(cell, bytes == UNKNOWN ? 0 : (uint64_t)bytes);
}

void cell_age(struct cell *cell, int64_t ns)
{
	int64_t s = ns / 1000000000;

	cell_by(cell, ns == UNKNOWN ? 0 : (uint64_t)ns);
	if (ns == UNKNOWN)
		cell_text(cell, "-");
	else if (s < 60)
		snprintf(cell->text, CELL, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(cell->text, CELL, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(cell->text, CELL, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(cell->text, CELL, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}

size_t put_owner(char *to, size_t room, const struct owner *w, const struct options *o)
{
	int n = o->numeric || !*w->comm ? snprintf(to, room, "%d", w->pid) :
					  snprintf(to, room, "%d/%s", w->pid, w->comm);

	return (size_t)n < room ? (size_t)n : room - 1;
}

static void dims(struct cell *cell, const struct buffer *b, const int64_t *value)
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

/* ---- buffers ---- */

#define BUFFER(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define B	   ((const struct buffer *)row)

BUFFER(buffer_id)
{
	snprintf(cell->text, CELL, "%" PRIu64, B->id);
	cell_by(cell, B->id);
}

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
	dims(cell, B, B->sizes);
}

BUFFER(buffer_strides)
{
	dims(cell, B, B->strides);
}

BUFFER(buffer_size)
{
	cell_size(cell, (int64_t)B->bytes, o);
}

BUFFER(buffer_pinned)
{
	cell_size(cell, (int64_t)B->pinned_bytes, o);
}

BUFFER(buffer_huge)
{
	cell_size(cell, B->huge_bytes, o);
}

BUFFER(buffer_refs)
{
	cell_number(cell, (int64_t)B->refs);
}

BUFFER(buffer_handles)
{
	cell_number(cell, B->handles);
}

BUFFER(buffer_files)
{
	cell_number(cell, B->files);
}

BUFFER(buffer_mappings)
{
	cell_number(cell, B->mappings);
}

BUFFER(buffer_dmabufs)
{
	cell_number(cell, B->dmabufs);
}

BUFFER(buffer_devices)
{
	cell_number(cell, B->attachments);
}

BUFFER(buffer_client)
{
	cell_number(cell, B->client);
}

BUFFER(buffer_node)
{
	cell_number(cell, B->node);
}

BUFFER(buffer_kind_of)
{
	cell_text(cell, B->kind);
}

BUFFER(buffer_age)
{
	cell_age(cell, B->age_ns);
}

BUFFER(buffer_uid)
{
	cell_number(cell, B->n_owners ? (int64_t)B->owners[0].uid : UNKNOWN);
}

/* The first three; "+2" for two more. */
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
	{ "id", true, true, buffer_id },
	{ "name", true, false, buffer_name },
	{ "dtype", true, false, buffer_dtype },
	{ "shape", true, false, buffer_shape },
	{ "size", true, true, buffer_size },
	{ "pinned", true, true, buffer_pinned },
	{ "refs", true, true, buffer_refs },
	{ "owner", true, false, buffer_owner },
	{ "state", true, false, buffer_state_of },
	{ "uid", false, true, buffer_uid },
	{ "kind", false, false, buffer_kind_of },
	{ "strides", false, false, buffer_strides },
	{ "huge", false, true, buffer_huge },
	{ "node", false, true, buffer_node },
	{ "handles", false, true, buffer_handles },
	{ "files", false, true, buffer_files },
	{ "mappings", false, true, buffer_mappings },
	{ "dmabufs", false, true, buffer_dmabufs },
	{ "devices", false, true, buffer_devices },
	{ "client", false, true, buffer_client },
	{ "age", false, true, buffer_age },
};

static void buffer_clear(void *row)
{
	free(((struct buffer *)row)->owners);
}

/* ---- clients ---- */

#define CLIENT(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define C	   ((const struct client *)row)

CLIENT(client_id)
{
	cell_number(cell, (int64_t)C->id);
}

CLIENT(client_owner)
{
	put_owner(cell->text, CELL, &C->owner, o);
	cell_by(cell, (uint64_t)C->owner.pid);
}

CLIENT(client_uid)
{
	cell_number(cell, C->owner.uid);
}

CLIENT(client_handles)
{
	cell_number(cell, (int64_t)C->handles);
}

CLIENT(client_size)
{
	cell_size(cell, (int64_t)C->bytes, o);
}

CLIENT(client_age)
{
	cell_age(cell, C->age_ns);
}

static const struct column client_columns[] = {
	{ "id", true, true, client_id },     { "owner", true, false, client_owner },
	{ "uid", true, true, client_uid },   { "handles", true, true, client_handles },
	{ "size", true, true, client_size }, { "age", true, true, client_age },
};

/* ---- exported files ---- */

#define EXPORT(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define E	   ((const struct export *)row)

EXPORT(export_id)
{
	cell_number(cell, (int64_t)E->id);
}

EXPORT(export_buffer)
{
	cell_number(cell, (int64_t)E->buffer);
}

EXPORT(export_type)
{
	cell_text(cell, E->dmabuf ? "dmabuf" : "fd");
}

EXPORT(export_mode)
{
	static const char *const modes[] = { "-", "ro", "wo", "rw" };

	cell_text(cell, modes[E->rights & (TENSOR_RIGHT_READ | TENSOR_RIGHT_WRITE)]);
}

EXPORT(export_rights)
{
	put_rights(cell->text, CELL, E->rights);
}

EXPORT(export_offset)
{
	cell_size(cell, (int64_t)E->offset, o);
}

EXPORT(export_size)
{
	cell_size(cell, (int64_t)E->bytes, o);
}

EXPORT(export_owner)
{
	put_owner(cell->text, CELL, &E->owner, o);
	cell_by(cell, (uint64_t)E->owner.pid);
}

EXPORT(export_uid)
{
	cell_number(cell, E->owner.uid);
}

EXPORT(export_age)
{
	cell_age(cell, E->age_ns);
}

static const struct column export_columns[] = {
	{ "id", true, true, export_id },	 { "buffer", true, true, export_buffer },
	{ "type", true, false, export_type },	 { "mode", true, false, export_mode },
	{ "offset", true, true, export_offset }, { "size", true, true, export_size },
	{ "owner", true, false, export_owner },	 { "uid", false, true, export_uid },
	{ "age", true, true, export_age },	 { "rights", false, false, export_rights },
};

/* ---- kinds ---- */

const struct kind buffer_kind = {
	.name = "buffer",
	.size = sizeof(struct buffer),
	.json = buffer_json,
	.clear = buffer_clear,
	COLUMNS(buffer_columns),
};
const struct kind client_kind = {
	.name = "client",
	.size = sizeof(struct client),
	.json = client_json,
	COLUMNS(client_columns),
};
const struct kind export_kind = {
	.name = "export",
	.size = sizeof(struct export),
	.json = export_json,
	COLUMNS(export_columns),
};
