/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink attributes of one object, which is copied under the lock of its table and put into a
 * message without the lock.
 */
#ifndef TENSOR_NETLINK_ROW_H
#define TENSOR_NETLINK_ROW_H

#include <linux/types.h>

#include "../buffer/buf.h"

struct sk_buff;
struct tensor_handle_row;
struct tensor_exported;
struct tensor_owner;
struct tensor_user;

/**
 * struct tensor_client_row - a copy of a client
 * @generation: of the registry at the time of the copy
 * @owner: the process that opened it, with a reference
 * @id: its id
 * @born: time of creation, boot time clock, nanoseconds
 * @bytes: bytes of the buffers that its handles refer to
 * @handles: number of handles
 */
struct tensor_client_row {
	u32 generation;
	struct tensor_owner *owner;
	u64 id;
	u64 born;
	u64 bytes;
	u32 handles;
};

/**
 * struct tensor_buf_row - a copy of a buffer
 * @generation: of the registry at the time of the copy
 * @owner: the process that made it, with a reference
 * @id: its id
 * @dev: the device number of its inode
 * @client: id of the client that made it
 * @born: time of creation, boot time clock, nanoseconds
 * @bytes: size
 * @memory: counts of its pages
 * @desc: its descriptor
 * @kind: enum tensor_kind
 * @state: TENSOR_STATE_*
 * @seals: TENSOR_SEAL_*
 * @handles: number of handles
 * @files: number of files made by EXPORT
 * @mappings: number of mappings
 * @dmabufs: number of dma-bufs made by EXPORT
 * @attachments: number of devices attached to these
 */
struct tensor_buf_row {
	u32 generation;
	struct tensor_owner *owner;
	u64 id;
	u64 dev;
	u64 client;
	u64 born;
	u64 bytes;
	struct tensor_memory memory;
	struct tensor_desc desc;
	u32 kind;
	u32 state;
	u32 seals;
	u32 handles;
	u32 files;
	u32 mappings;
	u32 dmabufs;
	u32 attachments;
};

/**
 * struct tensor_export_row - a copy of a file that EXPORT made
 * @owner: the process that made it, with a reference
 * @id: its id
 * @born: time of creation, boot time clock, nanoseconds
 * @buf: id of the buffer
 * @first: first page of its range
 * @count: pages in its range
 * @rights: TENSOR_RIGHT_*
 * @state: from tensor_hold_state()
 * @kind: enum tensor_export_kind
 */
struct tensor_export_row {
	struct tensor_owner *owner;
	u64 id;
	u64 born;
	u64 buf;
	u64 first;
	u64 count;
	u32 rights;
	u32 state;
	u32 kind;
};

bool tensor_client_next(u64 id, struct tensor_client_row *row);
bool tensor_buf_next(u64 id, struct tensor_buf_row *row);
void tensor_export_copy(const struct tensor_exported *exported, struct tensor_export_row *row);

int tensor_row_client(struct sk_buff *skb, const struct tensor_client_row *row);
int tensor_row_buf(struct sk_buff *skb, const struct tensor_buf_row *row);
int tensor_row_export(struct sk_buff *skb, const struct tensor_export_row *row);
int tensor_row_handle(struct sk_buff *skb, const struct tensor_handle_row *row);
int tensor_row_user(struct sk_buff *skb, const struct tensor_user *user);
int tensor_row_stat(struct sk_buff *skb);

#endif /* TENSOR_NETLINK_ROW_H */
