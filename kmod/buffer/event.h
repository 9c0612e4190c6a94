/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of the buffers that a client has handles to.
 */
#ifndef TENSOR_EVENT_H
#define TENSOR_EVENT_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "buf.h"

/**
 * struct tensor_inbox - the pending events of a client
 * @client: id of the client
 * @lock: guards @ready and the events of its watches
 * @ready: watches with events, oldest first
 * @reading: serialises readers
 * @wait: tasks in poll() or read()
 * @waker: work that wakes them, because a poster may be in reclaim and holds locks
 */
struct tensor_inbox {
	u64 client;
	spinlock_t lock; /* guards ready */
	struct list_head ready;
	struct mutex reading; /* readers */
	wait_queue_head_t wait;
	struct work_struct waker;
};

/**
 * struct tensor_watch - the pending events of one buffer for one client
 * @buf: the buffer
 * @inbox: inbox of the client
 * @id: number of a handle to it
 * @events: unread TENSOR_EVENT_*
 * @posted: an event was posted at least once
 * @since: @gone of the buffer when it was added to @watches; guarded by the buffer's watch_lock
 * @node: node in a list of the buffer, or empty; guarded by the buffer's watch_lock
 * @ready: node in the list of the inbox, or empty
 */
struct tensor_watch {
	struct tensor_buf *buf;
	struct tensor_inbox *inbox;
	u32 id;
	u32 events;
	bool posted;
	u64 since;
	struct list_head node;
	struct list_head ready;
};

void tensor_inbox_init(struct tensor_inbox *inbox, u64 client);
void tensor_inbox_fini(struct tensor_inbox *inbox);
void tensor_watch_join(struct tensor_watch *watch);
bool tensor_watch_leave(struct tensor_watch *watch);
void tensor_event_post(struct tensor_buf *buf, u32 events, u64 by);
ssize_t tensor_inbox_read(struct tensor_inbox *inbox, char __user *to, size_t room, bool wait);
bool tensor_inbox_ready(struct tensor_inbox *inbox);

#endif /* TENSOR_EVENT_H */
