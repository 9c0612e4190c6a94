// SPDX-License-Identifier: GPL-2.0-only
/*
 * One object as netlink attributes.
 *
 * A number of a process or a user is told as the reader knows it: current is who reads. What a row
 * says was true at one moment; the registry's mutex, which the callers hold, keeps the object there
 * meanwhile.
 */
#include <linux/cred.h>
#include <linux/kdev_t.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/tensor_netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>

#include "core.h"
#include "netlink.h"

static int put_u64(struct sk_buff *skb, int attr, u64 value, int pad)
{
	return nla_put_u64_64bit(skb, attr, value, pad);
}

/**
 * tensor_row_client() - what is to be said about a client
 * @skb: where to
 * @client: a client that is listed
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_client(struct sk_buff *skb, const struct tensor_client *client)
{
	const struct tensor_owner *owner = client->owner;
	const int pad = TENSOR_A_CLIENT_PAD;
	u32 uid = from_kuid_munged(current_user_ns(), owner->uid);

	if (put_u64(skb, TENSOR_A_CLIENT_ID, client->id, pad) ||
	    nla_put_u32(skb, TENSOR_A_CLIENT_PID, pid_vnr(owner->pid)) ||
	    nla_put_u32(skb, TENSOR_A_CLIENT_UID, uid) ||
	    nla_put_string(skb, TENSOR_A_CLIENT_COMM, owner->comm) ||
	    nla_put_u32(skb, TENSOR_A_CLIENT_HANDLES, atomic_read(&client->count)) ||
	    put_u64(skb, TENSOR_A_CLIENT_BYTES, atomic64_read(&client->bytes), pad) ||
	    put_u64(skb, TENSOR_A_CLIENT_AGE_NS, ktime_get_boottime_ns() - client->born, pad))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_owner(struct sk_buff *skb, const struct tensor_buf *buf)
{
	const struct tensor_owner *owner = buf->owner;
	const int pad = TENSOR_A_BUF_PAD;
	u32 uid = from_kuid_munged(current_user_ns(), owner->uid);

	if (put_u64(skb, TENSOR_A_BUF_CLIENT, buf->client, pad) ||
	    nla_put_u32(skb, TENSOR_A_BUF_PID, pid_vnr(owner->pid)) ||
	    nla_put_u32(skb, TENSOR_A_BUF_UID, uid) ||
	    nla_put_string(skb, TENSOR_A_BUF_COMM, owner->comm) ||
	    put_u64(skb, TENSOR_A_BUF_AGE_NS, ktime_get_boottime_ns() - buf->born, pad))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_pages(struct sk_buff *skb, struct tensor_buf *buf)
{
	const int pad = TENSOR_A_BUF_PAD;
	struct tensor_memory memory;

	tensor_buf_memory(buf, &memory);
	if (put_u64(skb, TENSOR_A_BUF_BYTES, buf->bytes, pad) ||
	    put_u64(skb, TENSOR_A_BUF_HUGE_BYTES, memory.huge_bytes, pad) ||
	    put_u64(skb, TENSOR_A_BUF_PINNED_BYTES, memory.pinned_bytes, pad) ||
	    nla_put_s32(skb, TENSOR_A_BUF_NODE, memory.node) ||
	    nla_put_u32(skb, TENSOR_A_BUF_HANDLES, atomic_read(&buf->handles)) ||
	    nla_put_u32(skb, TENSOR_A_BUF_FILES, atomic_read(&buf->files)) ||
	    nla_put_u32(skb, TENSOR_A_BUF_MAPPINGS, atomic_read(&buf->mappings)) ||
	    nla_put_u32(skb, TENSOR_A_BUF_DMABUFS, atomic_read(&buf->dmabufs)) ||
	    nla_put_u32(skb, TENSOR_A_BUF_ATTACHMENTS, atomic_read(&buf->attachments)) ||
	    nla_put(skb, TENSOR_A_BUF_CHUNKS, sizeof(memory.count), memory.count))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_desc(struct sk_buff *skb, const struct tensor_desc *desc)
{
	const int pad = TENSOR_A_BUF_PAD;
	const int len = desc->ndim * sizeof(s64);
	bool typed = desc->dtype != TENSOR_DT_NONE;

	if (nla_put_u32(skb, TENSOR_A_BUF_DTYPE, desc->dtype))
		return -EMSGSIZE;
	if (desc->label[0] && nla_put_string(skb, TENSOR_A_BUF_LABEL, desc->label))
		return -EMSGSIZE;
	if (!typed)
		return 0;
	if (put_u64(skb, TENSOR_A_BUF_OFFSET, desc->offset, pad) ||
	    nla_put_64bit(skb, TENSOR_A_BUF_SIZES, len, desc->sizes, pad) ||
	    nla_put_64bit(skb, TENSOR_A_BUF_STRIDES, len, desc->strides, pad))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_state(struct sk_buff *skb, struct tensor_buf *buf)
{
	struct tensor_desc desc;
	u32 state, seals;

	spin_lock(&buf->spin);
	desc = buf->desc;
	state = buf->state;
	seals = buf->seals;
	spin_unlock(&buf->spin);
	if (desc.dtype != TENSOR_DT_NONE)
		state |= TENSOR_STATE_META;
	if (nla_put_u32(skb, TENSOR_A_BUF_KIND, buf->backing->kind) ||
	    nla_put_u32(skb, TENSOR_A_BUF_STATE, state) ||
	    nla_put_u32(skb, TENSOR_A_BUF_SEALS, seals))
		return -EMSGSIZE;
	return put_buf_desc(skb, &desc);
}

/**
 * tensor_row_buf() - what is to be said about a buffer
 * @skb: where to
 * @buf: a buffer that is listed
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_buf(struct sk_buff *skb, struct tensor_buf *buf)
{
	const int pad = TENSOR_A_BUF_PAD;

	if (put_u64(skb, TENSOR_A_BUF_ID, buf->id, pad) ||
	    put_u64(skb, TENSOR_A_BUF_DEV, new_encode_dev(buf->inode->i_sb->s_dev), pad) ||
	    put_buf_owner(skb, buf) || put_buf_pages(skb, buf) || put_buf_state(skb, buf))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_handle() - what is to be said about a handle
 * @skb: where to
 * @row: what tensor_handle_next() found
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_handle(struct sk_buff *skb, const struct tensor_handle_row *row)
{
	const int pad = TENSOR_A_HANDLE_PAD;

	if (put_u64(skb, TENSOR_A_HANDLE_CLIENT, row->client, pad) ||
	    nla_put_u32(skb, TENSOR_A_HANDLE_ID, row->id) ||
	    put_u64(skb, TENSOR_A_HANDLE_BUF, row->buf, pad) ||
	    nla_put_u32(skb, TENSOR_A_HANDLE_STATE, row->rdonly ? TENSOR_STATE_RDONLY : 0))
		return -EMSGSIZE;
	return 0;
}

static u32 export_state(const struct tensor_hold *hold)
{
	return (hold->rdonly ? TENSOR_STATE_RDONLY : 0) |
	       (tensor_hold_part(hold) ? TENSOR_STATE_RANGE : 0);
}

/**
 * tensor_row_export() - what is to be said about an exported file
 * @skb: where to
 * @exported: one that is listed
 *
 * Return: 0 or -EMSGSIZE.
 */
