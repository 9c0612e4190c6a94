// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client: one open /dev/tensor with its table of handles.
 *
 * A handle is a number instead of an fd, so that ten thousand tensors do not cost ten thousand fds.
 * A number is reserved first and refers to the buffer only after the reply has been written, so
 * that a handle cannot be used or closed before it is complete.
 *
 * Handles are also in a tree sorted by buffer, range and rights: importing the same again returns
 * the same handle, and all handles of the client to one buffer share the watch of the primary one,
 * so that each client gets an event once.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../buffer/fs.h"
#include "../buffer/registry.h"
#include "../buffer/trace.h"
#include "../netlink/notify.h"
#include "client.h"

/**
 * tensor_client_new() - create a client for an open of the device
 *
 * Return: the client, freed by tensor_client_free(); or an ERR_PTR().
 */
struct tensor_client *tensor_client_new(void)
{
	struct tensor_client *client = kzalloc(sizeof(*client), TENSOR_GFP);
	int err = -ENOMEM;

	if (!client)
		return ERR_PTR(-ENOMEM);
	client->id = tensor_registry_id();
	client->born = ktime_get_boottime_ns();
	xa_init_flags(&client->handles, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	client->held = RB_ROOT;
	client->next = 1;
	tensor_inbox_init(&client->inbox, client->id);
	client->owner = tensor_owner_new();
	if (!client->owner)
		goto free_client;
	err = tensor_fs_get();
	if (err)
		goto put_owner;
	tensor_registry_add_client(&client->listed, client->id);
	return client;

put_owner:
	tensor_owner_put(client->owner);
free_client:
	kfree(client);
	return ERR_PTR(err);
}

/* Compares the buffer first, so that handles to one buffer are neighbours. */
static int hold_compare(const struct tensor_hold *a, const struct tensor_hold *b)
{
	if (a->buf->id != b->buf->id)
		return a->buf->id < b->buf->id ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	if (a->rights != b->rights)
		return a->rights < b->rights ? -1 : 1;
	return 0;
}

static struct tensor_handle *held_entry(struct rb_node *node)
{
	return rb_entry_safe(node, struct tensor_handle, node);
}

static struct tensor_handle *held_find(struct tensor_client *client, const struct tensor_hold *hold)
{
	struct rb_node *node = client->held.rb_node;
	int order;

