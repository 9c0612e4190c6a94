// SPDX-License-Identifier: GPL-2.0-only
/*
 * What others did to a buffer, told to who holds it.
 *
 * A handle has a set of events, not a queue: nothing needs memory when something happens, nothing
 * is lost however slow the reader, and one dead peer is one bit. An open /dev/tensor lists those of
 * its handles that have some. Who has only a buffer fd polls that.
 */
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "core.h"

/* Told in one go, without a reader's page under a spinlock. */
#define EVENT_BATCH	16

static void event_add(struct tensor_handle *handle, u32 events)
{
	struct tensor_client *client = handle->client;

	spin_lock(&client->ready_lock);
	handle->events |= events;
	if (list_empty(&handle->ready))
		list_add_tail(&handle->ready, &client->ready);
	spin_unlock(&client->ready_lock);
	wake_up_interruptible_poll(&client->wait, EPOLLIN | EPOLLRDNORM);
}

/**
 * tensor_event_join() - a handle can be found: tell it from now on
 * @handle: the handle
 */
void tensor_event_join(struct tensor_handle *handle)
{
	struct tensor_buf *buf = handle->hold.buf;

	spin_lock(&buf->holders_lock);
	list_add_tail(&handle->holder, &buf->holders);
	atomic_inc(&buf->handles);
	spin_unlock(&buf->holders_lock);
}

/**
 * tensor_event_leave() - a handle goes: tell it nothing more, and the others that it went
 * @handle: the handle
 */
void tensor_event_leave(struct tensor_handle *handle)
{
	struct tensor_client *client = handle->client;
	struct tensor_buf *buf = handle->hold.buf;

	spin_lock(&buf->holders_lock);
	list_del(&handle->holder);
	atomic_dec(&buf->handles);
	spin_unlock(&buf->holders_lock);
	spin_lock(&client->ready_lock);
	list_del_init(&handle->ready);
	spin_unlock(&client->ready_lock);
	tensor_event_post(buf, TENSOR_EVENT_GONE, client);
}

/**
 * tensor_event_post() - tell the holders of a buffer
 * @buf: the buffer
 * @events: TENSOR_EVENT_*
 * @by: through which client it was done, which is not told; NULL: through none
 *
 * Does not sleep.
 */
void tensor_event_post(struct tensor_buf *buf, u32 events, const struct tensor_client *by)
{
	struct tensor_handle *handle;

	spin_lock(&buf->holders_lock);
	list_for_each_entry(handle, &buf->holders, holder)
		if (handle->client != by)
			event_add(handle, events);
	spin_unlock(&buf->holders_lock);
	wake_up_interruptible_all(&buf->wait);
}

static size_t events_take(struct tensor_client *client, struct tensor_event *batch, size_t room)
{
	struct tensor_handle *handle;
	size_t n = 0;

	spin_lock(&client->ready_lock);
	while (n < room && !list_empty(&client->ready)) {
		handle = list_first_entry(&client->ready, struct tensor_handle, ready);
		list_del_init(&handle->ready);
		batch[n++] = (struct tensor_event){ .handle = handle->id,
						    .events = handle->events,
						    .ino = handle->hold.buf->id };
		handle->events = 0;
	}
	spin_unlock(&client->ready_lock);
	return n;
}

/* The reader could not be told. A number may mean another buffer by now. */
static void events_return(struct tensor_client *client, const struct tensor_event *batch, size_t n)
{
	struct tensor_handle *handle;

	xa_lock(&client->handles);
	while (n--) {
		handle = xa_load(&client->handles, batch[n].handle);
		if (handle && handle->hold.buf->id == batch[n].ino)
			event_add(handle, batch[n].events);
	}
	xa_unlock(&client->handles);
}

static bool events_pending(struct tensor_client *client)
{
	return !list_empty_careful(&client->ready);
}

/* As many as there are and fit; 0 if there is none. */
static ssize_t events_copy(struct tensor_client *client, struct tensor_event __user *to,
			   size_t room)
{
	struct tensor_event batch[EVENT_BATCH];
	size_t done, n;

	for (done = 0; done < room; done += n) {
		n = events_take(client, batch, min_t(size_t, room - done, EVENT_BATCH));
		if (!n)
			break;
		if (copy_to_user(to + done, batch, n * sizeof(*batch))) {
			events_return(client, batch, n);
			if (!done)
				return -EFAULT;
			break;
		}
		cond_resched();
	}
	return done * sizeof(*batch);
}

/**
 * tensor_event_read() - read() of /dev/tensor
 * @file: an open of it
 * @to: where to
 * @room: bytes there
 * @pos: not used
 *
 * Return: bytes written; -EINVAL, -EAGAIN, -ERESTARTSYS, -EFAULT.
 */
ssize_t tensor_event_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	struct tensor_event __user *events = (struct tensor_event __user *)to;
	struct tensor_client *client = file->private_data;
	ssize_t done;

	room /= sizeof(*events);
	if (!room)
		return -EINVAL;
	for (;;) {
		done = events_copy(client, events, room);
		if (done)
			return done;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(client->wait, events_pending(client)))
			return -ERESTARTSYS;
	}
}

/**
 * tensor_event_poll() - poll() of /dev/tensor
 * @file: an open of it
 * @table: who polls
 *
 * Return: EPOLLIN when read() would not wait.
 */
__poll_t tensor_event_poll(struct file *file, struct poll_table_struct *table)
{
	struct tensor_client *client = file->private_data;

	poll_wait(file, &client->wait, table);
	return events_pending(client) ? EPOLLIN | EPOLLRDNORM : 0;
}

/**
 * tensor_event_poll_buf() - poll() of a buffer fd
 * @file: the buffer's file
 * @table: who polls
 *
 * Return: EPOLLERR, EPOLLPRI, EPOLLRDHUP as <linux/tensor.h> says.
 */
__poll_t tensor_event_poll_buf(struct file *file, struct poll_table_struct *table)
{
	const struct tensor_file *open = file->private_data;
	struct tensor_buf *buf = open->hold.buf;
	__poll_t mask = 0;
	int others;

	poll_wait(file, &buf->wait, table);
	others = atomic_read(&buf->handles) + atomic_read(&buf->files) +
		 atomic_read(&buf->dmabufs) + atomic_read(&buf->guests) - 1;
	if (tensor_buf_state(buf) & TENSOR_STATE_REVOKED)
		mask |= EPOLLERR;
	if (tensor_buf_seals(buf) & TENSOR_SEAL_WRITE)
		mask |= EPOLLPRI;
	if (!others)
		mask |= EPOLLRDHUP;
	return mask;
}
