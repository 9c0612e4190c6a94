// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * metrics: the numbers as OpenMetrics text. With --textfile it is made beside the file and renamed
 * over it, so that node_exporter's textfile collector never reads half of one.
 */
#include "tensorstat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void head(FILE *out, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(out, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

static void gauge(FILE *out, const char *name, const char *unit, const char *help, int64_t value)
{
	if (value == UNKNOWN)
		return;
	head(out, name, "gauge", unit, help);
	fprintf(out, "%s %" PRId64 "\n", name, value);
}

static void counter(FILE *out, const char *name, const char *help, int64_t value)
{
	if (value == UNKNOWN)
		return;
	head(out, name, "counter", NULL, help);
	fprintf(out, "%s_total %" PRId64 "\n", name, value);
}

/* ---- groups ---- */

struct sum {
	uint64_t buffers, bytes;
};

static void put_users(FILE *out, const struct list *buffers)
{
	struct list users = { .kind = &user_kind };

	group_by_user(buffers, &users);
	head(out, "tensor_user_buffers", "gauge", NULL, "Buffers that a user made.");
	for (size_t i = 0; i < users.n; i++) {
		const struct holder *g = list_row(&users, i);

		fprintf(out, "tensor_user_buffers{uid=\"%u\"} %" PRIu64 "\n", g->owner.uid,
			g->buffers);
	}
	head(out, "tensor_user_bytes", "gauge", "bytes", "Bytes of the buffers that a user made.");
	for (size_t i = 0; i < users.n; i++) {
		const struct holder *g = list_row(&users, i);

		fprintf(out, "tensor_user_bytes{uid=\"%u\"} %" PRIu64 "\n", g->owner.uid, g->bytes);
	}
	list_clear(&users);
}

static void put_dtypes(FILE *out, const struct list *buffers)
{
	enum { NONE = TENSOR_DTYPE_NONE, OTHER = TENSOR_DTYPE_COUNT, KINDS };
	struct sum sums[KINDS] = { 0 };
	char text[CELL];

	for (size_t i = 0; i < buffers->n; i++) {
		const struct buffer *b = list_row(buffers, i);

		sums[element_is_dtype(&b->element) ? b->element.tag :
		     b->element.bits		   ? OTHER :
						     NONE]
			.bytes += b->bytes;
	}
	head(out, "tensor_dtype_bytes", "gauge", "bytes",
	     "Bytes of the buffers by the type of their elements; none: without a descriptor.");
	for (uint32_t d = 0; d < KINDS; d++) {
		const struct element e = { .bits = dtype_bits(d), .tag = d };

		if (sums[d].bytes)
			fprintf(out, "tensor_dtype_bytes{dtype=\"%s\"} %" PRIu64 "\n",
				d == NONE  ? "none" :
				d == OTHER ? "other" :
					     element_name(text, sizeof(text), &e),
				sums[d].bytes);
	}
}

static void put_states(FILE *out, const struct list *buffers)
{
	struct sum shared = { 0 }, orphan = { 0 };

	for (size_t i = 0; i < buffers->n; i++) {
		const struct buffer *b = list_row(buffers, i);

		shared.buffers += b->shared;
		shared.bytes += b->shared ? b->bytes : 0;
		orphan.buffers += b->orphan;
		orphan.bytes += b->orphan ? b->bytes : 0;
	}
	gauge(out, "tensor_shared_buffers", NULL, "Buffers that more than their maker has.",
	      (int64_t)shared.buffers);
	gauge(out, "tensor_shared_bytes", "bytes", "Bytes of these.", (int64_t)shared.bytes);
	gauge(out, "tensor_orphan_buffers", NULL, "Buffers whose maker has ended.",
	      (int64_t)orphan.buffers);
	gauge(out, "tensor_orphan_bytes", "bytes", "Bytes of these.", (int64_t)orphan.bytes);
}

/* ---- all ---- */

