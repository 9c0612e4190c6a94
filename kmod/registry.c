// SPDX-License-Identifier: GPL-2.0-only
/*
 * All clients and buffers by id, and the exported files of each buffer, for netlink.
 *
 * An entry is no reference, and may be read only under the lock of its table, which an object takes
 * to leave before it is destroyed; a reader copies the object. Memory for an entry is allocated
 * without the lock. Ids only grow, so a dump resumes behind its last id, whatever objects were
 * removed in between.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "netlink/notify.h"
#include "registry.h"

DEFINE_XARRAY_FLAGS(tensor_bufs, XA_FLAGS_ACCOUNT);
DEFINE_XARRAY_FLAGS(tensor_clients, XA_FLAGS_ACCOUNT);

/* Guards what follows; innermost. */
static DEFINE_SPINLOCK(totals_lock);
static struct tensor_totals totals;
/* Change with each change of clients and buffers, and of exports. */
static u32 generations[2] = { 1, 1 };

static atomic64_t last_id;

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
static void changed(bool exports)
{
	lockdep_assert_held(&totals_lock);
	if (!++generations[exports])
		generations[exports] = 1;
}

static void count_buf(const struct tensor_buf *buf, bool add)
{
	spin_lock(&totals_lock);
	totals.bufs += add ? 1 : -1;
	totals.bytes += add ? buf->bytes : -buf->bytes;
	totals.huge_bytes += add ? buf->huge_bytes : -buf->huge_bytes;
	changed(false);
	spin_unlock(&totals_lock);
}

static void count_client(bool add)
{
	spin_lock(&totals_lock);
	totals.clients += add ? 1 : -1;
	changed(false);
	spin_unlock(&totals_lock);
}

static void count_export(const struct tensor_exported *exported, bool add)
{
	spin_lock(&totals_lock);
	totals.exports[exported->kind] += add ? 1 : -1;
	changed(true);
	spin_unlock(&totals_lock);
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

	xa_lock(&tensor_bufs);
	/* lets go of the lock to find memory, and has it when it stores */
	err = __xa_insert(&tensor_bufs, buf->id, buf, TENSOR_GFP_XA);
	if (!err)
		count_buf(buf, true);
	xa_unlock(&tensor_bufs);
	/* before anything else can happen to it */
	if (!err)
		tensor_notify_alloc(buf);
	return err;
}

/**
 * tensor_registry_del_buf() - forget a buffer
 * @buf: the buffer; it is not read any more on return
 *
 * Return: whether it was listed.
 */
bool tensor_registry_del_buf(struct tensor_buf *buf)
{
	bool listed;

	xa_lock(&tensor_bufs);
	listed = __xa_erase(&tensor_bufs, buf->id);
	if (listed)
		count_buf(buf, false);
	xa_unlock(&tensor_bufs);
	if (listed)
		tensor_notify_free(buf);
	return listed;
}

/**
 * tensor_registry_add_client() - list a client that is complete
 * @client: the client
 * @id: its id
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_registry_add_client(struct tensor_client *client, u64 id)
{
	int err;

	xa_lock(&tensor_clients);
	err = __xa_insert(&tensor_clients, id, client, TENSOR_GFP_XA);
	if (!err)
		count_client(true);
	xa_unlock(&tensor_clients);
	return err;
}

/**
 * tensor_registry_del_client() - forget a client
 * @id: its id; it is not read any more on return
 */
void tensor_registry_del_client(u64 id)
{
	xa_lock(&tensor_clients);
	__xa_erase(&tensor_clients, id);
	count_client(false);
	xa_unlock(&tensor_clients);
}

/**
 * tensor_registry_add_export() - list a file that EXPORT made
 * @exported: filled in
 * @hold: what it reaches and permits; lives until it is deleted
 * @kind: enum tensor_export_kind
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_registry_add_export(struct tensor_exported *exported, const struct tensor_hold *hold,
			       u32 kind)
{
	struct xarray *exports = &hold->buf->exports;
	struct tensor_owner *owner = tensor_owner_current(hold->buf->owner);
	int err;

	if (!owner)
		return -ENOMEM;
	*exported = (struct tensor_exported){
		.id = tensor_registry_id(),
		.born = ktime_get_boottime_ns(),
		.kind = kind,
		.hold = hold,
		.owner = owner,
	};
	xa_lock(exports);
	err = __xa_insert(exports, exported->id, exported, TENSOR_GFP_XA);
	if (!err)
		count_export(exported, true);
	xa_unlock(exports);
	if (err) {
		tensor_owner_put(owner);
		exported->id = 0;
	}
	return err;
}

/**
 * tensor_registry_del_export() - forget a file that EXPORT made
 * @exported: the file; it is not read any more on return. One that is not listed is left alone
 */
void tensor_registry_del_export(struct tensor_exported *exported)
{
	struct xarray *exports;

	if (!exported->id)
		return;
	exports = &exported->hold->buf->exports;
	xa_lock(exports);
	__xa_erase(exports, exported->id);
	count_export(exported, false);
	xa_unlock(exports);
	tensor_owner_put(exported->owner);
}

/**
 * tensor_registry_generation() - what changes with every change
 * @exports: of exported files; otherwise of clients and buffers
 *
 * Return: a number that is not 0.
 */
u32 tensor_registry_generation(bool exports)
{
	u32 generation;

	spin_lock(&totals_lock);
	generation = generations[exports];
	spin_unlock(&totals_lock);
	return generation;
}

/**
 * tensor_registry_totals() - read the counts, all of one moment
 * @out: filled in
 */
void tensor_registry_totals(struct tensor_totals *out)
{
	spin_lock(&totals_lock);
	*out = totals;
	spin_unlock(&totals_lock);
}

/**
 * tensor_registry_exit() - after the last client and buffer
 */
void tensor_registry_exit(void)
{
	/* an insertion that failed half-way leaves nodes without an entry */
	xa_destroy(&tensor_bufs);
	xa_destroy(&tensor_clients);
}
