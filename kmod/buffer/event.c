// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a buffer for the clients that have a handle to it.
 *
 * A watch has a set of events, not a queue: posting an event needs no memory, a slow reader loses
 * none, and the end of a peer is one bit.
 *
 * TENSOR_EVENT_GONE is posted each time a holder ends, and n holders may end one after the other
 * with n watches left. So a watch whose GONE was not read yet is in a separate list, which the next
 * GONE does not walk; reading moves it back. The cost of a GONE is proportional to the watches
 * whose set of events it changes.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "event.h"

/* Events copied to the reader at once; watches visited before the lock is given to others. */
#define READ_BATCH 16
#define POST_BATCH 64

/* Any number may wait: one fd can be in many epoll sets, and in one of them many times. */
static void inbox_wake(struct work_struct *work)
{
	struct tensor_inbox *inbox = container_of(work, struct tensor_inbox, waker);

	wake_up_interruptible_poll(&inbox->wait, EPOLLIN | EPOLLRDNORM);
}

/**
 * tensor_inbox_init() - begin to collect
 * @inbox: filled in
 * @client: id of the client
 */
void tensor_inbox_init(struct tensor_inbox *inbox, u64 client)
{
	inbox->client = client;
	spin_lock_init(&inbox->lock);
	INIT_LIST_HEAD(&inbox->ready);
	mutex_init(&inbox->reading);
	init_waitqueue_head(&inbox->wait);
	INIT_WORK(&inbox->waker, inbox_wake);
}

/**
 * tensor_inbox_fini() - the end of an inbox
 * @inbox: no watch reports to it, and nobody waits any more
 */
void tensor_inbox_fini(struct tensor_inbox *inbox)
{
	cancel_work_sync(&inbox->waker);
}

/**
 * tensor_watch_join() - report the events of a buffer from now on
 * @watch: the watch, with @watch->buf, @watch->inbox and @watch->id; a client has one of a buffer
 */
void tensor_watch_join(struct tensor_watch *watch)
{
	struct tensor_buf *buf = watch->buf;

	INIT_LIST_HEAD(&watch->ready);
	spin_lock(&buf->watch_lock);
	watch->since = buf->gone;
	list_add_tail(&watch->node, &buf->watches);
	spin_unlock(&buf->watch_lock);
}

/**
 * tensor_watch_leave() - report nothing more
 * @watch: the watch
 *
 * Return: whether a reader may still have it in hand, so that it must stay for a grace period of
 * RCU.
 */
bool tensor_watch_leave(struct tensor_watch *watch)
{
	struct tensor_inbox *inbox = watch->inbox;
	struct tensor_buf *buf = watch->buf;
	bool posted;

	spin_lock(&buf->watch_lock);
	list_del_init(&watch->node);
	spin_unlock(&buf->watch_lock);
	spin_lock(&inbox->lock);
	list_del_init(&watch->ready);
	posted = watch->posted;
	spin_unlock(&inbox->lock);
	return posted;
}

static void watch_add(struct tensor_watch *watch, u32 events)
{
	struct tensor_inbox *inbox = watch->inbox;

	spin_lock(&inbox->lock);
	watch->events |= events;
	watch->posted = true;
	if (list_empty(&watch->ready))
		list_add_tail(&watch->ready, &inbox->ready);
	spin_unlock(&inbox->lock);
	if (wq_has_sleeper(&inbox->wait))
		queue_work(system_dfl_wq, &inbox->waker);
}

/* The first watch in the list that is not of the client @by, which has one of a buffer. */
static struct tensor_watch *watch_first(struct tensor_buf *buf, u64 by)
{
	struct tensor_watch *watch;

	list_for_each_entry(watch, &buf->watches, node)
		if (watch->inbox->client != by)
			return watch;
	return NULL;
}

/*
 * GONE, for the watches that have read the last one. A watch comes to the end of the list with the
 * number of the GONE before, and leaves it when it is given one: so the list is sorted, and those
 * that came after this GONE are at its end. Whenever the lock is free each watch is in one of the
 * two lists, so that no other event misses it.
 */
static void post_gone(struct tensor_buf *buf, u64 by)
{
	struct tensor_watch *watch;
	unsigned int done = 0;
	u64 round;

	spin_lock(&buf->watch_lock);
	round = ++buf->gone;
	while ((watch = watch_first(buf, by)) && watch->since < round) {
		watch_add(watch, TENSOR_EVENT_GONE);
		list_move_tail(&watch->node, &buf->watches_unread);
		if (++done % POST_BATCH)
			continue;
		spin_unlock(&buf->watch_lock);
		cond_resched();
		spin_lock(&buf->watch_lock);
	}
	spin_unlock(&buf->watch_lock);
}

static void post_list(struct list_head *watches, u32 events, u64 by)
{
	struct tensor_watch *watch;

	list_for_each_entry(watch, watches, node)
		if (watch->inbox->client != by)
			watch_add(watch, events);
}

