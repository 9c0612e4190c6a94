// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls on generic netlink: requests with arbitrary attributes, and receiving into buffers that are
 * too small.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <linux/tensor_netlink.h>

#include "fuzz.h"

struct request {
	struct nlmsghdr n;
	struct genlmsghdr g;
	char attrs[256];
};

static void attr_put(struct request *r, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr *a = (struct nlattr *)((char *)r + NLMSG_ALIGN(r->n.nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy(a + 1, data, len);
	r->n.nlmsg_len = NLMSG_ALIGN(r->n.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* The number of the family; 0 if the module is not loaded. */
uint16_t netlink_family(void)
{
	struct request r = {
		.n = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		       .nlmsg_type = GENL_ID_CTRL,
		       .nlmsg_flags = NLM_F_REQUEST },
		.g = { .cmd = CTRL_CMD_GETFAMILY },
	};
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	char room[8192];
	int got, at;
	uint16_t id = 0;

	attr_put(&r, CTRL_ATTR_FAMILY_NAME, TENSOR_GENL_NAME, sizeof(TENSOR_GENL_NAME));
	send(sock, &r, r.n.nlmsg_len, 0);
	got = recv(sock, room, sizeof(room), MSG_DONTWAIT);
	for (at = NLMSG_LENGTH(GENL_HDRLEN); !id && at + (int)sizeof(struct nlattr) <= got;) {
		struct nlattr *a = (struct nlattr *)(room + at);

		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			memcpy(&id, a + 1, sizeof(id));
		at += NLMSG_ALIGN(a->nla_len);
	}
	close(sock);
	return id;
}

/* args: out, group */
long run_nl_open(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), group = arg[1];

	if (fd < 0)
		return -errno;
	machine_set_fd(m, arg[0], fd);
	if (group && setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		return -errno;
	return 0;
}

/* args: sock, cmd, flags, version, three times (attribute, length, value) */
long run_nl_send(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	struct request r = {
		.n = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		       .nlmsg_type = m->family,
		       .nlmsg_flags = arg[2],
		       .nlmsg_seq = 1 },
		.g = { .cmd = arg[1], .version = arg[3] },
	};
	char data[32] = { 0 };
	int i;

	for (i = 4; i < 13; i += 3) {
		if (!arg[i])
			continue;
		memcpy(data, &arg[i + 2], sizeof(arg[i + 2]));
		attr_put(&r, arg[i], data, arg[i + 1] % sizeof(data));
	}
	return send(m->fd[arg[0] % FDS], &r, r.n.nlmsg_len, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* args: sock, bytes, flags */
long run_nl_recv(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	static __thread char room[32 << 10];
	long got = recv(m->fd[arg[0] % FDS], room, arg[1] % sizeof(room),
			MSG_DONTWAIT | (arg[2] & (MSG_PEEK | MSG_TRUNC)));

	return got < 0 ? -errno : got;
}
