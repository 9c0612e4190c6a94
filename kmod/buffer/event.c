// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a buffer for the clients that have a handle to it.
 *
 * A watch has a set of events, not a queue: posting an event allocates nothing, a slow reader loses
 * none, and the end of another holder is one bit.
 *
 * TENSOR_EVENT_GONE is posted each time a holder ends, and n holders may end while n watches exist.
 * So a watch with an unread GONE is in a separate list, which the next GONE does not walk; reading
 * moves it back. The cost of a GONE is proportional to the watches whose set of events it changes.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "event.h"

/* Events copied to the reader at once; watches visited before the lock is released. */
#define READ_BATCH 16
#define POST_BATCH 64

/* The number of waiters is unbounded: one fd can be in many epoll sets and many times in one. */
static void inbox_wake(struct work_struct *work)
{
	struct tensor_inbox *inbox = container_of(work, struct tensor_inbox, waker);

	wake_up_interruptible_poll(&inbox->wait, EPOLLIN | EPOLLRDNORM);
}

/**
 * tensor_inbox_init() - initialise an inbox
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
 * tensor_inbox_fini() - destroy an inbox
 * @inbox: the inbox; it has no watch and no waiting reader
 */
void tensor_inbox_fini(struct tensor_inbox *inbox)
{
	cancel_work_sync(&inbox->waker);
}

/**
 * tensor_watch_join() - start reporting the events of a buffer
 * @watch: the watch, with @watch->buf, @watch->inbox and @watch->id set; a client has one per
 * buffer
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
 * tensor_watch_leave() - stop reporting
 * @watch: the watch
 *
 * Return: whether a reader may still use it, so that it must be freed after an RCU grace period.
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

/* The first watch in the list that does not belong to client @by; a client has one per buffer. */
static struct tensor_watch *watch_first(struct tensor_buf *buf, u64 by)
{
	struct tensor_watch *watch;

	list_for_each_entry(watch, &buf->watches, node)
		if (watch->inbox->client != by)
			return watch;
	return NULL;
}

/*
 * Post GONE to the watches that have read the last one. A watch joins the end of the list with the
 * current number of GONE, and leaves it when it is given one: so the list is sorted, and watches
 * that joined after this GONE are at its end. Whenever the lock is free each watch is in one of the
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
 * @events: TENSOR_EVENT_*; before GONE an atomic operation has decremented a count of holders
 * @by: id of the client that caused it, which gets no event; 0: none
 */
void tensor_event_post(struct tensor_buf *buf, u32 events, u64 by)
{
	if (events == TENSOR_EVENT_GONE) {
		/* a watch that is not in the list yet sees the lower count: see inbox_take() */
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
 * tensor_inbox_ready() - whether a read would not wait
 * @inbox: the inbox
 *
 * Return: whether there is an event.
 */
bool tensor_inbox_ready(struct tensor_inbox *inbox)
{
	return !list_empty_careful(&inbox->ready);
}

/* Copy events without removing them: copying to user space may fail. */
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

/* A watch whose GONE was read gets the next one. */
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

/* A handle number may have been reused for the same buffer, with another watch. */
static bool event_is(const struct tensor_event *event, const struct tensor_watch *watch)
{
	return event->ino == watch->buf->id && event->handle == READ_ONCE(watch->id);
}

/*
 * Remove the events that the reader has got. Watches are taken from the front and added at the end,
 * so the copied ones come first and in the same order, except those that have left since. A watch
 * that leaves while it is moved back stays valid, and its buffer, until the RCU read section ends.
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
	/* the watch is in the list before the reader counts the remaining holders */
	smp_mb();
}

/* Copy as many events as exist and fit; return 0 if there is none. */
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
 * @to: destination
 * @room: size of the destination in bytes
 * @wait: wait for the first event
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
