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
 * @id: its id, never reused
 * @listed: its entry in the table of all clients
 * @born: time of the open, boot time clock, nanoseconds
 * @owner: the process that opened it
 * @handles: struct tensor_handle by number
 * @held: the same sorted by buffer, range and rights; guarded by the lock of @handles
 * @next: where the search for a free number begins, so that a closed one is not reused soon
 * @count: number of handles in the table
 * @bytes: bytes of the buffers that they refer to
 * @inbox: events of these buffers
 * @rcu: delays freeing, because a dump may still read @handles
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
 * @hold: its reference to the buffer
 * @id: its number
 * @uses: number of times that it has to be closed
 * @node: node in @held of the client
 * @primary: the one of the client's handles to this buffer whose watch serves all of them
 * @members: of a primary handle: number of handles in the group, itself included
 * @watch: of a primary handle: the watch of the group
 * @rcu: delays freeing, because a reader of events may still use @watch
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
 * @state: from tensor_hold_state()
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
	/* a 32-bit mmap() cannot express the offset */
	return in_compat_syscall() ? 0 : (u64)id << TENSOR_MMAP_OFFSET_SHIFT;
}

#endif /* TENSOR_CLIENT_H */
