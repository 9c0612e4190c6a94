/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink, as its parts see each other and as the rest of the module sees it.
 *
 *	netlink.c        the family, and what is no list
 *	netlink_row.c    one object as attributes
 *	netlink_dump.c   many of them, part by part
 *	netlink_event.c  what happens, told to the multicast group
 */
#ifndef TENSOR_NETLINK_H
#define TENSOR_NETLINK_H

#include <linux/types.h>

struct genl_family;
struct genl_info;
struct netlink_callback;
struct sk_buff;
struct tensor_buf;
struct tensor_client;
struct tensor_exported;
struct tensor_handle_row;
struct tensor_hold;
struct tensor_user;

/* netlink.c */
extern struct genl_family tensor_family;

int tensor_netlink_init(void);
void tensor_netlink_exit(void);

/* netlink_row.c */
int tensor_row_client(struct sk_buff *skb, const struct tensor_client *client);
int tensor_row_buf(struct sk_buff *skb, struct tensor_buf *buf);
int tensor_row_handle(struct sk_buff *skb, const struct tensor_handle_row *row);
int tensor_row_export(struct sk_buff *skb, const struct tensor_exported *exported);
int tensor_row_user(struct sk_buff *skb, const struct tensor_user *user);
int tensor_row_stat(struct sk_buff *skb);
int tensor_row_end(struct sk_buff *skb, void *row, int err);

/* netlink_dump.c */
int tensor_dump_client_start(struct netlink_callback *cb);
int tensor_dump_buf_start(struct netlink_callback *cb);
int tensor_dump_handle_start(struct netlink_callback *cb);
int tensor_dump_export_start(struct netlink_callback *cb);
int tensor_dump_clients(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_bufs(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_handles(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_exports(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_users(struct sk_buff *skb, struct netlink_callback *cb);

/* netlink_event.c */
void tensor_notify_alloc(const struct tensor_buf *buf);
void tensor_notify_free(const struct tensor_buf *buf);
void tensor_notify_import(const struct tensor_client *client, const struct tensor_hold *hold);
void tensor_notify_export(const struct tensor_client *client, const struct tensor_hold *hold,
			  u32 kind);
void tensor_notify_seal(const struct tensor_buf *buf, u32 seals);
void tensor_notify_revoke(const struct tensor_buf *buf);
void tensor_notify_purge(const struct tensor_buf *buf);
void tensor_notify_limit(u64 client, u64 bytes);
void tensor_notify_death(const struct tensor_client *client);

#endif /* TENSOR_NETLINK_H */
