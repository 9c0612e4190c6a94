// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Buffers of the module, over its generic netlink family. A dump that the kernel calls
 * inconsistent is made again; what it has to say about a failure (the extended ack) is printed.
 */
#include "tensorstat.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/tensor.h>
#include <linux/tensor_netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIES 10

static struct nl_sock *sock;
static int family;

/* ---- attributes ------------------------------------------------------------------------------- */

static uint64_t get_u64(const struct nlattr *a)
{
	return a && nla_len(a) >= 8 ? nla_get_u64(a) : 0;
}

static uint32_t get_u32(const struct nlattr *a)
{
	return a && nla_len(a) >= 4 ? nla_get_u32(a) : 0;
}

static void get_text(const struct nlattr *a, char *to, size_t size)
{
	char text[64] = "";

	if (a)
		nla_strlcpy(text, a, sizeof(text));
	copy_text(to, size, text);
}

/* How many there were. */
static uint32_t get_s64s(const struct nlattr *a, int64_t *to)
{
	int n = a ? nla_len(a) / 8 : 0;

	if (n > TENSOR_MAX_DIMS)
		n = TENSOR_MAX_DIMS;
	if (n)
		memcpy(to, nla_data(a), n * 8);
	return n;
}

static bool has_ended(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* ---- rows --------------------------------------------------------------------------------------- */

static void take_descriptor(struct buffer *b, struct nlattr **a)
{
	get_text(a[TENSOR_A_BUF_LABEL], b->label, sizeof(b->label));
	b->dtype = get_u32(a[TENSOR_A_BUF_DTYPE]);
	b->offset = (int64_t)get_u64(a[TENSOR_A_BUF_OFFSET]);
	b->ndim = get_s64s(a[TENSOR_A_BUF_SIZES], b->sizes);
	get_s64s(a[TENSOR_A_BUF_STRIDES], b->strides);
}

static int take_buffer(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_BUF_MAX + 1];
	struct buffer *b;
	struct owner *o;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_BUF_MAX, NULL) < 0)
		return NL_SKIP;
	b = buffers_add(arg);
	b->id = get_u64(a[TENSOR_A_BUF_ID]);
	b->dev = get_u64(a[TENSOR_A_BUF_DEV]);
	b->bytes = get_u64(a[TENSOR_A_BUF_BYTES]);
	b->pinned_bytes = get_u64(a[TENSOR_A_BUF_PINNED_BYTES]);
	b->huge_bytes = (int64_t)get_u64(a[TENSOR_A_BUF_HUGE_BYTES]);
	b->node = a[TENSOR_A_BUF_NODE] ? (int32_t)get_u32(a[TENSOR_A_BUF_NODE]) : UNKNOWN;
	b->handles = get_u32(a[TENSOR_A_BUF_HANDLES]);
	b->files = get_u32(a[TENSOR_A_BUF_FILES]);
	b->mappings = get_u32(a[TENSOR_A_BUF_MAPPINGS]);
	b->refs = b->handles + b->files + b->mappings;
	b->client = (int64_t)get_u64(a[TENSOR_A_BUF_CLIENT]);
	b->age_ns = (int64_t)get_u64(a[TENSOR_A_BUF_AGE_NS]);
	take_descriptor(b, a);
	o = owners_add(b);
	o->pid = (pid_t)get_u32(a[TENSOR_A_BUF_PID]);
	o->uid = get_u32(a[TENSOR_A_BUF_UID]);
	get_text(a[TENSOR_A_BUF_COMM], o->comm, sizeof(o->comm));
	/* The maker has one handle and one mapping at most. */
	b->shared = b->handles > 1 || b->mappings > 1 || b->files;
	b->orphan = has_ended(o->pid);
	return NL_OK;
}

static int take_client(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_CLIENT_MAX + 1];
	struct client *c;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_CLIENT_MAX, NULL) < 0)
		return NL_SKIP;
	c = clients_add(arg);
	c->id = get_u64(a[TENSOR_A_CLIENT_ID]);
	c->handles = get_u32(a[TENSOR_A_CLIENT_HANDLES]);
	c->bytes = get_u64(a[TENSOR_A_CLIENT_BYTES]);
	c->age_ns = (int64_t)get_u64(a[TENSOR_A_CLIENT_AGE_NS]);
	c->owner.pid = (pid_t)get_u32(a[TENSOR_A_CLIENT_PID]);
	c->owner.uid = get_u32(a[TENSOR_A_CLIENT_UID]);
	get_text(a[TENSOR_A_CLIENT_COMM], c->owner.comm, sizeof(c->owner.comm));
	return NL_OK;
}

/* ---- failures --------------------------------------------------------------------------------- */

