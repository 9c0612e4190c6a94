// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink attributes of one object.
 *
 * The object is copied under the lock of its table; the copy holds a reference to the owner only.
 * It is put into a message without a lock. Numbers of processes and users are translated to the
 * namespaces of the reader, which is current.
 */
#include <linux/cred.h>
#include <linux/kdev_t.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/tensor_netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>

#include "../buffer/purgelist.h"
#include "../buffer/registry.h"
#include "../client/client.h"
#include "row.h"

static int put_u64(struct sk_buff *skb, int attr, u64 value, int pad)
{
	return nla_put_u64_64bit(skb, attr, value, pad);
}

static void client_copy(const struct tensor_client *client, struct tensor_client_row *row)
{
	row->owner = tensor_owner_get(client->owner);
	row->id = client->id;
	row->born = client->born;
	row->bytes = atomic64_read(&client->bytes);
	row->handles = atomic_read(&client->count);
}

/**
 * tensor_client_next() - copy a client
 * @id: the least id to return
 * @row: filled in; the caller drops the reference to its owner
 *
 * Return: whether there is a client with that id or a larger one; otherwise @row has the generation
 * only.
 */
bool tensor_client_next(u64 id, struct tensor_client_row *row)
{
	struct tensor_entry *entry;

	memset(row, 0, sizeof(*row));
	spin_lock(&tensor_clients.lock);
	row->generation = tensor_registry_generation(false);
	entry = tensor_table_next(&tensor_clients, id);
	if (entry)
		client_copy(container_of(entry, struct tensor_client, listed), row);
	spin_unlock(&tensor_clients.lock);
	return entry;
}

static void buf_copy(struct tensor_buf *buf, struct tensor_buf_row *row)
{
	row->owner = tensor_owner_get(buf->owner);
	row->id = buf->id;
	row->dev = new_encode_dev(buf->inode.i_sb->s_dev);
	row->client = buf->client;
	row->born = buf->born;
	row->bytes = buf->bytes;
	row->kind = buf->backing->kind;
	row->handles = atomic_read(&buf->handles);
	row->files = atomic_read(&buf->files);
	row->mappings = atomic_read(&buf->mappings);
	row->dmabufs = atomic_read(&buf->dmabufs);
	row->attachments = atomic_read(&buf->attachments);
	spin_lock(&buf->spin);
	row->memory = buf->memory;
	row->desc = buf->desc;
	row->state = buf->state;
	row->seals = buf->seals;
	spin_unlock(&buf->spin);
	if (row->desc.bits)
		row->state |= TENSOR_STATE_META;
}

/**
 * tensor_buf_next() - copy a buffer
 * @id: the least id to return
 * @row: filled in; the caller drops the reference to its owner
 *
 * Return: as tensor_client_next().
 */
bool tensor_buf_next(u64 id, struct tensor_buf_row *row)
{
	struct tensor_entry *entry;

	memset(row, 0, sizeof(*row));
	spin_lock(&tensor_bufs.lock);
	row->generation = tensor_registry_generation(false);
	entry = tensor_table_next(&tensor_bufs, id);
	if (entry)
		buf_copy(container_of(entry, struct tensor_buf, listed), row);
	spin_unlock(&tensor_bufs.lock);
	return entry;
}

/**
 * tensor_export_copy() - copy a file that EXPORT made
 * @exported: the file; the lock of the table it is in is held
 * @row: filled in; the caller drops the reference to its owner
 */
void tensor_export_copy(const struct tensor_exported *exported, struct tensor_export_row *row)
{
	const struct tensor_hold *hold = exported->hold;

	*row = (struct tensor_export_row){
		.owner = tensor_owner_get(exported->owner),
		.id = exported->listed.id,
		.born = exported->born,
		.buf = hold->buf->id,
		.first = hold->first,
		.count = hold->count,
		.rights = hold->rights,
		.state = tensor_hold_state(hold),
		.kind = exported->kind,
	};
}

static u32 row_uid(const struct tensor_owner *owner)
{
	return from_kuid_munged(current_user_ns(), owner->uid);
}

static u64 row_age(u64 born)
{
	return ktime_get_boottime_ns() - born;
}

