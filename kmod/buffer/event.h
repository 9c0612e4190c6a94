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
 * struct tensor_inbox - where a client reads its events
 * @client: id of the client
 * @lock: guards @ready and the events of its watches
 * @ready: watches with events, oldest first
 * @reading: one reader at a time
 * @wait: tasks in poll() or read()
 * @waker: wakes them; who posts may be short of memory, and has locks
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
 * struct tensor_watch - the events of a buffer for a client
 * @buf: the buffer
 * @inbox: where its events go
 * @id: number of a handle to it
 * @events: TENSOR_EVENT_* that were not read yet
 * @posted: there was an event once
 * @since: @gone of the buffer when it came into @watches; guarded by the buffer's watch_lock
 * @node: in a list of the buffer, or empty; guarded by the buffer's watch_lock
 * @ready: in the list of the inbox, or empty
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
