// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink: who has which buffers. <linux/tensor_netlink.h> is the contract.
 *
 * The family answers in every network namespace: buffers belong to no network, and a container that
 * has a network namespace of its own wants to see its buffers all the same. What is told to whom is
 * a matter of user and pid namespace, see tensor_owner_visible().
 *
 * A dump remembers only the id it has come to. Each part is made under the registry's mutex, and
 * carries the registry's generation, by which netlink tells the reader that something came or went
 * between two parts.
 */
#include <linux/build_bug.h>
#include <linux/cred.h>
#include <linux/kdev_t.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/tensor_netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>

#include "core.h"

/**
 * struct dump_state - where a dump stands; lives in netlink_callback.ctx
 * @next: id to go on with
 */
struct dump_state {
	unsigned long next;
};

static struct dump_state *dump_state(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct dump_state) > sizeof(cb->ctx));
	return (struct dump_state *)cb->ctx;
}

static struct genl_family family;

static int put_u64(struct sk_buff *skb, int attr, u64 value, int pad)
{
	return nla_put_u64_64bit(skb, attr, value, pad);
}

static int put_client(struct sk_buff *skb, const struct tensor_client *client)
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
	    nla_put(skb, TENSOR_A_BUF_CHUNKS, sizeof(memory.count), memory.count))
		return -EMSGSIZE;
	return 0;
}

static int put_buf_desc(struct sk_buff *skb, const struct tensor_desc *desc)
{
	const int pad = TENSOR_A_BUF_PAD;
	const int len = desc->ndim * sizeof(s64);
	bool typed = desc->dtype != TENSOR_DT_NONE;

	if (nla_put_u32(skb, TENSOR_A_BUF_STATE, typed ? TENSOR_STATE_META : 0) ||
	    nla_put_u32(skb, TENSOR_A_BUF_DTYPE, desc->dtype))
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

static int put_buf(struct sk_buff *skb, struct tensor_buf *buf)
{
	const int pad = TENSOR_A_BUF_PAD;
	struct tensor_desc desc;

	tensor_desc_get(buf, &desc);
	if (put_u64(skb, TENSOR_A_BUF_ID, buf->id, pad) ||
	    put_u64(skb, TENSOR_A_BUF_DEV, new_encode_dev(buf->inode->i_sb->s_dev), pad) ||
	    put_buf_owner(skb, buf) || put_buf_pages(skb, buf) || put_buf_desc(skb, &desc))
		return -EMSGSIZE;
	return 0;
}

static void *row_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *row = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				NLM_F_MULTI, cmd);

	if (row)
		genl_dump_check_consistent(cb, row);
	return row;
}

/* 0, or -EMSGSIZE and @skb is as before. */
static int row_end(struct sk_buff *skb, void *row, int err)
{
	if (err)
		genlmsg_cancel(skb, row);
	else
		genlmsg_end(skb, row);
	return err;
}

static int row_client(struct sk_buff *skb, struct netlink_callback *cb,
		      const struct tensor_client *client)
{
	void *row;

	if (!tensor_owner_visible(client->owner, cb->skb))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_CLIENT_GET);
	return row ? row_end(skb, row, put_client(skb, client)) : -EMSGSIZE;
}

static int row_buf(struct sk_buff *skb, struct netlink_callback *cb, struct tensor_buf *buf)
{
	void *row;

	if (!tensor_owner_visible(buf->owner, cb->skb))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_BUF_GET);
	return row ? row_end(skb, row, put_buf(skb, buf)) : -EMSGSIZE;
}

static void dump_begin(struct netlink_callback *cb)
{
	mutex_lock(&tensor_registry_lock);
	cb->seq = tensor_registry_generation();
}

/* A part that has rows is sent; one without any ends the dump, or fails if a row is too long. */
static int dump_end(struct sk_buff *skb, int err)
{
	mutex_unlock(&tensor_registry_lock);
	return skb->len ? skb->len : err;
}

static int dump_clients(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_client *client;
	unsigned long id;
	int err = 0;

	dump_begin(cb);
	xa_for_each_start(&tensor_clients, id, client, state->next) {
		err = row_client(skb, cb, client);
		if (err)
			break;
		state->next = id + 1;
	}
	return dump_end(skb, err);
}

static int dump_bufs(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_buf *buf;
	unsigned long id;
	int err = 0;

	dump_begin(cb);
	xa_for_each_start(&tensor_bufs, id, buf, state->next) {
		err = row_buf(skb, cb, buf);
		if (err)
			break;
		state->next = id + 1;
	}
	return dump_end(skb, err);
}

static int put_stat(struct sk_buff *skb)
{
	const int pad = TENSOR_A_STAT_PAD;
	struct tensor_totals totals;

	tensor_registry_totals(&totals);
	if (put_u64(skb, TENSOR_A_STAT_CLIENTS, totals.clients, pad) ||
	    put_u64(skb, TENSOR_A_STAT_BUFS, totals.bufs, pad) ||
	    put_u64(skb, TENSOR_A_STAT_BYTES, totals.bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_HUGE_BYTES, totals.huge_bytes, pad) ||
	    put_u64(skb, TENSOR_A_STAT_LIMIT_BYTES, tensor_limit_bytes(), pad) ||
	    put_u64(skb, TENSOR_A_STAT_REFUSED, tensor_limit_refused(), pad))
		return -EMSGSIZE;
	return 0;
}

static int get_stat(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *row;
	int err;

	if (!skb)
		return -ENOMEM;
	row = genlmsg_put_reply(skb, info, &family, 0, TENSOR_CMD_STAT_GET);
	err = row ? row_end(skb, row, put_stat(skb)) : -EMSGSIZE;
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	return genlmsg_reply(skb, info);
}

/* A policy with nothing in it: without one, attributes would not even be looked at. */
static const struct nla_policy no_attrs[] = {
	[1] = { .type = NLA_REJECT },
};

static const struct genl_ops netlink_ops[] = {
	{
		.cmd = TENSOR_CMD_CLIENT_GET,
		.dumpit = dump_clients,
	},
	{
		.cmd = TENSOR_CMD_BUF_GET,
		.dumpit = dump_bufs,
	},
	{
		.cmd = TENSOR_CMD_STAT_GET,
		.doit = get_stat,
	},
};

static struct genl_family family __ro_after_init = {
	.name = TENSOR_GENL_NAME,
	.version = TENSOR_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.policy = no_attrs,
	.maxattr = ARRAY_SIZE(no_attrs) - 1,
	.ops = netlink_ops,
	.n_ops = ARRAY_SIZE(netlink_ops),
};

/**
 * tensor_netlink_init() - register the family
 *
 * Return: 0 or -errno.
 */
int __init tensor_netlink_init(void)
{
	return genl_register_family(&family);
}

/**
 * tensor_netlink_exit() - take the family back; no request is under way on return
 */
void tensor_netlink_exit(void)
{
	genl_unregister_family(&family);
}
