// SPDX-License-Identifier: GPL-2.0-only
/*
 * All clients, buffers and exported files, by id, for those who may look: netlink.
 *
 * Nothing is found through here to be used: an entry is no reference, and may be read only under
 * the mutex, which an object takes to leave before it is torn down. Ids only ever grow, so a dump
 * that comes back later goes on behind the last id it told, whatever has gone in between.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "core.h"
#include "netlink.h"

/* Guards the tables, the totals, and with them the life of what a dump is reading. */
DEFINE_MUTEX(tensor_registry_lock);
DEFINE_XARRAY_FLAGS(tensor_bufs, XA_FLAGS_ACCOUNT);
DEFINE_XARRAY_FLAGS(tensor_clients, XA_FLAGS_ACCOUNT);
DEFINE_XARRAY_FLAGS(tensor_exports, XA_FLAGS_ACCOUNT);

static atomic64_t last_id;
static struct tensor_totals totals = { .generation = 1, .exports_generation = 1 };

/**
 * tensor_registry_id() - a number for a new object
 *
 * Return: 1, 2, ...
 */
u64 tensor_registry_id(void)
{
	return atomic64_inc_return(&last_id);
}

/* 0 would tell netlink that consistency is not followed. */
static void changed(u32 *generation)
{
	lockdep_assert_held(&tensor_registry_lock);
	if (!++*generation)
		*generation = 1;
}

static void totals_changed(void)
{
	changed(&totals.generation);
}

/**
 * tensor_registry_add_buf() - list a buffer that is complete
 * @buf: the buffer
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_registry_add_buf(struct tensor_buf *buf)
{
	int err;

	mutex_lock(&tensor_registry_lock);
	err = xa_insert(&tensor_bufs, buf->id, buf, GFP_KERNEL);
	if (!err) {
		totals.bufs++;
		totals.bytes += buf->bytes;
		totals.huge_bytes += buf->huge_bytes;
		totals_changed();
	}
	mutex_unlock(&tensor_registry_lock);
	/* nobody else has the buffer yet, so this comes before all that happens to it */
	if (!err)
		tensor_notify_alloc(buf);
	return err;
}

/**
 * tensor_registry_del_buf() - forget a buffer
 * @buf: the buffer; nobody reads it any more on return
 *
 * One that was never listed is left alone.
 */
void tensor_registry_del_buf(struct tensor_buf *buf)
{
	bool listed;

	mutex_lock(&tensor_registry_lock);
	listed = xa_erase(&tensor_bufs, buf->id);
	if (listed) {
		totals.bufs--;
		totals.bytes -= buf->bytes;
		totals.huge_bytes -= buf->huge_bytes;
		totals_changed();
	}
	mutex_unlock(&tensor_registry_lock);
	if (listed)
		tensor_notify_free(buf);
}

/**
 * tensor_registry_add_client() - list a client that is complete
 * @client: the client
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_registry_add_client(struct tensor_client *client)
{
	int err;

	mutex_lock(&tensor_registry_lock);
	err = xa_insert(&tensor_clients, client->id, client, GFP_KERNEL);
	if (!err) {
		totals.clients++;
		totals_changed();
	}
	mutex_unlock(&tensor_registry_lock);
	return err;
}

/**
 * tensor_registry_del_client() - forget a client
 * @client: the client, with the handles it has not closed; nobody reads it any more on return
 */
void tensor_registry_del_client(struct tensor_client *client)
{
	mutex_lock(&tensor_registry_lock);
	xa_erase(&tensor_clients, client->id);
	totals.clients--;
	totals_changed();
	mutex_unlock(&tensor_registry_lock);
	if (atomic_read(&client->count))
		tensor_notify_death(client);
}

/**
 * tensor_registry_add_export() - list a file that EXPORT made
 * @exported: with @exported->hold and @exported->kind; the hold lives until it is deleted
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_registry_add_export(struct tensor_exported *exported)
{
	int err;

	exported->owner = tensor_owner_current(exported->hold->buf->owner);
	if (!exported->owner)
		return -ENOMEM;
	exported->id = tensor_registry_id();
	exported->born = ktime_get_boottime_ns();
	mutex_lock(&tensor_registry_lock);
	err = xa_insert(&tensor_exports, exported->id, exported, GFP_KERNEL);
	if (!err) {
		totals.exports[exported->kind]++;
		changed(&totals.exports_generation);
	}
	mutex_unlock(&tensor_registry_lock);
	if (err)
		tensor_owner_put(exported->owner);
	return err;
}

/**
 * tensor_registry_del_export() - forget a file that EXPORT made
 * @exported: the file; nobody reads it any more on return
 */
void tensor_registry_del_export(struct tensor_exported *exported)
{
	mutex_lock(&tensor_registry_lock);
	xa_erase(&tensor_exports, exported->id);
	totals.exports[exported->kind]--;
	changed(&totals.exports_generation);
	mutex_unlock(&tensor_registry_lock);
	tensor_owner_put(exported->owner);
}

/**
 * tensor_registry_generation() - what changes with every change
 * @exports: of exported files; otherwise of clients and buffers
 *
 * The caller holds the registry's mutex.
 *
 * Return: a number that is not 0.
 */
u32 tensor_registry_generation(bool exports)
{
	lockdep_assert_held(&tensor_registry_lock);
	return exports ? totals.exports_generation : totals.generation;
}

/**
 * tensor_registry_totals() - read the counts, all of one moment
 * @out: filled in
 */
void tensor_registry_totals(struct tensor_totals *out)
{
	mutex_lock(&tensor_registry_lock);
	*out = totals;
	mutex_unlock(&tensor_registry_lock);
}
