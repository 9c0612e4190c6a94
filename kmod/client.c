// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client: one open /dev/tensor with its table of handles.
 *
 * A handle is a number instead of an fd, so that ten thousand tensors do not cost ten thousand
 * fds. A number is reserved first and points to nothing; only when the caller has been told does
 * it come to mean the buffer. So nobody can use or close a handle that is not complete.
 */
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/ktime.h>

#include "core.h"
#include "trace.h"

/**
 * tensor_client_new() - make a client for an open of the device
 *
 * Return: the client, for tensor_client_free(); or an ERR_PTR().
 */
struct tensor_client *tensor_client_new(void)
{
	struct tensor_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!client)
		return ERR_PTR(-ENOMEM);
	client->id = tensor_registry_id();
	client->born = ktime_get_boottime_ns();
	xa_init_flags(&client->handles, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	spin_lock_init(&client->ready_lock);
	INIT_LIST_HEAD(&client->ready);
	init_waitqueue_head(&client->wait);
	client->owner = tensor_owner_new();
	if (!client->owner)
		goto free_client;
	err = tensor_fs_get();
	if (err)
		goto put_owner;
	err = tensor_registry_add_client(client);
	if (err)
		goto put_fs;
	return client;

put_fs:
	tensor_fs_put();
put_owner:
	tensor_owner_put(client->owner);
free_client:
	kfree(client);
	return ERR_PTR(err);
}

/* The handle is out of the table, or was never in. */
static void handle_free(struct tensor_handle *handle)
{
	tensor_buf_put(handle->hold.buf);
	kfree(handle);
}

static void handle_retire(struct tensor_client *client, struct tensor_handle *handle)
{
	trace_tensor_handle_retire(client, handle);
	atomic_dec(&client->count);
	atomic64_sub((u64)handle->hold.count << PAGE_SHIFT, &client->bytes);
	tensor_event_leave(handle);
	handle_free(handle);
}

/**
 * tensor_client_free() - the last fd of an open is gone: close all of its handles
 * @client: the client
 */
void tensor_client_free(struct tensor_client *client)
{
	struct tensor_handle *handle;
	unsigned long id;

	tensor_registry_del_client(client);
	xa_for_each(&client->handles, id, handle) {
		handle_retire(client, handle);
		cond_resched();
	}
	/* a number that is only reserved is in it as well */
	xa_destroy(&client->handles);
	tensor_fs_put();
	tensor_owner_put(client->owner);
	kfree(client);
}

static int id_reserve(struct tensor_client *client, u32 *id)
{
	int err = xa_alloc_cyclic(&client->handles, id, NULL, XA_LIMIT(1, TENSOR_MAX_HANDLES),
				  &client->next, GFP_KERNEL);

	if (err == -EBUSY)
		return -EMFILE;
	return min(err, 0);
}

/*
 * The number after it is reserved as well: the table's nodes are freed when nothing is left in
 * them, and whoever has few handles, and makes and closes one after the other, would have the nodes
 * that lead to the number allocated and freed each time.
 */
static int id_take(struct tensor_client *client, u32 *id)
{
	u32 spare;
	int err;

	*id = xchg(&client->spare, 0);
	if (!*id) {
		err = id_reserve(client, id);
		if (err)
			return err;
	}
	/* in a full table, or without memory, there is none */
	if (id_reserve(client, &spare))
		return 0;
	spare = xchg(&client->spare, spare);
	if (spare)
		xa_release(&client->handles, spare);
	return 0;
}

/**
 * tensor_handle_new() - reserve a handle
 * @client: whose
 * @hold: a reference; the handle's from now on, unless this fails
 *
 * Return: the handle, which nobody finds before tensor_handle_publish(); or an ERR_PTR(): -EMFILE
 * when the table is full, -ENOMEM.
 */
struct tensor_handle *tensor_handle_new(struct tensor_client *client,
					const struct tensor_hold *hold)
{
	struct tensor_handle *handle = kmalloc(sizeof(*handle), GFP_KERNEL_ACCOUNT);
	int err;

	if (!handle)
		return ERR_PTR(-ENOMEM);
	*handle = (struct tensor_handle){ .hold = *hold, .client = client };
	INIT_LIST_HEAD(&handle->ready);
	err = id_take(client, &handle->id);
	if (err) {
		kfree(handle);
		return ERR_PTR(err);
	}
	return handle;
}

/**
 * tensor_handle_publish() - let a handle be found
 * @client: whose
 * @handle: what tensor_handle_new() gave; not the caller's any more
 */
void tensor_handle_publish(struct tensor_client *client, struct tensor_handle *handle)
{
	atomic_inc(&client->count);
	atomic64_add((u64)handle->hold.count << PAGE_SHIFT, &client->bytes);
	tensor_event_join(handle);
	trace_tensor_handle_publish(client, handle);
	/* the slot is reserved: this needs no memory */
	xa_store(&client->handles, handle->id, handle, 0);
}

/**
 * tensor_handle_cancel() - undo tensor_handle_new(), its taking over of the reference included
 * @client: whose
 * @handle: the handle
 */
void tensor_handle_cancel(struct tensor_client *client, struct tensor_handle *handle)
{
	xa_erase(&client->handles, handle->id);
	handle_free(handle);
}

/**
 * tensor_handle_get() - find a handle
 * @client: whose
 * @id: its number
 * @hold: filled in, with a reference for the caller
 *
 * Return: 0 or -ENOENT.
 */
int tensor_handle_get(struct tensor_client *client, u32 id, struct tensor_hold *hold)
{
	struct tensor_handle *handle;

	/* the reference is taken while the handle cannot be closed */
	xa_lock(&client->handles);
	handle = xa_load(&client->handles, id);
	if (handle) {
		*hold = handle->hold;
		tensor_buf_get(hold->buf);
	}
	xa_unlock(&client->handles);
	return handle ? 0 : -ENOENT;
}

/**
 * tensor_handle_close() - take a handle out of the table
 * @client: whose
 * @id: its number
 *
 * Return: 0 or -ENOENT.
 */
int tensor_handle_close(struct tensor_client *client, u32 id)
{
	struct tensor_handle *handle;

	/* xa_erase() alone would also take away a slot that is only reserved */
	xa_lock(&client->handles);
	handle = xa_load(&client->handles, id);
	if (handle)
		__xa_erase(&client->handles, id);
	xa_unlock(&client->handles);
	if (!handle)
		return -ENOENT;
	handle_retire(client, handle);
	return 0;
}

/**
 * tensor_handle_next() - look at a table of handles from outside
 * @client: whose; the caller keeps it from going
 * @id: number to begin with; that of the one that was found
 * @row: filled in
 *
 * Return: whether there is one with that number or a larger one.
 */
bool tensor_handle_next(struct tensor_client *client, unsigned long *id,
			struct tensor_handle_row *row)
{
	struct tensor_handle *handle;

	/* it may be closed as soon as the lock is free */
	xa_lock(&client->handles);
	handle = xa_find(&client->handles, id, ULONG_MAX, XA_PRESENT);
	if (handle)
		*row = (struct tensor_handle_row){
			.client = client->id,
			.id = handle->id,
			.buf = handle->hold.buf->id,
			.rdonly = handle->hold.rdonly,
		};
	xa_unlock(&client->handles);
	return handle;
}
