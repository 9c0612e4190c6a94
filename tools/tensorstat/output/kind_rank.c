// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Columns and JSON of the ranks of process groups. */
#include "output/json.h"
#include "output/kinds.h"

#include "lib/group/local/page.h"

static const char *state_of(const struct rank *r)
{
	switch (r->state) {
	case LOCAL_ALIVE:
		return "alive";
	case LOCAL_CLOSED:
		return "closed";
	case LOCAL_GAVE_UP:
		return "failed";
	default:
		return "-";
	}
}

static void rank_state(struct cell *cell, const void *row, const struct options *o)
{
	const struct rank *r = row;

	cell_text(cell, state_of(r));
	cell->tone = r->state == LOCAL_GAVE_UP ? TONE_BAD : TONE_PLAIN;
}

static const struct column rank_columns[] = {
	COLUMN_NUMBER("group", true, struct rank, group),
	COLUMN_NUMBER("rank", true, struct rank, rank),
	COLUMN_NUMBER("size", true, struct rank, size),
	COLUMN_OWNER("owner", true, struct rank, owner),
	COLUMN_NUMBER("uid", false, struct rank, owner.uid),
	{ "state", true, false, .put = rank_state },
	COLUMN_NUMBER("operations", true, struct rank, operations),
	COLUMN_SIZE("bytes", true, struct rank, bytes),
};

static void rank_json(const void *row, const char *backend)
{
	const struct rank *r = row;

	json_u64("group", r->group);
	json_u64("rank", r->rank);
	json_u64("size", r->size);
	json_owner(&r->owner);
	json_string("state", state_of(r));
	json_u64("operations", r->operations);
	json_u64("bytes", r->bytes);
}

const struct kind rank_kind = { "rank", &rank_rows, COLUMNS(rank_columns), rank_json };
