/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dumps: lists of objects, part by part.
 */
#ifndef TENSOR_NETLINK_DUMP_H
#define TENSOR_NETLINK_DUMP_H

struct genl_family;
struct netlink_callback;
struct sk_buff;

void tensor_dump_init(struct genl_family *family);
int tensor_dump_client_start(struct netlink_callback *cb);
int tensor_dump_buf_start(struct netlink_callback *cb);
int tensor_dump_handle_start(struct netlink_callback *cb);
int tensor_dump_export_start(struct netlink_callback *cb);
int tensor_dump_clients(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_bufs(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_handles(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_exports(struct sk_buff *skb, struct netlink_callback *cb);
int tensor_dump_users(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* TENSOR_NETLINK_DUMP_H */
