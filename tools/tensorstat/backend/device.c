// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rows from the module, over its generic netlink family. The row of a buffer names its maker; the
 * other owners are found by joining the dumps of handles and clients.
 */
#include "backend/backend.h"
#include "backend/netlink.h"

#include <errno.h>
#include <linux/tensor.h>
#include <linux/tensor_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copies an array of 64-bit numbers; returns its length. */
static uint32_t get_s64s(const struct nlattr *a, int64_t *to)
{
	int n = a ? nla_len(a) / 8 : 0;

	if (n > TENSOR_MAX_DIMS)
		n = TENSOR_MAX_DIMS;
	if (n)
		memcpy(to, nla_data(a), n * 8);
	return n;
}

/* Keeps the last answer: consecutive rows usually have the same maker. */
static bool has_ended(pid_t pid)
{
	static pid_t last;
	static bool ended;
	char path[32];

	if (pid == last)
		return ended;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	last = pid;
	ended = access(path, F_OK) < 0 && errno == ENOENT;
	return ended;
}

/* ---- buffers ---- */

static void take_descriptor(struct buffer *b, struct nlattr **a)
{
	get_text(a[TENSOR_A_BUF_LABEL], b->label, sizeof(b->label));
	b->element.bits = get_u32(a[TENSOR_A_BUF_BITS]);
	b->element.tag = get_u32(a[TENSOR_A_BUF_DTYPE]);
	b->offset = (int64_t)get_u64(a[TENSOR_A_BUF_OFFSET]);
	b->ndim = get_s64s(a[TENSOR_A_BUF_SIZES], b->sizes);
	get_s64s(a[TENSOR_A_BUF_STRIDES], b->strides);
}

static void take_counts(struct buffer *b, struct nlattr **a)
{
	b->handles = get_u32(a[TENSOR_A_BUF_HANDLES]);
	b->files = get_u32(a[TENSOR_A_BUF_FILES]);
	b->mappings = get_u32(a[TENSOR_A_BUF_MAPPINGS]);
	b->dmabufs = get_u32(a[TENSOR_A_BUF_DMABUFS]);
	b->attachments = get_u32(a[TENSOR_A_BUF_ATTACHMENTS]);
	b->refs = b->handles + b->files + b->mappings + b->dmabufs;
	/* An unshared buffer has at most one handle and one mapping, those of its maker. */
	b->shared = b->handles > 1 || b->mappings > 1 || b->files || b->dmabufs;
}

static void take_maker(struct buffer *b, struct nlattr **a)
{
	struct owner *o = owners_add(b);

	o->pid = (pid_t)get_u32(a[TENSOR_A_BUF_PID]);
	o->uid = get_u32(a[TENSOR_A_BUF_UID]);
	o->maker = true;
	get_text(a[TENSOR_A_BUF_COMM], o->comm, sizeof(o->comm));
	b->orphan = has_ended(o->pid);
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = { "alloc", "pin", "dmabuf", "memfd" };

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "?";
}

static int take_buffer(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_BUF_MAX + 1];
	struct buffer *b;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_BUF_MAX, NULL) < 0)
		return NL_SKIP;
	b = list_add(arg);
	b->id = get_u64(a[TENSOR_A_BUF_ID]);
	b->dev = get_u64(a[TENSOR_A_BUF_DEV]);
	b->bytes = get_u64(a[TENSOR_A_BUF_BYTES]);
	b->pinned_bytes = get_u64(a[TENSOR_A_BUF_PINNED_BYTES]);
	b->huge_bytes = (int64_t)get_u64(a[TENSOR_A_BUF_HUGE_BYTES]);
	b->node = a[TENSOR_A_BUF_NODE] ? (int32_t)get_u32(a[TENSOR_A_BUF_NODE]) : UNKNOWN;
	b->client = (int64_t)get_u64(a[TENSOR_A_BUF_CLIENT]);
	b->age_ns = (int64_t)get_u64(a[TENSOR_A_BUF_AGE_NS]);
	b->state = get_u32(a[TENSOR_A_BUF_STATE]);
	b->seals = get_u32(a[TENSOR_A_BUF_SEALS]);
	b->kind = kind_name(get_u32(a[TENSOR_A_BUF_KIND]));
	take_descriptor(b, a);
	take_counts(b, a);
	take_maker(b, a);
	return NL_OK;
}

