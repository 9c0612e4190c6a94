/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the netlink tests: a socket, dumps as a table of rows, and single requests with their
 * errors.
 */
#ifndef TENSOR_KSELFTEST_FAMILY_H
#define TENSOR_KSELFTEST_FAMILY_H

#include <grp.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include <linux/tensor_netlink.h>

#include "device.h"

#define ROWS 8192

struct row {
	uint64_t id;
	uint64_t client;
	uint64_t buf;
	uint64_t bytes;
	uint64_t offset;
	uint64_t limit;
	uint64_t refused;
	uint64_t objects;
	uint32_t uid;
	uint32_t pid;
	uint32_t handles;
	uint32_t files;
	uint32_t mappings;
	uint32_t dtype;
	uint32_t bits;
	uint32_t rights;
	uint32_t state;
	uint32_t seals;
	uint32_t kind;
	uint32_t dmabufs;
	char label[TENSOR_UAPI_LABEL];
};

struct table {
	int cmd;
	int count;
	bool ascending;
	bool interrupted;
	struct row row[ROWS];
};

struct totals {
	uint64_t clients, bufs, bytes, limit, refused;
	uint64_t used, purgeable, files, dmabufs, user_limit, user_refused;
	uint64_t pool_bytes, pool_limit, pool_hits, pool_misses, linger;
};

static struct table table;

HELPER struct nl_sock *nl_open(int *family)
{
	struct nl_sock *sock = nl_socket_alloc();

	if (genl_connect(sock) < 0)
		return NULL;
	*family = genl_ctrl_resolve(sock, TENSOR_GENL_NAME);
	return sock;
}

HELPER uint32_t get32(struct nlattr *attr)
{
	return attr ? nla_get_u32(attr) : UINT32_MAX;
}

HELPER uint64_t get64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : UINT64_MAX;
}

HELPER void parse_buf(struct nlattr **a, struct row *row)
{
	row->id = get64(a[TENSOR_A_BUF_ID]);
	row->client = get64(a[TENSOR_A_BUF_CLIENT]);
	row->bytes = get64(a[TENSOR_A_BUF_BYTES]);
	row->uid = get32(a[TENSOR_A_BUF_UID]);
	row->pid = get32(a[TENSOR_A_BUF_PID]);
	row->handles = get32(a[TENSOR_A_BUF_HANDLES]);
	row->files = get32(a[TENSOR_A_BUF_FILES]);
	row->mappings = get32(a[TENSOR_A_BUF_MAPPINGS]);
	row->dtype = get32(a[TENSOR_A_BUF_DTYPE]);
	row->bits = get32(a[TENSOR_A_BUF_BITS]);
	row->state = get32(a[TENSOR_A_BUF_STATE]);
	row->seals = get32(a[TENSOR_A_BUF_SEALS]);
	row->kind = get32(a[TENSOR_A_BUF_KIND]);
	row->dmabufs = get32(a[TENSOR_A_BUF_DMABUFS]);
	if (a[TENSOR_A_BUF_LABEL])
		nla_strlcpy(row->label, a[TENSOR_A_BUF_LABEL], sizeof(row->label));
}

HELPER void parse_client(struct nlattr **a, struct row *row)
{
	row->id = get64(a[TENSOR_A_CLIENT_ID]);
	row->bytes = get64(a[TENSOR_A_CLIENT_BYTES]);
	row->uid = get32(a[TENSOR_A_CLIENT_UID]);
	row->pid = get32(a[TENSOR_A_CLIENT_PID]);
	row->handles = get32(a[TENSOR_A_CLIENT_HANDLES]);
}

HELPER void parse_handle(struct nlattr **a, struct row *row)
{
	row->client = get64(a[TENSOR_A_HANDLE_CLIENT]);
	row->buf = get64(a[TENSOR_A_HANDLE_BUF]);
	row->state = get32(a[TENSOR_A_HANDLE_STATE]);
	row->rights = get32(a[TENSOR_A_HANDLE_RIGHTS]);
	/* combined, so that it grows over all rows of the dump */
	row->id = row->client << 32 | get32(a[TENSOR_A_HANDLE_ID]);
}

HELPER void parse_export(struct nlattr **a, struct row *row)
{
	row->id = get64(a[TENSOR_A_EXPORT_ID]);
	row->buf = get64(a[TENSOR_A_EXPORT_BUF]);
	row->bytes = get64(a[TENSOR_A_EXPORT_BYTES]);
	row->offset = get64(a[TENSOR_A_EXPORT_OFFSET]);
	row->kind = get32(a[TENSOR_A_EXPORT_KIND]);
	row->state = get32(a[TENSOR_A_EXPORT_STATE]);
	row->pid = get32(a[TENSOR_A_EXPORT_PID]);
	row->uid = get32(a[TENSOR_A_EXPORT_UID]);
	row->rights = get32(a[TENSOR_A_EXPORT_RIGHTS]);
}

HELPER void parse_user(struct nlattr **a, struct row *row)
{
	row->uid = get32(a[TENSOR_A_USER_UID]);
	row->bytes = get64(a[TENSOR_A_USER_BYTES]);
	row->limit = get64(a[TENSOR_A_USER_LIMIT_BYTES]);
	row->refused = get64(a[TENSOR_A_USER_REFUSED]);
	row->objects = get64(a[TENSOR_A_USER_OBJECTS]);
	row->id = row->uid + 1ULL;
}

