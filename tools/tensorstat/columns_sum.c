// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The columns of what is added up: by payer, by process, by user, and in all. */
#include "columns.h"

/* ---- who pays ---- */

#define PAYER(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define P	  ((const struct payer *)row)

PAYER(payer_uid)
{
	cell_number(cell, P->uid);
}

PAYER(payer_size)
{
	cell_size(cell, (int64_t)P->bytes, o);
}

PAYER(payer_limit)
{
	cell_size(cell, (int64_t)P->limit_bytes, o);
}

PAYER(payer_refused)
{
	cell_number(cell, (int64_t)P->refused);
}

PAYER(payer_objects)
{
	cell_number(cell, (int64_t)P->objects);
}

static const struct column payer_columns[] = {
	{ "uid", true, true, payer_uid },	  { "size", true, true, payer_size },
	{ "limit", true, true, payer_limit },	  { "refused", true, true, payer_refused },
	{ "objects", true, true, payer_objects },
};

/* ---- processes and users ---- */

#define GROUP(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define G	  ((const struct holder *)row)

GROUP(group_owner)
{
	put_owner(cell->text, CELL, &G->owner, o);
	cell_by(cell, (uint64_t)G->owner.pid);
}

GROUP(group_uid)
{
	cell_number(cell, G->owner.uid);
}

GROUP(group_buffers)
{
	cell_number(cell, (int64_t)G->buffers);
}

GROUP(group_size)
{
	cell_size(cell, (int64_t)G->bytes, o);
}

GROUP(group_pinned)
{
	cell_size(cell, (int64_t)G->pinned_bytes, o);
}

GROUP(group_shared)
{
	cell_number(cell, (int64_t)G->shared);
}

GROUP(group_orphans)
{
	cell_number(cell, (int64_t)G->orphans);
	if (G->orphans)
		cell->tone = TONE_WARN;
}

static const struct column process_columns[] = {
	{ "owner", true, false, group_owner },	  { "uid", true, true, group_uid },
	{ "buffers", true, true, group_buffers }, { "size", true, true, group_size },
	{ "pinned", true, true, group_pinned },	  { "shared", true, true, group_shared },
	{ "orphans", true, true, group_orphans },
};

static const struct column user_columns[] = {
	{ "uid", true, true, group_uid },	{ "buffers", true, true, group_buffers },
	{ "size", true, true, group_size },	{ "pinned", true, true, group_pinned },
	{ "shared", true, true, group_shared }, { "orphans", true, true, group_orphans },
};

/* ---- totals ---- */

#define TOTALS(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define T	   ((const struct totals *)row)

TOTALS(totals_clients)
{
	cell_number(cell, T->clients);
}

TOTALS(totals_buffers)
{
	cell_number(cell, T->buffers);
}

TOTALS(totals_size)
{
	cell_size(cell, T->bytes, o);
}

TOTALS(totals_huge)
{
	cell_size(cell, T->huge_bytes, o);
}

TOTALS(totals_limit)
{
	cell_size(cell, T->limit_bytes, o);
}

TOTALS(totals_used)
{
	double part;

	if (T->limit_bytes <= 0) {
		cell_text(cell, "-");
		return;
	}
	part = 100.0 * (double)T->used_bytes / (double)T->limit_bytes;
	snprintf(cell->text, CELL, "%.1f%%", part);
	if (part >= 90)
		cell->tone = part >= 98 ? TONE_BAD : TONE_WARN;
}

TOTALS(totals_purgeable)
{
	cell_size(cell, T->purgeable_bytes, o);
}

TOTALS(totals_lingering)
{
	cell_size(cell, T->linger_bytes, o);
}

TOTALS(totals_exports)
{
	cell_number(cell, T->files == UNKNOWN ? UNKNOWN : T->files + T->dmabufs);
}

TOTALS(totals_pool)
{
	cell_size(cell, T->pool_bytes, o);
}

TOTALS(totals_refused)
{
	cell_number(cell, T->refused);
}

static const struct column totals_columns[] = {
	{ "clients", true, true, totals_clients },
	{ "buffers", true, true, totals_buffers },
	{ "size", true, true, totals_size },
	{ "huge", true, true, totals_huge },
	{ "limit", true, true, totals_limit },
	{ "used", true, true, totals_used },
	{ "refused", true, true, totals_refused },
	{ "exports", false, true, totals_exports },
	{ "purgeable", false, true, totals_purgeable },
	{ "pool", false, true, totals_pool },
	{ "lingering", false, true, totals_lingering },
};

/* ---- kinds ---- */

const struct kind payer_kind = {
	.name = "user",
	.size = sizeof(struct payer),
	.json = payer_json,
	COLUMNS(payer_columns),
};
const struct kind process_kind = {
	.name = "process",
	.size = sizeof(struct holder),
	.json = group_json,
	COLUMNS(process_columns),
};
const struct kind user_kind = {
	.name = "user",
	.size = sizeof(struct holder),
	.json = group_json,
	COLUMNS(user_columns),
};
const struct kind totals_kind = {
	.name = "stat",
	.size = sizeof(struct totals),
	.json = totals_json,
	COLUMNS(totals_columns),
};