	while (node) {
		order = hold_compare(hold, &held_entry(node)->hold);
		if (!order)
			return held_entry(node);
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/* Two threads that import the same at the same time get two handles, which compare as equal. */
static void held_insert(struct tensor_client *client, struct tensor_handle *handle)
{
	struct rb_node **at = &client->held.rb_node, *parent = NULL;

	while (*at) {
		parent = *at;
		at = hold_compare(&handle->hold, &held_entry(parent)->hold) < 0 ? &parent->rb_left :
										  &parent->rb_right;
	}
	rb_link_node(&handle->node, parent, at);
	rb_insert_color(&handle->node, &client->held);
}

/* Another handle to the same buffer, which is next to this one in the tree, or NULL. */
static struct tensor_handle *held_sibling(struct tensor_handle *handle)
{
	struct tensor_handle *other = held_entry(rb_prev(&handle->node));

	if (!other || other->hold.buf != handle->hold.buf)
		other = held_entry(rb_next(&handle->node));
	return other && other->hold.buf == handle->hold.buf ? other : NULL;
}

/* Called with the table's lock held and the handle in the tree. */
static void primary_join(struct tensor_client *client, struct tensor_handle *handle)
{
	struct tensor_handle *sibling = held_sibling(handle);

	handle->primary = sibling ? sibling->primary : handle;
	if (handle->primary->members++)
		return;
	handle->watch.buf = handle->hold.buf;
	handle->watch.inbox = &client->inbox;
	handle->watch.id = handle->id;
	tensor_watch_join(&handle->watch);
}

/*
 * Called with the table's lock held and the handle still in the tree. The watch reports the number
 * of an open handle, so another handle's number replaces this one. Return: whether the handle was
 * the last of its group.
 */
static bool primary_leave(struct tensor_handle *handle)
{
	struct tensor_handle *primary = handle->primary, *sibling;

	if (!--primary->members)
		return true;
	sibling = held_sibling(handle);
	if (primary->watch.id == handle->id)
		WRITE_ONCE(primary->watch.id, sibling->id);
	return false;
}

/**
 * struct handle_end - what to release for a handle that was removed from the table
 * @hold: its reference
 * @id: its number
 * @handle: its struct, to be freed; NULL: it is the primary of other handles, which keep it
 * @primary: its primary handle, to be freed, if this was the last of the group; otherwise NULL
 */
struct handle_end {
	struct tensor_hold hold;
	u32 id;
	struct tensor_handle *handle;
	struct tensor_handle *primary;
};

/*
 * Remove a handle from the table and the tree; called with the table's lock held. The struct of a
 * primary handle is freed by whichever thread removes the last of its group: without the lock only
 * @end may be read.
 */
static void handle_remove(struct tensor_client *client, struct tensor_handle *handle,
			  struct handle_end *end)
{
	struct tensor_handle *primary = handle->primary;

	*end = (struct handle_end){
		.hold = handle->hold,
		.id = handle->id,
		.handle = handle != primary ? handle : NULL,
		.primary = primary_leave(handle) ? primary : NULL,
	};
	rb_erase(&handle->node, &client->held);
	__xa_erase(&client->handles, handle->id);
}

static void handle_retire(struct tensor_client *client, const struct handle_end *end)
{
	struct tensor_buf *buf = end->hold.buf;
	bool seen = false;

	trace_tensor_handle_retire(client->id, end->id, &end->hold);
	atomic_dec(&client->count);
	tensor_limit_uncount(client->owner->user);
	atomic64_sub((u64)end->hold.count << PAGE_SHIFT, &client->bytes);
	atomic_dec(&buf->handles);
	if (end->primary)
		seen = tensor_watch_leave(&end->primary->watch);
	tensor_event_post(buf, TENSOR_EVENT_GONE, client->id);
	tensor_buf_put(buf);
	kfree(end->handle);
	if (seen)
		kfree_rcu(end->primary, rcu);
	else
		kfree(end->primary);
}

/**
 * tensor_client_free() - close all handles and free a client, at the last close of the device
 * @client: the client
 */
void tensor_client_free(struct tensor_client *client)
{
	struct tensor_handle *handle;
	struct handle_end end;
	unsigned long id;

	tensor_registry_del_client(&client->listed);
	if (atomic_read(&client->count))
		tensor_notify_death(client->owner, client->id, atomic64_read(&client->bytes),
				    atomic_read(&client->count));
	xa_for_each(&client->handles, id, handle) {
		xa_lock(&client->handles);
		handle_remove(client, handle, &end);
		xa_unlock(&client->handles);
		handle_retire(client, &end);
		cond_resched();
	}
	/* the table may still contain numbers that are only reserved */
	xa_destroy(&client->handles);
	tensor_inbox_fini(&client->inbox);
	tensor_owner_put(client->owner);
	kfree_rcu(client, rcu);
	tensor_fs_put();
}

/* Called with the table's lock held, which this may release while it allocates. */
static int handle_number_from(struct tensor_client *client, u32 from, u32 *id)
{
	return __xa_alloc(&client->handles, id, NULL, XA_LIMIT(from, TENSOR_MAX_HANDLES),
			  TENSOR_GFP_XA);
}

/*
 * The next free number. Not xa_alloc_cyclic(), which also restarts at 1 when memory is short: the
 * number of a closed handle would be reused soon. For the same reason the search is repeated if
 * other threads have advanced meanwhile; the node is allocated then.
 */
static int handle_number(struct tensor_client *client, u32 *id)
{
	u32 from;
	int err;

	xa_lock(&client->handles);
	for (;;) {
		from = client->next;
		err = handle_number_from(client, from, id);
		if (err == -EBUSY)
			err = handle_number_from(client, 1, id);
		if (err || client->next == from)
			break;
		__xa_erase(&client->handles, *id);
	}
	if (!err)
		client->next = *id + 1;
	xa_unlock(&client->handles);
	return err;
}

/**
 * tensor_handle_new() - reserve a handle
 * @client: the client
 * @hold: a reference, which passes to the handle unless this fails
 *
 * Return: the handle, which cannot be found before tensor_handle_publish(); or an ERR_PTR():
 * -EMFILE: the table is full; -EDQUOT: the user has as many handles as the limit permits; -ENOMEM.
 */
struct tensor_handle *tensor_handle_new(struct tensor_client *client,
					const struct tensor_hold *hold)
{
	struct tensor_handle *handle;
	int err = tensor_limit_count(client->owner->user);

	if (err) {
		tensor_notify_limit(client->id, 0);
		return ERR_PTR(err);
	}
	err = -ENOMEM;
	handle = kzalloc(sizeof(*handle), TENSOR_GFP);
	if (!handle)
		goto uncount;
	handle->hold = *hold;
	handle->uses = 1;
	err = handle_number(client, &handle->id);
	if (err)
		goto free_handle;
	return handle;

free_handle:
	kfree(handle);
uncount:
	tensor_limit_uncount(client->owner->user);
	return ERR_PTR(err == -EBUSY ? -EMFILE : err);
}

/**
 * tensor_handle_publish() - make a reserved handle usable
 * @client: the client
 * @handle: from tensor_handle_new(); passes to this function
 */
void tensor_handle_publish(struct tensor_client *client, struct tensor_handle *handle)
{
	atomic_inc(&client->count);
	atomic64_add((u64)handle->hold.count << PAGE_SHIFT, &client->bytes);
	atomic_inc(&handle->hold.buf->handles);
	trace_tensor_handle_publish(client->id, handle->id, &handle->hold);
	xa_lock(&client->handles);
	held_insert(client, handle);
	primary_join(client, handle);
	/* the slot is reserved, so this does not allocate */
	__xa_store(&client->handles, handle->id, handle, 0);
	xa_unlock(&client->handles);
}

/**
 * tensor_handle_cancel() - undo tensor_handle_new() and drop the reference
 * @client: the client
 * @handle: the handle
 */
void tensor_handle_cancel(struct tensor_client *client, struct tensor_handle *handle)
{
	xa_erase(&client->handles, handle->id);
	tensor_limit_uncount(client->owner->user);
	tensor_buf_put(handle->hold.buf);
	kfree(handle);
}

/**
 * tensor_handle_reuse() - count another use of an existing handle
 * @client: the client
 * @hold: its buffer, range and rights; the reference stays with the caller
 *
 * Return: its number, to be closed once more; 0: there is none, or its count of uses is at the
 * maximum.
 */
u32 tensor_handle_reuse(struct tensor_client *client, const struct tensor_hold *hold)
{
	struct tensor_handle *handle;
	u32 id = 0;

	xa_lock(&client->handles);
	handle = held_find(client, hold);
	if (handle && handle->uses < UINT_MAX) {
		handle->uses++;
		id = handle->id;
	}
	xa_unlock(&client->handles);
	return id;
}

/**
 * tensor_handle_get() - find a handle
 * @client: the client
 * @id: its number
 * @hold: filled in, with a reference for the caller
 *
 * Return: 0 or -ENOENT.
 */
int tensor_handle_get(struct tensor_client *client, u32 id, struct tensor_hold *hold)
{
	struct tensor_handle *handle;

	/* the reference is taken under the lock, so that the handle cannot be closed meanwhile */
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
 * tensor_handle_close() - drop one use of a handle; the last one removes it from the table
 * @client: the client
 * @id: its number
 *
 * Return: 0 or -ENOENT.
 */
int tensor_handle_close(struct tensor_client *client, u32 id)
{
	struct tensor_handle *handle;
	struct handle_end end = {};

	xa_lock(&client->handles);
	/* also NULL for a number that is only reserved */
	handle = xa_load(&client->handles, id);
	if (handle && !--handle->uses)
		handle_remove(client, handle, &end);
	xa_unlock(&client->handles);
	if (end.hold.buf)
		handle_retire(client, &end);
	return handle ? 0 : -ENOENT;
}

/**
 * tensor_handle_next() - iterate over the handles of a client
 * @client: the client; the caller keeps it alive
 * @id: the least number to return; set to the number that was found
 * @row: filled in
 *
 * Return: whether there is a handle with that number or a larger one.
 */
bool tensor_handle_next(struct tensor_client *client, unsigned long *id,
			struct tensor_handle_row *row)
{
	struct tensor_handle *handle;

	/* the handle may be closed as soon as the lock is released */
	xa_lock(&client->handles);
	handle = xa_find(&client->handles, id, ULONG_MAX, XA_PRESENT);
	if (handle)
		*row = (struct tensor_handle_row){
			.client = client->id,
			.id = handle->id,
			.buf = handle->hold.buf->id,
			.rights = handle->hold.rights,
			.state = tensor_hold_state(&handle->hold),
		};
	xa_unlock(&client->handles);
	return handle;
}
