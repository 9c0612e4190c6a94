/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One object as netlink attributes: a copy is taken under the lock of the table that the object is
 * in, and put into a message without it.
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
 * @generation: of the registry, of the moment of the copy
 * @owner: who opened it, with a reference
 * @id: its id
 * @born: boot time clock, nanoseconds
 * @bytes: of the buffers behind its handles
 * @handles: how many
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
 * @generation: of the registry, of the moment of the copy
 * @owner: who made it, with a reference
 * @id: its id
 * @dev: the device number of its inode
 * @client: id of the client that made it
 * @born: boot time clock, nanoseconds
 * @bytes: size
 * @memory: numbers about its pages
 * @desc: its descriptor
 * @kind: enum tensor_kind
 * @state: TENSOR_STATE_*
 * @seals: TENSOR_SEAL_*
 * @handles: handles to it
 * @files: files made by EXPORT
 * @mappings: mappings
 * @dmabufs: dma-bufs made by EXPORT
 * @attachments: devices attached to these
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
 * @owner: who made it, with a reference
 * @id: its id
 * @born: boot time clock, nanoseconds
 * @buf: id of the buffer
 * @first: first page that it reaches
 * @count: pages that it reaches
 * @rights: TENSOR_RIGHT_*
 * @state: as tensor_hold_state() says
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