static void put_totals(FILE *out, const struct totals *t, const struct backend *b)
{
	/* Not of type info: the collector's parser knows the older types only. */
	head(out, "tensor_up", "gauge", NULL,
	     "Where the numbers come from, and what counted them.");
	fprintf(out, "tensor_up{backend=\"%s\",version=\"%s\"} 1\n", b->name, TENSOR_RELEASE);
	gauge(out, "tensor_clients", NULL, "Open /dev/tensor.", t->clients);
	gauge(out, "tensor_buffers", NULL, "Buffers.", t->buffers);
	gauge(out, "tensor_buffer_bytes", "bytes", "Bytes of all buffers.", t->bytes);
	gauge(out, "tensor_huge_bytes", "bytes", "Of these, in chunks of huge page size.",
	      t->huge_bytes);
	gauge(out, "tensor_limit_bytes", "bytes", "Most bytes that all buffers may have.",
	      t->limit_bytes);
	gauge(out, "tensor_used_bytes", "bytes", "Bytes charged to the limit.", t->used_bytes);
	gauge(out, "tensor_purgeable_bytes", "bytes", "Of these, purgeable.", t->purgeable_bytes);
	gauge(out, "tensor_linger_bytes", "bytes",
	      "Bytes charged to the limit whose buffer is gone and that something still refers to.",
	      t->linger_bytes);
	gauge(out, "tensor_exported_files", NULL, "Buffer fds that are open.", t->files);
	gauge(out, "tensor_dmabufs", NULL, "Dma-bufs made of buffers.", t->dmabufs);
	gauge(out, "tensor_user_limit_bytes", "bytes", "Most bytes that one user may have.",
	      t->user_limit_bytes);
	gauge(out, "tensor_pool_bytes", "bytes", "Bytes that wait for reuse.", t->pool_bytes);
	gauge(out, "tensor_pool_limit_bytes", "bytes", "Most bytes that may.", t->pool_limit_bytes);
	counter(out, "tensor_refused", "Allocations that met a limit.", t->refused);
	counter(out, "tensor_user_refused", "Of these, those that met that of their user.",
		t->user_refused);
	counter(out, "tensor_pool_hits", "Chunks that came from the pool.", t->pool_hits);
	counter(out, "tensor_pool_misses", "Chunks that might have.", t->pool_misses);
}

static enum status put_all(FILE *out, const struct backend *b)
{
	struct list buffers = { .kind = &buffer_kind };
	struct totals t = { 0 };
	enum status status = b->totals(&t);

	if (!status)
		status = b->buffers(&buffers);
	if (!status) {
		put_totals(out, &t, b);
		put_states(out, &buffers);
		put_users(out, &buffers);
		put_dtypes(out, &buffers);
		fputs("# EOF\n", out);
	}
	list_clear(&buffers);
	return status;
}

static enum status file_failed(const char *path)
{
	enum status status = errno == EACCES || errno == EPERM ? STATUS_PERMISSION : STATUS_ERROR;

	complain("%s: %s", path, strerror(errno));
	return status;
}

static enum status put_file(const char *path, const struct backend *b)
{
	char *temporary;
	enum status status;
	FILE *out;
	int fd;

	/* Beside it, and not named *.prom, so that the collector leaves it alone. */
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return STATUS_ERROR;
	fd = mkstemp(temporary);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		status = file_failed(temporary);
		free(temporary);
		return status;
	}
	status = put_all(out, b);
	/* The collector is another user. */
	if (!status && (fchmod(fd, 0644) < 0 || fflush(out) == EOF || fsync(fd) < 0))
		status = file_failed(temporary);
	if (fclose(out) == EOF && !status)
		status = file_failed(temporary);
	if (!status && rename(temporary, path) < 0)
		status = file_failed(path);
	if (status)
		unlink(temporary);
	free(temporary);
	return status;
}

enum status cmd_metrics(char **arg, const struct options *o)
{
	const struct backend *b;
	enum status status;

	if (*arg)
		return bad("what is", *arg);
	status = choose_backend(o->backend, &b);
	if (status)
		return status;
	return o->textfile ? put_file(o->textfile, b) : put_all(stdout, b);
}
