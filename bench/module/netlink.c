// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The part of generic netlink that is needed to count the entries of a dump, without a library
 * whose parser would be measured as well.
 */
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/tensor_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "module.h"

#define ROOM (64 * 1024)

static int sock = -1;
static int family;

struct request {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	struct nlattr attr;
	char name[GENL_NAMSIZ];
};

static void ask(struct request *r, size_t more, int type, int flags, int command)
{
	r->nl.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) + more;
	r->nl.nlmsg_type = (unsigned short)type;
	r->nl.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | flags);
	r->genl.cmd = (unsigned char)command;
	r->genl.version = 1;
	must(send(sock, r, r->nl.nlmsg_len, 0) == (ssize_t)r->nl.nlmsg_len, "netlink send");
}

static int find_family(const char *name)
{
	struct request r = { .attr = { .nla_type = CTRL_ATTR_FAMILY_NAME } };
	char *answer = malloc(ROOM);
	struct nlattr *a;
	ssize_t n, at;
	int id = -1;

	must(answer, "malloc");
	strncpy(r.name, name, sizeof(r.name) - 1);
	r.attr.nla_len = (unsigned short)(NLA_HDRLEN + strlen(name) + 1);
	ask(&r, NLA_ALIGN(r.attr.nla_len), GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
	n = recv(sock, answer, ROOM, 0);
	must(n > 0, "netlink recv");
	for (at = NLMSG_LENGTH(GENL_HDRLEN); at < n; at += NLA_ALIGN(a->nla_len)) {
		a = (struct nlattr *)(answer + at);
		if (a->nla_len < NLA_HDRLEN)
			break;
		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			id = *(unsigned short *)((char *)a + NLA_HDRLEN);
	}
	free(answer);
	return id;
}

int netlink_open(void)
{
	if (sock >= 0)
		return 0;
	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	must(sock >= 0, "netlink socket");
	family = find_family(TENSOR_GENL_NAME);
	must(family > 0, "no netlink family of the module");
	return 0;
}

/* The number of entries of a complete dump. */
unsigned long netlink_dump(int command)
{
	struct request r = {};
	char *part = malloc(ROOM);
	unsigned long rows = 0;
	struct nlmsghdr *nl;
	ssize_t n;

	must(part, "malloc");
	ask(&r, 0, family, NLM_F_DUMP, command);
	for (;;) {
		n = recv(sock, part, ROOM, 0);
		must(n > 0, "netlink recv");
		for (nl = (struct nlmsghdr *)part; NLMSG_OK(nl, n); nl = NLMSG_NEXT(nl, n)) {
			must(nl->nlmsg_type != NLMSG_ERROR, "netlink dump");
			if (nl->nlmsg_type == NLMSG_DONE) {
				free(part);
				return rows;
			}
			rows++;
		}
	}
}