HELPER void parse_row(int cmd, struct nlattr **a, struct row *row)
{
	switch (cmd) {
	case TENSOR_CMD_BUF_GET:
		parse_buf(a, row);
		break;
	case TENSOR_CMD_CLIENT_GET:
		parse_client(a, row);
		break;
	case TENSOR_CMD_HANDLE_GET:
		parse_handle(a, row);
		break;
	case TENSOR_CMD_EXPORT_GET:
		parse_export(a, row);
		break;
	case TENSOR_CMD_USER_GET:
		parse_user(a, row);
		break;
	}
}

/* Dumps are sorted by id; the dump of exports by buffer, and by id within a buffer. */
HELPER bool row_follows(int cmd, const struct row *row, const struct row *before)
{
	if (cmd == TENSOR_CMD_EXPORT_GET && row->buf != before->buf)
		return row->buf > before->buf;
	return row->id > before->id;
}

HELPER int on_row(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_BUF_MAX + 1];
	struct table *t = arg;
	struct row *row = &t->row[t->count];

	if (t->count == ROWS || genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_BUF_MAX, NULL) < 0)
		return NL_SKIP;
	if (nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP_INTR)
		t->interrupted = true;
	memset(row, 0, sizeof(*row));
	parse_row(t->cmd, a, row);
	if (t->count && !row_follows(t->cmd, row, row - 1))
		t->ascending = false;
	t->count++;
	return NL_OK;
}

/* A request with one attribute, or none if @attr is 0. */
HELPER struct nl_msg *request(int family, int flags, int cmd, int attr, const void *value, int len)
{
	struct nl_msg *msg = nlmsg_alloc();

	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, flags, cmd, TENSOR_GENL_VERSION);
	if (attr)
		nla_put(msg, attr, len, value);
	return msg;
}

/* Fills the table by a dump, filtered if @attr is not 0: 0 or a negative libnl error. */
HELPER int dump_filtered(struct nl_sock *sock, int family, int cmd, int attr, const void *value,
			 int len)
{
	struct nl_msg *msg = request(family, NLM_F_DUMP, cmd, attr, value, len);
	int err;

	table.cmd = cmd;
	table.count = 0;
	table.ascending = true;
	table.interrupted = false;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_row, &table);
	err = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	return err < 0 ? err : nl_recvmsgs_default(sock);
}

HELPER int dump(struct nl_sock *sock, int family, int cmd)
{
	return dump_filtered(sock, family, cmd, 0, NULL, 0);
}

HELPER int on_totals(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_STAT_MAX + 1];
	struct totals *t = arg;

	genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_STAT_MAX, NULL);
	t->clients = get64(a[TENSOR_A_STAT_CLIENTS]);
	t->bufs = get64(a[TENSOR_A_STAT_BUFS]);
	t->bytes = get64(a[TENSOR_A_STAT_BYTES]);
	t->limit = get64(a[TENSOR_A_STAT_LIMIT_BYTES]);
	t->refused = get64(a[TENSOR_A_STAT_REFUSED]);
	t->used = get64(a[TENSOR_A_STAT_USED_BYTES]);
	t->purgeable = get64(a[TENSOR_A_STAT_PURGEABLE_BYTES]);
	t->files = get64(a[TENSOR_A_STAT_FILES]);
	t->dmabufs = get64(a[TENSOR_A_STAT_DMABUFS]);
	t->user_limit = get64(a[TENSOR_A_STAT_USER_LIMIT_BYTES]);
	t->user_refused = get64(a[TENSOR_A_STAT_USER_REFUSED]);
	t->pool_bytes = get64(a[TENSOR_A_STAT_POOL_BYTES]);
	t->pool_limit = get64(a[TENSOR_A_STAT_POOL_LIMIT_BYTES]);
	t->pool_hits = get64(a[TENSOR_A_STAT_POOL_HITS]);
	t->pool_misses = get64(a[TENSOR_A_STAT_POOL_MISSES]);
	t->linger = get64(a[TENSOR_A_STAT_LINGER_BYTES]);
	return NL_OK;
}

HELPER int totals(struct nl_sock *sock, int family, struct totals *t)
{
	int err;

	memset(t, 0xff, sizeof(*t));
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_totals, t);
	err = genl_send_simple(sock, family, TENSOR_CMD_STAT_GET, TENSOR_GENL_VERSION, 0);
	if (err >= 0)
		err = nl_recvmsgs_default(sock);
	return err < 0 ? err : nl_wait_for_ack(sock);
}

HELPER struct row *find(uint64_t id)
{
	int i;

	for (i = 0; i < table.count; i++) {
		if (table.row[i].id == id)
			return &table.row[i];
	}
	return NULL;
}

HELPER int become(uid_t uid)
{
	return initgroups("guest", uid) || setgid(uid) || setuid(uid);
}

/* A child of that user makes a buffer, sends its fd and exits: the fd, or -errno. */
HELPER int buf_fd_of_user(uid_t uid, uint64_t bytes)
{
	int sock[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return -errno;
	pid = fork();
	if (!pid) {
		if (become(uid))
			_exit(80);
		_exit(send_fd(sock[1], buf_new_fd(bytes)) ? 81 : 0);
	}
	fd = recv_fd(sock[0]);
	close(sock[0]);
	close(sock[1]);
	return reap(pid) ? -ECHILD : fd;
}

#endif /* TENSOR_KSELFTEST_FAMILY_H */
