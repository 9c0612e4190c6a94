// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Columns and JSON of clients and of exports. */
#include "output/json.h"
#include "output/kinds.h"

#include <linux/tensor.h>

/* ---- clients ---- */

#define CLIENT(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define C	   ((const struct client *)row)

CLIENT(client_id)
{
	cell_number(cell, (int64_t)C->id);
}

CLIENT(client_owner)
{
	cell_owner(cell, &C->owner, o);
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

/* ---- exports ---- */

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
	cell_owner(cell, &E->owner, o);
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

/* ---- JSON ---- */

static void client_json(const void *row, const char *backend)
{
	const struct client *c = row;

	json_u64("id", c->id);
	json_string("backend", backend);
	json_owner(&c->owner);
	json_u64("handles", c->handles);
	json_u64("bytes", c->bytes);
	json_known("age_ns", c->age_ns);
}

static void export_json(const void *row, const char *backend)
{
	const struct export *e = row;

	json_u64("id", e->id);
	json_string("backend", backend);
	json_u64("buffer", e->buffer);
	json_string("type", e->dmabuf ? "dmabuf" : "fd");
	json_bool("readonly", !(e->rights & TENSOR_RIGHT_WRITE));
	json_flags("rights", e->rights, right_names);
	json_bool("part", e->part);
	json_u64("offset", e->offset);
	json_u64("bytes", e->bytes);
	json_owner(&e->owner);
	json_known("age_ns", e->age_ns);
}

const struct kind client_kind = {
	.name = "client",
	.rows = &client_rows,
	.json = client_json,
	COLUMNS(client_columns),
};

const struct kind export_kind = {
	.name = "export",
	.rows = &export_rows,
	.json = export_json,
	COLUMNS(export_columns),
};
