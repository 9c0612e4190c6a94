/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open /dev/tensor and its table of handles.
 */
#ifndef TENSOR_CLIENT_H
#define TENSOR_CLIENT_H

#include <linux/atomic.h>
#include <linux/compat.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/xarray.h>

#include "../buffer/buf.h"
#include "../buffer/event.h"
#include "../core/owner.h"

/**
 * struct tensor_client - an open /dev/tensor
 * @id: never given twice
 * @listed: its place in the table of all clients
 * @born: boot time clock, nanoseconds
 * @owner: who opened it
 * @handles: struct tensor_handle by handle
 * @held: the same by what they reach and permit; guarded by the lock of @handles
 * @next: where the search for a free handle begins, so that a closed one is not met again soon
 * @count: handles in the table
 * @bytes: bytes of the buffers behind them
 * @inbox: events of these buffers
 * @rcu: a dump may still look at @handles, which is empty
 */
struct tensor_client {
	u64 id;
	struct tensor_entry listed;
	u64 born;
	struct tensor_owner *owner;
	struct xarray handles;
	struct rb_root held;
	u32 next;
	atomic_t count;
	atomic64_t bytes;
	struct tensor_inbox inbox;
	struct rcu_head rcu;
};

/**
 * struct tensor_handle - an entry of the handle table
 * @hold: the reference that the handle is
 * @id: its number
 * @uses: how often it has to be closed
 * @node: in @held of the client
 * @primary: of the client's handles to this buffer the one whose watch serves all of them
 * @members: of a primary one: how many they are, itself included
 * @watch: of a primary one
 * @rcu: a reader of events may still look at @watch
 */
struct tensor_handle {
	struct tensor_hold hold;
	u32 id;
	unsigned int uses;
	struct rb_node node;
	struct tensor_handle *primary;
	unsigned int members;
	struct tensor_watch watch;
	struct rcu_head rcu;
};

/**
 * struct tensor_handle_row - a copy of a handle for netlink; no reference
 * @client: id of the client
 * @id: its number
 * @buf: id of the buffer
 * @rights: TENSOR_RIGHT_*
 * @state: as tensor_hold_state() says
 */
struct tensor_handle_row {
	u64 client;
	u32 id;
	u64 buf;
	u32 rights;
	u32 state;
};

struct tensor_client *tensor_client_new(void);
void tensor_client_free(struct tensor_client *client);
struct tensor_handle *tensor_handle_new(struct tensor_client *client,
					const struct tensor_hold *hold);
void tensor_handle_publish(struct tensor_client *client, struct tensor_handle *handle);
void tensor_handle_cancel(struct tensor_client *client, struct tensor_handle *handle);
u32 tensor_handle_reuse(struct tensor_client *client, const struct tensor_hold *hold);
int tensor_handle_get(struct tensor_client *client, u32 id, struct tensor_hold *hold);
int tensor_handle_close(struct tensor_client *client, u32 id);
bool tensor_handle_next(struct tensor_client *client, unsigned long *id,
			struct tensor_handle_row *row);

static inline u64 tensor_handle_mmap_offset(u32 id)
{
	/* no 32-bit mmap() could use it */
	return in_compat_syscall() ? 0 : (u64)id << TENSOR_MMAP_OFFSET_SHIFT;
}

#endif /* TENSOR_CLIENT_H */
