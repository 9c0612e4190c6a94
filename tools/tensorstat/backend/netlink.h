/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Requests to the module's generic netlink family, and its events. */
#ifndef TENSORSTAT_NETLINK_H
#define TENSORSTAT_NETLINK_H

#include "rows/list.h"

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

/* Opens the socket of requests. Reports every failure except STATUS_NO_MODULE. */
enum status netlink_open(void);
/*
 * Dumps rows into a list; take() adds one row for each message. An inconsistent dump is repeated.
 * `what` names the rows in error messages.
 */
enum status netlink_dump(const char *what, int cmd, nl_recvmsg_msg_cb_t take, struct list *list);
/* Sends a request without attributes; take() gets the one message that answers it. */
enum status netlink_ask(const char *what, int cmd, nl_recvmsg_msg_cb_t take, void *arg);
/* Returns a socket that receives events, or NULL with the reason in *status. */
struct nl_sock *netlink_listen(enum status *status);

/* Values of attributes; 0 or "" if the attribute is missing. */
uint64_t get_u64(const struct nlattr *a);
uint32_t get_u32(const struct nlattr *a);
void get_text(const struct nlattr *a, char *to, size_t size);
/* UNKNOWN if the attribute is missing: an older module does not send it. */
int64_t get_known(const struct nlattr *a);

#endif
