// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Columns and JSON of clients and of exports. */
#include "output/json.h"
#include "output/kinds.h"

#include <linux/tensor.h>

/* ---- clients ---- */

#define CLIENT(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define C	   ((const struct client *)row)

static const struct column client_columns[] = {
	COLUMN_NUMBER("id", true, struct client, id),
	COLUMN_OWNER("owner", true, struct client, owner),
	COLUMN_NUMBER("uid", true, struct client, owner.uid),
	COLUMN_NUMBER("handles", true, struct client, handles),
	COLUMN_SIZE("size", true, struct client, bytes),
	COLUMN_AGE("age", true, struct client, age_ns),
};

/* ---- exports ---- */

#define EXPORT(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define E	   ((const struct export *)row)

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

static const struct column export_columns[] = {
	COLUMN_NUMBER("id", true, struct export, id),
	COLUMN_NUMBER("buffer", true, struct export, buffer),
	{ "type", true, false, .put = export_type },
	{ "mode", true, false, .put = export_mode },
	COLUMN_SIZE("offset", true, struct export, offset),
	COLUMN_SIZE("size", true, struct export, bytes),
	COLUMN_OWNER("owner", true, struct export, owner),
	COLUMN_NUMBER("uid", false, struct export, owner.uid),
	COLUMN_AGE("age", true, struct export, age_ns),
	{ "rights", false, false, .put = export_rights },
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

const struct kind client_kind = { "client", &client_rows, COLUMNS(client_columns), client_json };

const struct kind export_kind = { "export", &export_rows, COLUMNS(export_columns), export_json };
