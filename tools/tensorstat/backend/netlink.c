// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Netlink sockets. A dump that the kernel marks as inconsistent (NLM_F_DUMP_INTR) is repeated. The
 * extended acknowledgement of a failed request is printed.
 */
#include "backend/netlink.h"

#include "rows/rows.h"
#include "rows/text.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/tensor_netlink.h>
#include <string.h>
#include <sys/socket.h>

#define TRIES 10
#define ROOM  (256 * 1024)

static struct nl_sock *sock;
static int family;

/* ---- attributes ---- */

uint64_t get_u64(const struct nlattr *a)
{
	return a && nla_len(a) >= 8 ? nla_get_u64(a) : 0;
}

uint32_t get_u32(const struct nlattr *a)
{
	return a && nla_len(a) >= 4 ? nla_get_u32(a) : 0;
}

int64_t get_known(const struct nlattr *a)
{
	if (!a)
		return UNKNOWN;
	return nla_len(a) >= 8 ? (int64_t)nla_get_u64(a) : get_u32(a);
}

void get_text(const struct nlattr *a, char *to, size_t size)
{
	char text[64] = "";

	if (a)
		nla_strlcpy(text, a, sizeof(text));
	copy_text(to, size, text);
}

/* ---- failures ---- */

/* Prints the kernel's message from the attributes of an acknowledgement; len is in bytes. */
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
	/* A copy of the request follows the error: the header alone if NLM_F_CAPPED is set. */
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

/* NLMSG_DONE carries the error of a dump that failed after its first message. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *h = nlmsg_hdr(msg);
	int len = nlmsg_datalen(h), *err = arg, code = 0;

	if (len >= (int)sizeof(int))
		memcpy(&code, nlmsg_data(h), sizeof(int));
	if (code < 0) {
		*err = code;
		if (h->nlmsg_flags & NLM_F_ACK_TLVS)
			print_ext_ack(
				(const void *)((char *)nlmsg_data(h) + NLMSG_ALIGN(sizeof(int))),
				len - (int)NLMSG_ALIGN(sizeof(int)));
	}
	return NL_STOP;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
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

/* ---- the socket ---- */

static struct nl_sock *socket_open(enum status *status)
{
	struct nl_sock *s = nl_socket_alloc();
	const int on = 1;
	int err;

	*status = STATUS_ERROR;
	if (!s) {
		nl_failed("netlink", -NLE_NOMEM);
		return NULL;
	}
	err = genl_connect(s);
	if (err < 0) {
		*status = nl_failed("netlink", err);
		nl_socket_free(s);
		return NULL;
	}
	setsockopt(nl_socket_get_fd(s), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	/* The kernel fills the receive buffer: a larger one takes fewer system calls. */
	nl_socket_set_msg_buf_size(s, ROOM);
	*status = STATUS_OK;
	return s;
}

enum status netlink_open(void)
{
	enum status status;

	if (sock)
		return STATUS_OK;
	sock = socket_open(&status);
	if (!sock)
		return status;
	family = genl_ctrl_resolve(sock, TENSOR_GENL_NAME);
	if (family >= 0)
		return STATUS_OK;
	nl_socket_free(sock);
	sock = NULL;
	return family == -NLE_OBJ_NOTFOUND ? STATUS_NO_MODULE :
					     nl_failed("netlink family tensor", family);
}

struct nl_sock *netlink_listen(enum status *status)
{
	struct nl_sock *s = socket_open(status);
	int group, err;

	if (!s)
		return NULL;
	group = genl_ctrl_resolve_grp(s, TENSOR_GENL_NAME, TENSOR_GENL_EVENTS);
	err = group < 0 ? group : nl_socket_add_membership(s, group);
	if (group < 0) {
		complain("this module has no events");
		*status = STATUS_UNSUPPORTED;
	} else if (err < 0) {
		complain("events require CAP_NET_ADMIN: %s", nl_geterror(err));
		*status = STATUS_PERMISSION;
	} else {
		nl_socket_disable_seq_check(s);
		nl_socket_set_buffer_size(s, 4 << 20, 0);
		return s;
	}
	nl_socket_free(s);
	return NULL;
}

/*
 * Sends a request once. Returns 0 or a negative NLE code, which is -NLE_DUMP_INTR if rows changed
 * during the dump. An error of the kernel is stored in *err as a negative errno.
 */
static int request_once(int cmd, int flags, nl_recvmsg_msg_cb_t take, void *arg, int *err)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int ret;

	if (!cb)
		return -NLE_NOMEM;
	*err = 0;
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, take, arg);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, err);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, NULL);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, err);
	ret = genl_send_simple(sock, family, cmd, TENSOR_GENL_VERSION, flags);
	if (ret >= 0)
		ret = nl_recvmsgs(sock, cb);
	/* An acknowledgement follows the answer to a request that is no dump. */
	if (ret >= 0 && !*err && !(flags & NLM_F_DUMP))
		ret = nl_recvmsgs(sock, cb);
	nl_cb_put(cb);
	return ret;
}

enum status netlink_dump(const char *what, int cmd, nl_recvmsg_msg_cb_t take, struct list *list)
{
	int err = 0, ret = 0;

	for (int i = 0; i < TRIES; i++) {
		ret = request_once(cmd, NLM_F_DUMP, take, list, &err);
		if (ret != -NLE_DUMP_INTR)
			break;
		list_clear(list);
	}
	if (err < 0)
		return failed(what, err);
	if (ret == -NLE_DUMP_INTR) {
		complain("%s changed during each of ten dumps; try again", what);
		return STATUS_INCONSISTENT;
	}
	return ret < 0 ? nl_failed(what, ret) : STATUS_OK;
}

enum status netlink_ask(const char *what, int cmd, nl_recvmsg_msg_cb_t take, void *arg)
{
	int err, ret = request_once(cmd, 0, take, arg, &err);

	if (err < 0)
		return failed(what, err);
	return ret < 0 ? nl_failed(what, ret) : STATUS_OK;
}
