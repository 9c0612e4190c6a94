// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * metrics: totals as OpenMetrics text. Names begin with tensor_ for the buffers of the module and
 * with tensor_memfd_ for memfds, whose samples also have the label backend="memfd": the two are
 * different things and their sum has no meaning on a dashboard. With --textfile a temporary file is
 * renamed over the target, so that node_exporter's textfile collector never reads a partial file.
 */
#include "args.h"
#include "backend/backend.h"
#include "commands/commands.h"
#include "output/cell.h"
#include "output/file.h"

#include <inttypes.h>

struct metrics {
	FILE *out;
	const char *prefix;
	const char *label; /* of each sample, with its value; or NULL */
	bool memfd;
};

static void put_head(const struct metrics *m, const char *name, const char *type, const char *unit,
		     const char *help)
{
	fprintf(m->out, "# TYPE %s%s %s\n", m->prefix, name, type);
	if (unit)
		fprintf(m->out, "# UNIT %s%s %s\n", m->prefix, name, unit);
	fprintf(m->out, "# HELP %s%s %s\n", m->prefix, name, help);
}

/* One sample; key and value are a label, or NULL. */
static void put_sample(const struct metrics *m, const char *name, const char *suffix,
		       const char *key, const char *value, int64_t number)
{
	fprintf(m->out, "%s%s%s", m->prefix, name, suffix);
	if (m->label || key)
		fprintf(m->out, "{%s%s", m->label ? m->label : "", m->label && key ? "," : "");
	if (key)
		fprintf(m->out, "%s=\"%s\"", key, value);
	fprintf(m->out, "%s %" PRId64 "\n", m->label || key ? "}" : "", number);
}

/* These two write nothing if the value is UNKNOWN. */
static void put_gauge(const struct metrics *m, const char *name, const char *unit, const char *help,
		      int64_t value)
{
	if (value == UNKNOWN)
		return;
	put_head(m, name, "gauge", unit, help);
	put_sample(m, name, "", NULL, NULL, value);
}

static void put_counter(const struct metrics *m, const char *name, const char *help, int64_t value)
{
	if (value == UNKNOWN)
		return;
	put_head(m, name, "counter", NULL, help);
	put_sample(m, name, "_total", NULL, NULL, value);
}

/* ---- sums over buffers ---- */

struct sum {
	uint64_t buffers, bytes;
};

static void put_users(const struct metrics *m, const struct list *buffers)
{
	struct list users = { .type = &holder_rows };
	char uid[16];

	group_by_user(buffers, &users);
	put_head(m, "user_buffers", "gauge", NULL,
		 m->memfd ? "Memfd buffers by the user of the first process that holds them." :
			    "Buffers by the user that made them.");
	for (size_t i = 0; i < users.n; i++) {
		const struct holder *g = list_row(&users, i);

		snprintf(uid, sizeof(uid), "%u", g->owner.uid);
		put_sample(m, "user_buffers", "", "uid", uid, (int64_t)g->buffers);
	}
	put_head(m, "user_bytes", "gauge", "bytes", "Bytes of these buffers.");
	for (size_t i = 0; i < users.n; i++) {
		const struct holder *g = list_row(&users, i);

		snprintf(uid, sizeof(uid), "%u", g->owner.uid);
		put_sample(m, "user_bytes", "", "uid", uid, (int64_t)g->bytes);
	}
	list_clear(&users);
}

static void put_dtypes(const struct metrics *m, const struct list *buffers)
{
	enum { NONE = TENSOR_DTYPE_NONE, OTHER = TENSOR_DTYPE_COUNT, GROUPS };
	struct sum sums[GROUPS] = { 0 };
	char text[CELL];

	for (size_t i = 0; i < buffers->n; i++) {
		const struct buffer *b = list_row(buffers, i);

		sums[element_is_dtype(&b->element) ? b->element.tag :
		     b->element.bits		   ? OTHER :
						     NONE]
			.bytes += b->bytes;
	}
	put_head(m, "dtype_bytes", "gauge", "bytes",
		 "Bytes of buffers by element type; none: no descriptor was set.");
	for (uint32_t d = 0; d < GROUPS; d++) {
		const struct element e = { .bits = dtype_bits(d), .tag = d };

		if (sums[d].bytes)
			put_sample(m, "dtype_bytes", "", "dtype",
				   d == NONE  ? "none" :
				   d == OTHER ? "other" :
						element_name(text, sizeof(text), &e),
				   (int64_t)sums[d].bytes);
	}
}