/**
 * tensor_row_client() - add the attributes of a client
 * @skb: the message
 * @row: the client
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_client(struct sk_buff *skb, const struct tensor_client_row *row)
{
	const int pad = TENSOR_A_CLIENT_PAD;

	if (put_u64(skb, TENSOR_A_CLIENT_ID, row->id, pad) ||
	    nla_put_u32(skb, TENSOR_A_CLIENT_PID, pid_vnr(row->owner->pid)) ||
	    nla_put_u32(skb, TENSOR_A_CLIENT_UID, row_uid(row->owner)) ||
	    nla_put_string(skb, TENSOR_A_CLIENT_COMM, row->owner->comm) ||
	    nla_put_u32(skb, TENSOR_A_CLIENT_HANDLES, row->handles) ||
	    put_u64(skb, TENSOR_A_CLIENT_BYTES, row->bytes, pad) ||
	    put_u64(skb, TENSOR_A_CLIENT_AGE_NS, row_age(row->born), pad))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_owner(struct sk_buff *skb, const struct tensor_buf_row *row)
{
	const int pad = TENSOR_A_BUF_PAD;

	if (put_u64(skb, TENSOR_A_BUF_CLIENT, row->client, pad) ||
	    nla_put_u32(skb, TENSOR_A_BUF_PID, pid_vnr(row->owner->pid)) ||
	    nla_put_u32(skb, TENSOR_A_BUF_UID, row_uid(row->owner)) ||
	    nla_put_string(skb, TENSOR_A_BUF_COMM, row->owner->comm) ||
	    put_u64(skb, TENSOR_A_BUF_AGE_NS, row_age(row->born), pad))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_pages(struct sk_buff *skb, const struct tensor_buf_row *row)
{
	const struct tensor_memory *memory = &row->memory;
	const int pad = TENSOR_A_BUF_PAD;

	if (put_u64(skb, TENSOR_A_BUF_BYTES, row->bytes, pad) ||
	    put_u64(skb, TENSOR_A_BUF_HUGE_BYTES, memory->huge_bytes, pad) ||
	    put_u64(skb, TENSOR_A_BUF_PINNED_BYTES, memory->pinned_bytes, pad) ||
	    nla_put_s32(skb, TENSOR_A_BUF_NODE, memory->node) ||
	    nla_put_u32(skb, TENSOR_A_BUF_HANDLES, row->handles) ||
	    nla_put_u32(skb, TENSOR_A_BUF_FILES, row->files) ||
	    nla_put_u32(skb, TENSOR_A_BUF_MAPPINGS, row->mappings) ||
	    nla_put_u32(skb, TENSOR_A_BUF_DMABUFS, row->dmabufs) ||
	    nla_put_u32(skb, TENSOR_A_BUF_ATTACHMENTS, row->attachments) ||
	    nla_put(skb, TENSOR_A_BUF_CHUNKS, sizeof(memory->count), memory->count))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_desc(struct sk_buff *skb, const struct tensor_desc *desc)
{
	const int pad = TENSOR_A_BUF_PAD;
	const int len = desc->ndim * sizeof(s64);

	if (desc->label[0] && nla_put_string(skb, TENSOR_A_BUF_LABEL, desc->label))
		return -EMSGSIZE;
	if (nla_put_u32(skb, TENSOR_A_BUF_BITS, desc->bits))
		return -EMSGSIZE;
	if (!desc->bits)
		return 0;
	if (nla_put_u32(skb, TENSOR_A_BUF_DTYPE, desc->dtype) ||
	    put_u64(skb, TENSOR_A_BUF_OFFSET, desc->offset, pad) ||
	    nla_put_64bit(skb, TENSOR_A_BUF_SIZES, len, desc->sizes, pad) ||
	    nla_put_64bit(skb, TENSOR_A_BUF_STRIDES, len, desc->strides, pad))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_buf() - add the attributes of a buffer
 * @skb: the message
 * @row: the buffer
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_buf(struct sk_buff *skb, const struct tensor_buf_row *row)
{
	const int pad = TENSOR_A_BUF_PAD;

	if (put_u64(skb, TENSOR_A_BUF_ID, row->id, pad) ||
	    put_u64(skb, TENSOR_A_BUF_DEV, row->dev, pad) || put_buf_owner(skb, row) ||
	    put_buf_pages(skb, row) || nla_put_u32(skb, TENSOR_A_BUF_KIND, row->kind) ||
	    nla_put_u32(skb, TENSOR_A_BUF_STATE, row->state) ||
	    nla_put_u32(skb, TENSOR_A_BUF_SEALS, row->seals) || put_buf_desc(skb, &row->desc))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_handle() - add the attributes of a handle
 * @skb: the message
 * @row: from tensor_handle_next()
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_handle(struct sk_buff *skb, const struct tensor_handle_row *row)
{
	const int pad = TENSOR_A_HANDLE_PAD;

	if (put_u64(skb, TENSOR_A_HANDLE_CLIENT, row->client, pad) ||
	    nla_put_u32(skb, TENSOR_A_HANDLE_ID, row->id) ||
	    put_u64(skb, TENSOR_A_HANDLE_BUF, row->buf, pad) ||
	    nla_put_u32(skb, TENSOR_A_HANDLE_STATE, row->state) ||
	    nla_put_u32(skb, TENSOR_A_HANDLE_RIGHTS, row->rights))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_export() - add the attributes of an exported file
 * @skb: the message
 * @row: the file
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_export(struct sk_buff *skb, const struct tensor_export_row *row)
{
	const int pad = TENSOR_A_EXPORT_PAD;

	if (put_u64(skb, TENSOR_A_EXPORT_ID, row->id, pad) ||
	    put_u64(skb, TENSOR_A_EXPORT_BUF, row->buf, pad) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_KIND, row->kind) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_STATE, row->state) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_RIGHTS, row->rights) ||
	    put_u64(skb, TENSOR_A_EXPORT_OFFSET, row->first << PAGE_SHIFT, pad) ||
	    put_u64(skb, TENSOR_A_EXPORT_BYTES, row->count << PAGE_SHIFT, pad) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_PID, pid_vnr(row->owner->pid)) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_UID, row_uid(row->owner)) ||
	    nla_put_string(skb, TENSOR_A_EXPORT_COMM, row->owner->comm) ||
	    put_u64(skb, TENSOR_A_EXPORT_AGE_NS, row_age(row->born), pad))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_user() - add the attributes of a user
 * @skb: the message
 * @user: the user; the caller has a reference
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_user(struct sk_buff *skb, const struct tensor_user *user)
{
	const int pad = TENSOR_A_USER_PAD;
	u32 uid = from_kuid_munged(current_user_ns(), user->uid);

	if (nla_put_u32(skb, TENSOR_A_USER_UID, uid) ||
	    put_u64(skb, TENSOR_A_USER_BYTES, atomic64_read(&user->used), pad) ||
	    put_u64(skb, TENSOR_A_USER_LIMIT_BYTES, tensor_limit_user_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_USER_REFUSED, atomic64_read(&user->refused), pad) ||
	    put_u64(skb, TENSOR_A_USER_OBJECTS, atomic64_read(&user->objects), pad))
		return -EMSGSIZE;
	return 0;
}

static int put_stat_pool(struct sk_buff *skb)
{
	const int pad = TENSOR_A_STAT_PAD;
	struct tensor_pool_stat pool;

	tensor_pool_stat(&pool);
	if (put_u64(skb, TENSOR_A_STAT_POOL_BYTES, pool.bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_POOL_LIMIT_BYTES, pool.limit_bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_POOL_HITS, pool.hits, pad) ||
	    put_u64(skb, TENSOR_A_STAT_POOL_MISSES, pool.misses, pad) ||
	    put_u64(skb, TENSOR_A_STAT_POOL_ZEROED_BYTES, pool.zeroed_bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_POOL_FETCHED_BYTES, pool.fetched_bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_POOL_RECLAIMED_BYTES, pool.reclaimed_bytes, pad))
		return -EMSGSIZE;
	return 0;
}

static int put_stat_limits(struct sk_buff *skb)
{
	u64 purgeable = (u64)tensor_purgelist_pages() << PAGE_SHIFT;
	const int pad = TENSOR_A_STAT_PAD;

	if (put_u64(skb, TENSOR_A_STAT_LIMIT_BYTES, tensor_limit_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_REFUSED, tensor_limit_refused(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_USED_BYTES, tensor_limit_used(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_PURGEABLE_BYTES, purgeable, pad) ||
	    put_u64(skb, TENSOR_A_STAT_LINGER_BYTES, tensor_linger_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_USER_LIMIT_BYTES, tensor_limit_user_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_USER_REFUSED, tensor_limit_refused_user(), pad))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_stat() - add the totals
 * @skb: the message
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_stat(struct sk_buff *skb)
{
	const int pad = TENSOR_A_STAT_PAD;
	struct tensor_totals totals;

	tensor_registry_totals(&totals);
	if (put_u64(skb, TENSOR_A_STAT_CLIENTS, totals.clients, pad) ||
	    put_u64(skb, TENSOR_A_STAT_BUFS, totals.bufs, pad) ||
	    put_u64(skb, TENSOR_A_STAT_BYTES, totals.bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_HUGE_BYTES, totals.huge_bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_FILES, totals.exports[TENSOR_EXPORT_KIND_FD], pad) ||
	    put_u64(skb, TENSOR_A_STAT_DMABUFS, totals.exports[TENSOR_EXPORT_KIND_DMABUF], pad) ||
	    put_stat_limits(skb) || put_stat_pool(skb))
		return -EMSGSIZE;
	return 0;
}
