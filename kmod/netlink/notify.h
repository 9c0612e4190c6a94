/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events for the netlink multicast group.
 */
#ifndef TENSOR_NETLINK_NOTIFY_H
#define TENSOR_NETLINK_NOTIFY_H

#include <linux/types.h>

struct genl_family;
struct tensor_buf;
struct tensor_hold;
struct tensor_owner;

void tensor_notify_init(struct genl_family *family);
void tensor_notify_alloc(const struct tensor_buf *buf);
void tensor_notify_free(const struct tensor_buf *buf);
void tensor_notify_import(u64 client, const struct tensor_hold *hold);
void tensor_notify_export(u64 client, const struct tensor_hold *hold, u32 kind);
void tensor_notify_seal(const struct tensor_buf *buf, u32 seals);
void tensor_notify_revoke(const struct tensor_buf *buf);
void tensor_notify_purge(const struct tensor_buf *buf);
void tensor_notify_limit(u64 client, u64 bytes);
void tensor_notify_death(const struct tensor_owner *owner, u64 client, u64 bytes, u32 handles);

#endif /* TENSOR_NETLINK_NOTIFY_H */