int tensor_row_export(struct sk_buff *skb, const struct tensor_exported *exported)
{
	const struct tensor_owner *owner = exported->owner;
	const struct tensor_hold *hold = exported->hold;
	const int pad = TENSOR_A_EXPORT_PAD;
	u64 age = ktime_get_boottime_ns() - exported->born;
	u32 uid = from_kuid_munged(current_user_ns(), owner->uid);

	if (put_u64(skb, TENSOR_A_EXPORT_ID, exported->id, pad) ||
	    put_u64(skb, TENSOR_A_EXPORT_BUF, hold->buf->id, pad) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_KIND, exported->kind) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_STATE, export_state(hold)) ||
	    put_u64(skb, TENSOR_A_EXPORT_OFFSET, (u64)hold->first << PAGE_SHIFT, pad) ||
	    put_u64(skb, TENSOR_A_EXPORT_BYTES, (u64)hold->count << PAGE_SHIFT, pad) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_PID, pid_vnr(owner->pid)) ||
	    nla_put_u32(skb, TENSOR_A_EXPORT_UID, uid) ||
	    nla_put_string(skb, TENSOR_A_EXPORT_COMM, owner->comm) ||
	    put_u64(skb, TENSOR_A_EXPORT_AGE_NS, age, pad))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_user() - what is to be said about somebody who pays
 * @skb: where to
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
	    put_u64(skb, TENSOR_A_USER_REFUSED, atomic64_read(&user->refused), pad))
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
	const int pad = TENSOR_A_STAT_PAD;

	if (put_u64(skb, TENSOR_A_STAT_LIMIT_BYTES, tensor_limit_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_REFUSED, tensor_limit_refused(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_USED_BYTES, tensor_limit_used(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_PURGEABLE_BYTES, tensor_purge_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_USER_LIMIT_BYTES, tensor_limit_user_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_USER_REFUSED, tensor_limit_refused_user(), pad))
		return -EMSGSIZE;
	return 0;
}

/**
 * tensor_row_stat() - the totals
 * @skb: where to
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

/**
 * tensor_row_end() - finish a message, or take it back
 * @skb: the message is the last in it
 * @row: what genlmsg_put() gave; NULL if there was no room even for that
 * @err: whether its attributes are all there
 *
 * Return: 0; or an error and @skb is as before.
 */
int tensor_row_end(struct sk_buff *skb, void *row, int err)
{
	if (!row)
		return -EMSGSIZE;
	if (err)
		genlmsg_cancel(skb, row);
	else
		genlmsg_end(skb, row);
	return err;
}
