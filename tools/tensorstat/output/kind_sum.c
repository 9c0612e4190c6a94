// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Columns and JSON of sums: by charged user, by process, by user, and over all buffers. */
#include "output/json.h"
#include "output/kinds.h"

/* ---- what the module charges to a user ---- */

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

/* ---- sums by process and by user ---- */

#define GROUP(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define G	  ((const struct holder *)row)

GROUP(group_owner)
{
	cell_owner(cell, &G->owner, o);
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

/* ---- JSON ---- */

static void payer_json(const void *row, const char *backend)
{
	const struct payer *p = row;

	json_string("backend", backend);
	json_u64("uid", p->uid);
	json_u64("bytes", p->bytes);
	json_u64("limit_bytes", p->limit_bytes);
	json_u64("refused", p->refused);
	json_u64("objects", p->objects);
}

static void group_json(const void *row, const char *backend)
{
	const struct holder *g = row;

	json_string("backend", backend);
	json_owner(&g->owner);
	json_u64("buffers", g->buffers);
	json_u64("bytes", g->bytes);
	json_u64("pinned_bytes", g->pinned_bytes);
	json_u64("shared", g->shared);
	json_u64("orphans", g->orphans);
}

void totals_json(const void *row, const char *backend)
{
	const struct totals *t = row;

	json_string("backend", backend);
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

static const struct row_type totals_rows = { "stat", sizeof(struct totals), NULL };

const struct kind payer_kind = {
	.name = "user",
	.rows = &payer_rows,
	.json = payer_json,
	COLUMNS(payer_columns),
};

const struct kind process_kind = {
	.name = "process",
	.rows = &holder_rows,
	.json = group_json,
	COLUMNS(process_columns),
};

const struct kind user_kind = {
	.name = "user",
	.rows = &holder_rows,
	.json = group_json,
	COLUMNS(user_columns),
};

const struct kind totals_kind = {
	.name = "stat",
	.rows = &totals_rows,
	.json = totals_json,
	COLUMNS(totals_columns),
};
