// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* What rows say in the columns of a table. A column has one function; a kind has a list of them. */
#include "tensorstat.h"

#include <inttypes.h>
#include <linux/tensor.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ------------------------------------------------------------------------------------ */

void put_size(char *text, size_t room, uint64_t bytes, const struct options *o)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
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

static void by(struct cell *cell, uint64_t key)
{
	cell->key = key;
	cell->by_key = true;
}

static void text(struct cell *cell, const char *value)
{
	snprintf(cell->text, CELL, "%s", *value ? value : "-");
}

static void number(struct cell *cell, int64_t value)
{
	if (value == UNKNOWN)
		text(cell, "-");
	else
		snprintf(cell->text, CELL, "%" PRId64, value);
	by(cell, value == UNKNOWN ? 0 : (uint64_t)value);
}

static void size(struct cell *cell, int64_t bytes, const struct options *o)
{
	if (bytes == UNKNOWN)
		text(cell, "-");
	else
		put_size(cell->text, CELL, (uint64_t)bytes, o);
	by(cell, bytes == UNKNOWN ? 0 : (uint64_t)bytes);
}

static void age(struct cell *cell, int64_t ns)
{
	int64_t s = ns / 1000000000;

	by(cell, ns == UNKNOWN ? 0 : (uint64_t)ns);
	if (ns == UNKNOWN)
		text(cell, "-");
	else if (s < 60)
		snprintf(cell->text, CELL, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(cell->text, CELL, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(cell->text, CELL, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(cell->text, CELL, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}

static size_t put_owner(char *to, size_t room, const struct owner *w, const struct options *o)
{
	int n = o->numeric || !*w->comm ? snprintf(to, room, "%d", w->pid) :
					  snprintf(to, room, "%d/%s", w->pid, w->comm);

	return (size_t)n < room ? (size_t)n : room - 1;
}

static void dims(struct cell *cell, const struct buffer *b, const int64_t *value)
{
	size_t at = 0;

	if (!b->dtype) {
		text(cell, "-");
		return;
	}
	at += snprintf(cell->text, CELL, "[");
	for (uint32_t i = 0; i < b->ndim && at < CELL; i++)
		at += snprintf(cell->text + at, CELL - at, "%s%" PRId64, i ? "," : "", value[i]);
	if (at < CELL)
		snprintf(cell->text + at, CELL - at, "]");
}

/* ---- buffers -------------------------------------------------------------------------------------- */

#define BUFFER(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define B	   ((const struct buffer *)row)

BUFFER(buffer_id)
{
	snprintf(cell->text, CELL, "%" PRIu64, B->id);
	by(cell, B->id);
}

BUFFER(buffer_name)
{
	text(cell, B->label);
}

BUFFER(buffer_dtype)
{
	text(cell, dtype_name(B->dtype));
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
	size(cell, (int64_t)B->bytes, o);
}

BUFFER(buffer_pinned)
{
	size(cell, (int64_t)B->pinned_bytes, o);
}

BUFFER(buffer_huge)
{
	size(cell, B->huge_bytes, o);
}

BUFFER(buffer_refs)
{
	number(cell, (int64_t)B->refs);
}

BUFFER(buffer_handles)
{
	number(cell, B->handles);
}

BUFFER(buffer_files)
{
	number(cell, B->files);
}

BUFFER(buffer_mappings)
{
	number(cell, B->mappings);
}

BUFFER(buffer_dmabufs)
{
	number(cell, B->dmabufs);
}

BUFFER(buffer_devices)
{
	number(cell, B->attachments);
}

BUFFER(buffer_client)
{
	number(cell, B->client);
}

BUFFER(buffer_node)
{
	number(cell, B->node);
}

BUFFER(buffer_kind_of)
{
	text(cell, B->kind);
}

BUFFER(buffer_age)
{
	age(cell, B->age_ns);
}

BUFFER(buffer_uid)
{
	number(cell, B->n_owners ? (int64_t)B->owners[0].uid : UNKNOWN);
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
		text(cell, "-");
	by(cell, B->n_owners ? (uint64_t)B->owners[0].pid : 0);
}

BUFFER(buffer_state_of)
{
	const struct {
		bool on;
		const char *word;
	} words[] = {
		{B->seals & TENSOR_SEAL_WRITE, "readonly"},
		{B->orphan, "orphan"},
		{B->state & TENSOR_STATE_REVOKED, "revoked"},
		{B->state & TENSOR_STATE_PURGED, "purged"},
		{B->state & TENSOR_STATE_PURGEABLE && !(B->state & TENSOR_STATE_PURGED),
		 "purgeable"},
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
	{"id", true, true, buffer_id},
	{"name", true, false, buffer_name},
	{"dtype", true, false, buffer_dtype},
	{"shape", true, false, buffer_shape},
	{"size", true, true, buffer_size},
	{"pinned", true, true, buffer_pinned},
	{"refs", true, true, buffer_refs},
	{"owner", true, false, buffer_owner},
	{"state", true, false, buffer_state_of},
	{"uid", false, true, buffer_uid},
	{"kind", false, false, buffer_kind_of},
	{"strides", false, false, buffer_strides},
	{"huge", false, true, buffer_huge},
	{"node", false, true, buffer_node},
	{"handles", false, true, buffer_handles},
	{"files", false, true, buffer_files},
	{"mappings", false, true, buffer_mappings},
	{"dmabufs", false, true, buffer_dmabufs},
	{"devices", false, true, buffer_devices},
	{"client", false, true, buffer_client},
	{"age", false, true, buffer_age},
};

static void buffer_clear(void *row)
{
	free(((struct buffer *)row)->owners);
}

/* ---- clients --------------------------------------------------------------------------------------- */

#define CLIENT(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define C	   ((const struct client *)row)

CLIENT(client_id)
{
	number(cell, (int64_t)C->id);
}

CLIENT(client_owner)
{
	put_owner(cell->text, CELL, &C->owner, o);
	by(cell, (uint64_t)C->owner.pid);
}

CLIENT(client_uid)
{
	number(cell, C->owner.uid);
}

CLIENT(client_handles)
{
	number(cell, (int64_t)C->handles);
}

CLIENT(client_size)
{
	size(cell, (int64_t)C->bytes, o);
}

CLIENT(client_age)
{
	age(cell, C->age_ns);
}

static const struct column client_columns[] = {
	{"id", true, true, client_id},	       {"owner", true, false, client_owner},
	{"uid", true, true, client_uid},       {"handles", true, true, client_handles},
	{"size", true, true, client_size},     {"age", true, true, client_age},
};

/* ---- processes and users --------------------------------------------------------------------------- */

#define GROUP(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define G	  ((const struct holder *)row)

GROUP(group_owner)
{
	put_owner(cell->text, CELL, &G->owner, o);
	by(cell, (uint64_t)G->owner.pid);
}

GROUP(group_uid)
{
	number(cell, G->owner.uid);
}

GROUP(group_buffers)
{
	number(cell, (int64_t)G->buffers);
}

GROUP(group_size)
{
	size(cell, (int64_t)G->bytes, o);
}

GROUP(group_pinned)
{
	size(cell, (int64_t)G->pinned_bytes, o);
}

GROUP(group_shared)
{
	number(cell, (int64_t)G->shared);
}

GROUP(group_orphans)
{
	number(cell, (int64_t)G->orphans);
	if (G->orphans)
		cell->tone = TONE_WARN;
}

static const struct column process_columns[] = {
	{"owner", true, false, group_owner}, {"uid", true, true, group_uid},
	{"buffers", true, true, group_buffers}, {"size", true, true, group_size},
	{"pinned", true, true, group_pinned}, {"shared", true, true, group_shared},
	{"orphans", true, true, group_orphans},
};

static const struct column user_columns[] = {
	{"uid", true, true, group_uid},	      {"buffers", true, true, group_buffers},
	{"size", true, true, group_size},     {"pinned", true, true, group_pinned},
	{"shared", true, true, group_shared}, {"orphans", true, true, group_orphans},
};

/* ---- totals ------------------------------------------------------------------------------------------ */

#define TOTALS(fn) static void fn(struct cell *cell, const void *row, const struct options *o)
#define T	   ((const struct totals *)row)

TOTALS(totals_clients)
{
	number(cell, T->clients);
}

TOTALS(totals_buffers)
{
	number(cell, T->buffers);
}

TOTALS(totals_size)
{
	size(cell, T->bytes, o);
}

TOTALS(totals_huge)
{
	size(cell, T->huge_bytes, o);
}

TOTALS(totals_limit)
{
	size(cell, T->limit_bytes, o);
}

TOTALS(totals_used)
{
	double part;

	if (T->limit_bytes <= 0) {
		text(cell, "-");
		return;
	}
	part = 100.0 * (double)T->bytes / (double)T->limit_bytes;
	snprintf(cell->text, CELL, "%.1f%%", part);
	if (part >= 90)
		cell->tone = part >= 98 ? TONE_BAD : TONE_WARN;
}

TOTALS(totals_refused)
{
	number(cell, T->refused);
}

static const struct column totals_columns[] = {
	{"clients", true, true, totals_clients}, {"buffers", true, true, totals_buffers},
	{"size", true, true, totals_size},	 {"huge", true, true, totals_huge},
	{"limit", true, true, totals_limit},	 {"used", true, true, totals_used},
	{"refused", true, true, totals_refused},
};

/* ---- kinds ------------------------------------------------------------------------------------------- */

#define COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof(*(list))

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