/* The kernel's own words, in attributes of `len` bytes. */
static void print_ext_ack(const struct nlattr *head, int len)
{
	const struct nlattr *a = nla_find(head, len, NLMSGERR_ATTR_MSG);
	char text[256];

	if (a) {
		nla_strlcpy(text, a, sizeof(text));
		complain("kernel: %s", text);
	}
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *e, void *arg)
{
	/* The message that failed was copied behind the error, whole or only its header. */
	const struct nlmsghdr *h = (const void *)((char *)e - NLMSG_HDRLEN);
	int skip = sizeof(*e), *err = arg;

	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		skip += e->msg.nlmsg_len - sizeof(e->msg);
	skip = NLMSG_ALIGN(skip);
	if (h->nlmsg_flags & NLM_F_ACK_TLVS && skip < (int)(h->nlmsg_len - NLMSG_HDRLEN))
		print_ext_ack((const void *)((char *)e + skip),
			      (int)(h->nlmsg_len - NLMSG_HDRLEN) - skip);
	*err = e->error;
	return NL_STOP;
}

/* A dump that fails on its way says so at its end. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *h = nlmsg_hdr(msg);
	int len = nlmsg_datalen(h), *err = arg, code = 0;

	if (len >= (int)sizeof(int))
		memcpy(&code, nlmsg_data(h), sizeof(int));
	if (code < 0) {
		*err = code;
		if (h->nlmsg_flags & NLM_F_ACK_TLVS)
			print_ext_ack((const void *)((char *)nlmsg_data(h) + NLMSG_ALIGN(sizeof(int))),
				      len - (int)NLMSG_ALIGN(sizeof(int)));
	}
	return NL_STOP;
}

static enum status failed(const char *what, int err)
{
	complain("%s: %s", what, strerror(-err));
	if (err == -EPERM || err == -EACCES)
		return STATUS_PERMISSION;
	return err == -EOPNOTSUPP ? STATUS_UNSUPPORTED : STATUS_ERROR;
}

static enum status nl_failed(const char *what, int err)
{
	complain("%s: %s", what, nl_geterror(err));
	return err == -NLE_PERM || err == -NLE_NOACCESS ? STATUS_PERMISSION : STATUS_ERROR;
}

/* ---- dumps -------------------------------------------------------------------------------------- */

static enum status device_open(void)
{
	const int on = 1;
	int err;

	sock = nl_socket_alloc();
	if (!sock)
		return nl_failed("netlink", -NLE_NOMEM);
	err = genl_connect(sock);
	if (err < 0)
		return nl_failed("netlink", err);
	setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	family = genl_ctrl_resolve(sock, TENSOR_GENL_NAME);
	if (family == -NLE_OBJ_NOTFOUND) {
		nl_socket_free(sock);
		sock = NULL;
		return STATUS_NO_MODULE;
	}
	return family < 0 ? nl_failed("netlink family tensor", family) : STATUS_OK;
}

/* One attempt. 0, an NLE code (NLE_DUMP_INTR: rows came and went), or *err from the kernel. */
static int dump_once(int cmd, nl_recvmsg_msg_cb_t take, void *list, int *err)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int ret;

	if (!cb)
		return -NLE_NOMEM;
	*err = 0;
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, take, list);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, err);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, err);
	ret = genl_send_simple(sock, family, cmd, TENSOR_GENL_VERSION, NLM_F_DUMP);
	if (ret >= 0)
		ret = nl_recvmsgs(sock, cb);
	nl_cb_put(cb);
	return ret;
}

static void clear_buffers(void *list)
{
	buffers_clear(list);
}

static void clear_clients(void *list)
{
	clients_clear(list);
}

static enum status dump(const char *what, int cmd, nl_recvmsg_msg_cb_t take, void *list,
			void (*clear)(void *list))
{
	int err, ret;

	for (int i = 0; i < TRIES; i++) {
		ret = dump_once(cmd, take, list, &err);
		if (ret != -NLE_DUMP_INTR)
			break;
		clear(list);
	}
	if (err < 0)
		return failed(what, err);
	if (ret == -NLE_DUMP_INTR) {
		complain("%s come and go too fast for a consistent list", what);
		return STATUS_INCONSISTENT;
	}
	return ret < 0 ? nl_failed(what, ret) : STATUS_OK;
}

static enum status device_buffers(struct buffers *list)
{
	return dump("buffers", TENSOR_CMD_BUF_GET, take_buffer, list, clear_buffers);
}

static enum status device_clients(struct clients *list)
{
	return dump("clients", TENSOR_CMD_CLIENT_GET, take_client, list, clear_clients);
}

const struct backend device_backend = {
	.name = "device",
	.open = device_open,
	.buffers = device_buffers,
	.clients = device_clients,
};
