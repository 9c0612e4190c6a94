/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The netlink family as tensorstat uses it: dumps that are whole, and events. */
#ifndef TENSORSTAT_NETLINK_H
#define TENSORSTAT_NETLINK_H

#include "tensorstat.h"

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

/* STATUS_NO_MODULE is not reported; all else is. */
enum status netlink_open(void);
/* `what` is for complaints. A list is dumped again until it is consistent; take() adds a row. */
enum status netlink_dump(const char *what, int cmd, nl_recvmsg_msg_cb_t take, struct list *list);
/* One message that answers a request without attributes. */
enum status netlink_ask(const char *what, int cmd, nl_recvmsg_msg_cb_t take, void *arg);
/* A socket that hears the events, or NULL and *status says why. */
struct nl_sock *netlink_listen(enum status *status);

uint64_t get_u64(const struct nlattr *a);
uint32_t get_u32(const struct nlattr *a);
void get_text(const struct nlattr *a, char *to, size_t size);
/* UNKNOWN if it is not there: an older module. */
int64_t get_known(const struct nlattr *a);

#endif