/**
 * tensor_event_post() - report to the clients that have a handle to a buffer
 * @buf: the buffer
 * @events: TENSOR_EVENT_*; with GONE a count of holders went down by an atomic operation before
 * @by: id of the client it was done through, which is not told; 0: of none
 */
void tensor_event_post(struct tensor_buf *buf, u32 events, u64 by)
{
	if (events == TENSOR_EVENT_GONE) {
		/* who is not in the list yet sees the count that went down: see inbox_take() */
		smp_mb__after_atomic();
		if (!list_empty_careful(&buf->watches))
			post_gone(buf, by);
		return;
	}
	spin_lock(&buf->watch_lock);
	post_list(&buf->watches, events, by);
	post_list(&buf->watches_unread, events, by);
	spin_unlock(&buf->watch_lock);
}

/**
 * tensor_inbox_ready() - would a read not wait?
 * @inbox: the inbox
 *
 * Return: whether there is an event.
 */
bool tensor_inbox_ready(struct tensor_inbox *inbox)
{
	return !list_empty_careful(&inbox->ready);
}

/* Copies events and leaves them where they are: the reader may turn out to be out of reach. */
static size_t inbox_peek(struct tensor_inbox *inbox, struct tensor_event *batch, size_t room)
{
	struct tensor_watch *watch;
	size_t n = 0;

	spin_lock(&inbox->lock);
	list_for_each_entry(watch, &inbox->ready, ready) {
		if (n == room)
			break;
		batch[n++] = (struct tensor_event){ .size = sizeof(*batch),
						    .handle = READ_ONCE(watch->id),
						    .events = watch->events,
						    .ino = watch->buf->id };
	}
	spin_unlock(&inbox->lock);
	return n;
}

/* A watch whose GONE was read is told of the next one. */
static void watch_rearm(struct tensor_watch *watch)
{
	struct tensor_buf *buf = watch->buf;

	spin_lock(&buf->watch_lock);
	if (!list_empty(&watch->node)) {
		watch->since = buf->gone;
		list_move_tail(&watch->node, &buf->watches);
	}
	spin_unlock(&buf->watch_lock);
}

/* The same buffer under another handle may be another watch. */
static bool event_is(const struct tensor_event *event, const struct tensor_watch *watch)
{
	return event->ino == watch->buf->id && event->handle == READ_ONCE(watch->id);
}

/*
 * Takes away what the reader has. Watches are taken from the front and added at the end, so those
 * that were looked at come first and in the same order, but for those that have left since. A watch
 * that leaves while it is armed again stays, and its buffer, until RCU lets them go.
 */
static void inbox_take(struct tensor_inbox *inbox, const struct tensor_event *batch, size_t n)
{
	struct tensor_watch *gone[READ_BATCH], *watch, *next;
	size_t i, from = 0, left = n, count = 0;

	rcu_read_lock();
	spin_lock(&inbox->lock);
	list_for_each_entry_safe(watch, next, &inbox->ready, ready) {
		if (!left--)
			break;
		for (i = from; i < n && !event_is(&batch[i], watch); i++)
			;
		if (i == n)
			continue;
		from = i + 1;
		if (batch[i].events & TENSOR_EVENT_GONE)
			gone[count++] = watch;
		watch->events &= ~batch[i].events;
		if (!watch->events)
			list_del_init(&watch->ready);
	}
	spin_unlock(&inbox->lock);
	while (count)
		watch_rearm(gone[--count]);
	rcu_read_unlock();
	/* in the list before the reader counts who is left */
	smp_mb();
}

/* As many as there are and fit; 0 if there is none. */
static ssize_t inbox_copy(struct tensor_inbox *inbox, struct tensor_event __user *to, size_t room)
{
	struct tensor_event batch[READ_BATCH];
	size_t done = 0, n;

	while (done < room) {
		n = inbox_peek(inbox, batch, min_t(size_t, room - done, READ_BATCH));
		if (!n)
			break;
		if (copy_to_user(to + done, batch, n * sizeof(*batch)))
			return done ? done * sizeof(*batch) : -EFAULT;
		inbox_take(inbox, batch, n);
		done += n;
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	return done * sizeof(*batch);
}

/**
 * tensor_inbox_read() - read() of /dev/tensor
 * @inbox: the client's
 * @to: where to
 * @room: bytes there
 * @wait: for the first event
 *
 * Return: bytes written; -EINVAL, -EAGAIN, -ERESTARTSYS, -EFAULT.
 */
ssize_t tensor_inbox_read(struct tensor_inbox *inbox, char __user *to, size_t room, bool wait)
{
	struct tensor_event __user *events = (struct tensor_event __user *)to;
	ssize_t done;

	room /= sizeof(*events);
	if (!room)
		return -EINVAL;
	for (;;) {
		if (mutex_lock_interruptible(&inbox->reading))
			return -ERESTARTSYS;
		done = inbox_copy(inbox, events, room);
		mutex_unlock(&inbox->reading);
		if (done)
			return done;
		if (!wait)
			return -EAGAIN;
		if (wait_event_interruptible(inbox->wait, tensor_inbox_ready(inbox)))
			return -ERESTARTSYS;
	}
}
