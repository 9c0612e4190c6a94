// SPDX-License-Identifier: GPL-2.0-only
/*
 * All clients and buffers by id, and the exported files of each buffer, for netlink.
 *
 * An entry holds no reference and may be read only under the lock of its table; a reader copies the
 * object. Ids only grow, so a dump resumes after its last id, whatever was removed in between.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/spinlock.h>

#include "../netlink/notify.h"
#include "registry.h"

struct tensor_table tensor_bufs = TENSOR_TABLE(tensor_bufs);
struct tensor_table tensor_clients = TENSOR_TABLE(tensor_clients);

/* Guards totals and generations; innermost lock. */
static DEFINE_SPINLOCK(totals_lock);
static struct tensor_totals totals;
/* Incremented with each change of clients and buffers, and of exports. */
static u32 generations[2] = { 1, 1 };

static atomic64_t last_id;

/**
 * tensor_registry_id() - allocate the id of a new object
 *
 * Return: 1, 2, ...
 */
u64 tensor_registry_id(void)
{
	return atomic64_inc_return(&last_id);
}

/* 0 would mean to netlink that consistency is not tracked, so it is skipped. */
static void generation_next(bool exports)
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
	generation_next(false);
	spin_unlock(&totals_lock);
}

static void count_client(bool add)
{
	spin_lock(&totals_lock);
	totals.clients += add ? 1 : -1;
	generation_next(false);
	spin_unlock(&totals_lock);
}

static void count_export(const struct tensor_exported *exported, bool add)
{
	spin_lock(&totals_lock);
	totals.exports[exported->kind] += add ? 1 : -1;
	generation_next(true);
	spin_unlock(&totals_lock);
}

/**
 * tensor_registry_add_buf() - add a complete buffer
 * @buf: the buffer
 */
void tensor_registry_add_buf(struct tensor_buf *buf)
{
	spin_lock(&tensor_bufs.lock);
	tensor_table_add(&tensor_bufs, &buf->listed, buf->id);
	count_buf(buf, true);
	spin_unlock(&tensor_bufs.lock);
	/* before any other event of the buffer */
	tensor_notify_alloc(buf);
}

/**
 * tensor_registry_del_buf() - remove a buffer
 * @buf: the buffer; no reader uses it on return. Does nothing if it was not added
 */
void tensor_registry_del_buf(struct tensor_buf *buf)
{
	if (!buf->listed.id)
		return;
	spin_lock(&tensor_bufs.lock);
	tensor_table_del(&tensor_bufs, &buf->listed);
	count_buf(buf, false);
	spin_unlock(&tensor_bufs.lock);
	tensor_notify_free(buf);
}

/**
 * tensor_registry_add_client() - add a complete client
 * @client: its entry in the table
 * @id: its id
 */
void tensor_registry_add_client(struct tensor_entry *client, u64 id)
{
	spin_lock(&tensor_clients.lock);
	tensor_table_add(&tensor_clients, client, id);
	count_client(true);
	spin_unlock(&tensor_clients.lock);
}

/**
 * tensor_registry_del_client() - remove a client
 * @client: its entry in the table; no reader uses the client on return
 */
void tensor_registry_del_client(struct tensor_entry *client)
{
	spin_lock(&tensor_clients.lock);
	tensor_table_del(&tensor_clients, client);
	count_client(false);
	spin_unlock(&tensor_clients.lock);
}

/**
 * tensor_registry_add_export() - add a file that EXPORT made
 * @exported: filled in
 * @hold: its range and rights; must live until tensor_registry_del_export()
 * @kind: enum tensor_export_kind
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_registry_add_export(struct tensor_exported *exported, const struct tensor_hold *hold,
			       u32 kind)
{
	struct tensor_table *exports = &hold->buf->exports;

	exported->born = ktime_get_boottime_ns();
	exported->kind = kind;
	exported->hold = hold;
	exported->owner = tensor_owner_current(hold->buf->owner);
	if (!exported->owner)
		return -ENOMEM;
	spin_lock(&exports->lock);
	tensor_table_add(exports, &exported->listed, tensor_registry_id());
	count_export(exported, true);
	spin_unlock(&exports->lock);
	return 0;
}

/**
 * tensor_registry_del_export() - remove a file that EXPORT made
 * @exported: the file; no reader uses it on return. Does nothing if it was not added
 */
void tensor_registry_del_export(struct tensor_exported *exported)
{
	struct tensor_table *exports;

	if (!exported->listed.id)
		return;
	exports = &exported->hold->buf->exports;
	spin_lock(&exports->lock);
	tensor_table_del(exports, &exported->listed);
	count_export(exported, false);
	spin_unlock(&exports->lock);
	tensor_owner_put(exported->owner);
}

/**
 * tensor_registry_generation() - the number that changes with every change
 * @exports: of exported files instead of clients and buffers
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
 * tensor_registry_totals() - read a consistent snapshot of the counts
 * @out: filled in
 */
void tensor_registry_totals(struct tensor_totals *out)
{
	spin_lock(&totals_lock);
	*out = totals;
	spin_unlock(&totals_lock);
}