/* ---- clients ---- */

static int take_client(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_CLIENT_MAX + 1];
	struct client *c;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_CLIENT_MAX, NULL) < 0)
		return NL_SKIP;
	c = list_add(arg);
	c->id = get_u64(a[TENSOR_A_CLIENT_ID]);
	c->handles = get_u32(a[TENSOR_A_CLIENT_HANDLES]);
	c->bytes = get_u64(a[TENSOR_A_CLIENT_BYTES]);
	c->age_ns = (int64_t)get_u64(a[TENSOR_A_CLIENT_AGE_NS]);
	c->owner.pid = (pid_t)get_u32(a[TENSOR_A_CLIENT_PID]);
	c->owner.uid = get_u32(a[TENSOR_A_CLIENT_UID]);
	c->owner.refs = UNKNOWN;
	get_text(a[TENSOR_A_CLIENT_COMM], c->owner.comm, sizeof(c->owner.comm));
	return NL_OK;
}

static enum status device_clients(struct list *list)
{
	return netlink_dump("clients", TENSOR_CMD_CLIENT_GET, take_client, list);
}

/* ---- handles ---- */

struct handle {
	uint64_t client, buf;
};

static const struct row_type handle_rows = { "handle", sizeof(struct handle), NULL };

static int take_handle(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_HANDLE_MAX + 1];
	struct handle *h;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_HANDLE_MAX, NULL) < 0)
		return NL_SKIP;
	h = list_add(arg);
	h->client = get_u64(a[TENSOR_A_HANDLE_CLIENT]);
	h->buf = get_u64(a[TENSOR_A_HANDLE_BUF]);
	return NL_OK;
}

static int by_id(const void *id, const void *row)
{
	uint64_t x = *(const uint64_t *)id, y;

	/* The id is the first member of struct buffer and struct client. */
	memcpy(&y, row, sizeof(y));
	return x < y ? -1 : x > y;
}

static void *find(const struct list *list, uint64_t id)
{
	return list->n ? bsearch(&id, list->row, list->n, list->type->size, by_id) : NULL;
}

static void add_holder(struct buffer *b, const struct client *c)
{
	struct owner *o;

	for (size_t i = 0; i < b->n_owners; i++)
		if (b->owners[i].pid == c->owner.pid) {
			b->owners[i].refs++;
			return;
		}
	o = owners_add(b);
	*o = c->owner;
	o->refs = 1;
}

/* Ignores handles whose buffer or client is missing: the dumps are taken at different times. */
static enum status add_holders(struct list *buffers)
{
	struct list clients = { .type = &client_rows }, handles = { .type = &handle_rows };
	enum status status = device_clients(&clients);

	if (!status)
		status = netlink_dump("handles", TENSOR_CMD_HANDLE_GET, take_handle, &handles);
	for (size_t i = 0; !status && i < handles.n; i++) {
		const struct handle *h = list_row(&handles, i);
		const struct client *c = find(&clients, h->client);
		struct buffer *b = find(buffers, h->buf);

		if (b && c)
			add_holder(b, c);
	}
	list_clear(&clients);
	list_clear(&handles);
	return status;
}

static enum status device_buffers(struct list *list)
{
	enum status status = netlink_dump("buffers", TENSOR_CMD_BUF_GET, take_buffer, list);

	return status ? status : add_holders(list);
}

/* ---- exported files ---- */

static int take_export(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_EXPORT_MAX + 1];
	struct export *e;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_EXPORT_MAX, NULL) < 0)
		return NL_SKIP;
	e = list_add(arg);
	e->id = get_u64(a[TENSOR_A_EXPORT_ID]);
	e->buffer = get_u64(a[TENSOR_A_EXPORT_BUF]);
	e->offset = get_u64(a[TENSOR_A_EXPORT_OFFSET]);
	e->bytes = get_u64(a[TENSOR_A_EXPORT_BYTES]);
	e->dmabuf = get_u32(a[TENSOR_A_EXPORT_KIND]) == TENSOR_EXPORT_KIND_DMABUF;
	e->part = get_u32(a[TENSOR_A_EXPORT_STATE]) & TENSOR_STATE_RANGE;
	e->rights = get_u32(a[TENSOR_A_EXPORT_RIGHTS]);
	e->age_ns = (int64_t)get_u64(a[TENSOR_A_EXPORT_AGE_NS]);
	e->owner.pid = (pid_t)get_u32(a[TENSOR_A_EXPORT_PID]);
	e->owner.uid = get_u32(a[TENSOR_A_EXPORT_UID]);
	get_text(a[TENSOR_A_EXPORT_COMM], e->owner.comm, sizeof(e->owner.comm));
	return NL_OK;
}