static void put_states(const struct metrics *m, const struct list *buffers)
{
	struct sum shared = { 0 }, orphan = { 0 };

	for (size_t i = 0; i < buffers->n; i++) {
		const struct buffer *b = list_row(buffers, i);

		shared.buffers += b->shared;
		shared.bytes += b->shared ? b->bytes : 0;
		orphan.buffers += b->orphan;
		orphan.bytes += b->orphan ? b->bytes : 0;
	}
	put_gauge(m, "shared_buffers", NULL,
		  m->memfd ? "Memfd buffers that more than one process holds." :
			     "Buffers that others than their maker also hold.",
		  (int64_t)shared.buffers);
	put_gauge(m, "shared_bytes", "bytes", "Bytes of shared buffers.", (int64_t)shared.bytes);
	/* The maker of a memfd is not known, so no memfd is counted as an orphan. */
	if (m->memfd)
		return;
	put_gauge(m, "orphan_buffers", NULL, "Buffers whose maker has ended.",
		  (int64_t)orphan.buffers);
	put_gauge(m, "orphan_bytes", "bytes", "Bytes of orphaned buffers.", (int64_t)orphan.bytes);
}

/* ---- totals ---- */

static void put_module(const struct metrics *m, const struct totals *t)
{
	put_gauge(m, "clients", NULL, "Open files of /dev/tensor.", t->clients);
	put_gauge(m, "buffers", NULL, "Buffers of the module.", t->buffers);
	put_gauge(m, "buffer_bytes", "bytes", "Bytes of all buffers.", t->bytes);
	put_gauge(m, "huge_bytes", "bytes", "Bytes of buffers in chunks of huge page size.",
		  t->huge_bytes);
	put_gauge(m, "limit_bytes", "bytes", "Limit of the bytes of all buffers.", t->limit_bytes);
	put_gauge(m, "used_bytes", "bytes", "Bytes charged to the limit.", t->used_bytes);
	put_gauge(m, "purgeable_bytes", "bytes", "Charged bytes that are purgeable.",
		  t->purgeable_bytes);
	put_gauge(m, "linger_bytes", "bytes",
		  "Charged bytes of freed buffers whose pages are still referenced.",
		  t->linger_bytes);
	put_gauge(m, "exported_files", NULL, "Open buffer file descriptors.", t->files);
	put_gauge(m, "dmabufs", NULL, "Dma-bufs made of buffers.", t->dmabufs);
	put_gauge(m, "user_limit_bytes", "bytes", "Limit of the bytes of one user.",
		  t->user_limit_bytes);
	put_gauge(m, "pool_bytes", "bytes", "Free bytes kept for reuse.", t->pool_bytes);
	put_gauge(m, "pool_limit_bytes", "bytes", "Limit of the free bytes kept for reuse.",
		  t->pool_limit_bytes);
	put_counter(m, "refused", "Allocations refused because of a limit.", t->refused);
	put_counter(m, "user_refused", "Allocations refused because of a user's limit.",
		    t->user_refused);
	put_counter(m, "pool_hits", "Chunks taken from the pool.", t->pool_hits);
	put_counter(m, "pool_misses", "Chunks for which the pool was empty.", t->pool_misses);
}

static void put_memfds(const struct metrics *m, const struct totals *t)
{
	put_gauge(m, "processes", NULL, "Processes that hold memfd buffers.", t->clients);
	put_gauge(m, "buffers", NULL, "Memfd buffers of visible processes.", t->buffers);
	put_gauge(m, "buffer_bytes", "bytes", "Bytes of these memfd buffers.", t->bytes);
}

static void put_totals(const struct metrics *m, const struct totals *t, const char *backend)
{
	/* A gauge, since the collector's parser does not know the type info. */
	put_head(m, "up", "gauge", NULL,
		 m->memfd ? "Source of the numbers: memfds in /proc, without the module." :
			    "Source of the numbers: the module.");
	fprintf(m->out, "%sup{backend=\"%s\",version=\"%s\"} 1\n", m->prefix, backend,
		TENSOR_RELEASE);
	if (m->memfd)
		put_memfds(m, t);
	else
		put_module(m, t);
}

static enum status put_metrics(FILE *out, const void *arg)
{
	const struct backend *b = arg;
	const struct metrics m = b == &memfd_backend ?
					 (struct metrics){
						 .out = out,
						 .prefix = "tensor_memfd_",
						 .label = "backend=\"memfd\"",
						 .memfd = true,
					 } :
					 (struct metrics){ .out = out, .prefix = "tensor_" };
	struct list buffers = { .type = &buffer_rows };
	struct totals t = { 0 };
	enum status status = b->totals(&t);

	if (!status)
		status = b->buffers(&buffers);
	if (!status) {
		put_totals(&m, &t, b->name);
		put_states(&m, &buffers);
		put_users(&m, &buffers);
		put_dtypes(&m, &buffers);
		fputs("# EOF\n", out);
	}
	list_clear(&buffers);
	return status;
}

enum status cmd_metrics(char **arg, const struct options *o)
{
	const struct backend *b;
	enum status status;

	if (*arg)
		return usage_error("unexpected argument", *arg);
	status = choose_backend(o->backend, &b);
	if (status)
		return status;
	return o->textfile ? file_replace(o->textfile, put_metrics, b) : put_metrics(stdout, b);
}
