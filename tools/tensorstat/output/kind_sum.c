// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Columns and JSON of sums: by charged user, by process, by user, and over all buffers. */
#include "output/json.h"
#include "output/kinds.h"

/* ---- memory charged to a user ---- */

#define PAYER(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define P	  ((const struct payer *)row)

static const struct column payer_columns[] = {
	COLUMN_NUMBER("uid", true, struct payer, uid),
	COLUMN_SIZE("size", true, struct payer, bytes),
	COLUMN_SIZE("limit", true, struct payer, limit_bytes),
	COLUMN_NUMBER("refused", true, struct payer, refused),
	COLUMN_NUMBER("objects", true, struct payer, objects),
};

/* ---- sums by process and by user ---- */

#define GROUP(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define G	  ((const struct holder *)row)

GROUP(group_orphans)
{
	cell_number(cell, (int64_t)G->orphans);
	if (G->orphans)
		cell->tone = TONE_WARN;
}

/* Users have all but the first. */
static const struct column group_columns[] = {
	COLUMN_OWNER("owner", true, struct holder, owner),
	COLUMN_NUMBER("uid", true, struct holder, owner.uid),
	COLUMN_NUMBER("buffers", true, struct holder, buffers),
	COLUMN_SIZE("size", true, struct holder, bytes),
	COLUMN_SIZE("pinned", true, struct holder, pinned_bytes),
	COLUMN_NUMBER("shared", true, struct holder, shared),
	{ "orphans", true, true, .put = group_orphans },
};

/* ---- totals ---- */

#define TOTALS(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define T	   ((const struct totals *)row)

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

TOTALS(totals_exports)
{
	cell_number(cell, T->files == UNKNOWN ? UNKNOWN : T->files + T->dmabufs);
}

static const struct column totals_columns[] = {
	COLUMN_NUMBER("clients", true, struct totals, clients),
	COLUMN_NUMBER("buffers", true, struct totals, buffers),
	COLUMN_SIZE("size", true, struct totals, bytes),
	COLUMN_SIZE("huge", true, struct totals, huge_bytes),
	COLUMN_SIZE("limit", true, struct totals, limit_bytes),
	{ "used", true, true, .put = totals_used },
	COLUMN_NUMBER("refused", true, struct totals, refused),
	{ "exports", false, true, .put = totals_exports },
	COLUMN_SIZE("purgeable", false, struct totals, purgeable_bytes),
	COLUMN_SIZE("pool", false, struct totals, pool_bytes),
	COLUMN_SIZE("lingering", false, struct totals, linger_bytes),
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

const struct kind payer_kind = { "user", &payer_rows, COLUMNS(payer_columns), payer_json };

const struct kind process_kind = { "process", &holder_rows, COLUMNS(group_columns), group_json };

const struct kind user_kind = { "user", &holder_rows, group_columns + 1,
				sizeof(group_columns) / sizeof(*group_columns) - 1, group_json };

const struct kind totals_kind = { "stat", &totals_rows, COLUMNS(totals_columns), totals_json };