static enum status device_exports(struct list *list)
{
	return netlink_dump("exports", TENSOR_CMD_EXPORT_GET, take_export, list);
}

/* ---- users ---- */

static int take_payer(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_USER_MAX + 1];
	struct payer *p;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_USER_MAX, NULL) < 0)
		return NL_SKIP;
	p = list_add(arg);
	p->uid = get_u32(a[TENSOR_A_USER_UID]);
	p->bytes = get_u64(a[TENSOR_A_USER_BYTES]);
	p->limit_bytes = get_u64(a[TENSOR_A_USER_LIMIT_BYTES]);
	p->refused = get_u64(a[TENSOR_A_USER_REFUSED]);
	p->objects = get_u64(a[TENSOR_A_USER_OBJECTS]);
	return NL_OK;
}

static enum status device_payers(struct list *list)
{
	return netlink_dump("users", TENSOR_CMD_USER_GET, take_payer, list);
}

/* ---- totals ---- */

static void take_pool(struct totals *t, struct nlattr **a)
{
	t->pool_bytes = get_known(a[TENSOR_A_STAT_POOL_BYTES]);
	t->pool_limit_bytes = get_known(a[TENSOR_A_STAT_POOL_LIMIT_BYTES]);
	t->pool_hits = get_known(a[TENSOR_A_STAT_POOL_HITS]);
	t->pool_misses = get_known(a[TENSOR_A_STAT_POOL_MISSES]);
	t->pool_zeroed_bytes = get_known(a[TENSOR_A_STAT_POOL_ZEROED_BYTES]);
	t->pool_fetched_bytes = get_known(a[TENSOR_A_STAT_POOL_FETCHED_BYTES]);
	t->pool_reclaimed_bytes = get_known(a[TENSOR_A_STAT_POOL_RECLAIMED_BYTES]);
}

static int take_totals(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_STAT_MAX + 1];
	struct totals *t = arg;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_STAT_MAX, NULL) < 0)
		return NL_SKIP;
	t->clients = get_known(a[TENSOR_A_STAT_CLIENTS]);
	t->buffers = get_known(a[TENSOR_A_STAT_BUFS]);
	t->bytes = get_known(a[TENSOR_A_STAT_BYTES]);
	t->huge_bytes = get_known(a[TENSOR_A_STAT_HUGE_BYTES]);
	t->limit_bytes = get_known(a[TENSOR_A_STAT_LIMIT_BYTES]);
	t->refused = get_known(a[TENSOR_A_STAT_REFUSED]);
	t->used_bytes = get_known(a[TENSOR_A_STAT_USED_BYTES]);
	t->purgeable_bytes = get_known(a[TENSOR_A_STAT_PURGEABLE_BYTES]);
	t->linger_bytes = get_known(a[TENSOR_A_STAT_LINGER_BYTES]);
	t->files = get_known(a[TENSOR_A_STAT_FILES]);
	t->dmabufs = get_known(a[TENSOR_A_STAT_DMABUFS]);
	t->user_limit_bytes = get_known(a[TENSOR_A_STAT_USER_LIMIT_BYTES]);
	t->user_refused = get_known(a[TENSOR_A_STAT_USER_REFUSED]);
	take_pool(t, a);
	return NL_OK;
}

static enum status device_totals(struct totals *t)
{
	t->time_ms = now_ms();
	return netlink_ask("totals", TENSOR_CMD_STAT_GET, take_totals, t);
}

const struct backend device_backend = {
	.name = "device",
	.open = netlink_open,
	.buffers = device_buffers,
	.clients = device_clients,
	.exports = device_exports,
	.payers = device_payers,
	.totals = device_totals,
};
