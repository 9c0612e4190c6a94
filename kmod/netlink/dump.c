// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dumps: all objects of a kind that the reader may see, as many parts as it takes.
 *
 * A dump remembers only the last id, and resumes behind it. Each object is copied under the lock of
 * its table, put into the message without it, and carries the registry's generation of that moment,
 * by which netlink reports to the reader that objects came or went.
 *
 * The later parts of a dump are made in the context of the process that calls recvmsg():
 * tensor_owner_visible() is checked for each row.
 */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/tensor_netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>

#include "../buffer/registry.h"
#include "../client/client.h"
#include "../core/owner.h"
#include "dump.h"
#include "message.h"
#include "row.h"

/* Objects looked at between two looks at the scheduler and at signals. */
#define DUMP_BATCH 256

static struct genl_family *dump_family;

/**
 * struct dump_state - where a dump stands and what it is about; lives in netlink_callback.ctx
 * @next: id to go on with
 * @parent: of handles and exports: the client or buffer to go on with; @next is within it
 * @only_client: client wanted; 0: any
 * @only_buf: buffer wanted; 0: any
 * @only_pid: process wanted, as its reader numbers it; 0: any
 * @exports: it is about exported files, which come and go more often than the rest
 * @has_id: an id came with the request, which is not for dumps
 */
struct dump_state {
	unsigned long next;
	unsigned long parent;
	u64 only_client;
	u64 only_buf;
	u32 only_pid;
	bool exports;
	bool has_id;
};

/* Copies the next object and puts it into the message. 0: there is none; 1; or -errno. */
typedef int (*dump_next_t)(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * tensor_dump_init() - before the first dump
 * @family: what the messages belong to
 */
void __init tensor_dump_init(struct genl_family *family)
{
	dump_family = family;
}

static struct dump_state *dump_state(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct dump_state) > sizeof(cb->ctx));
	return (struct dump_state *)cb->ctx;
}

/* A filter that is there means something: 0 names no object. */
static u64 filter_u64(struct nlattr **attrs, int attr)
{
	return attrs && attrs[attr] ? nla_get_u64(attrs[attr]) : 0;
}

static u32 filter_u32(struct nlattr **attrs, int attr)
{
	return attrs && attrs[attr] ? nla_get_u32(attrs[attr]) : 0;
}

/**
 * tensor_dump_client_start() - take the filters of a dump of clients
 * @cb: the dump
 *
 * Return: 0.
 */
int tensor_dump_client_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;

	*dump_state(cb) = (struct dump_state){
		.has_id = attrs && attrs[TENSOR_A_CLIENT_ID],
		.only_pid = filter_u32(attrs, TENSOR_A_CLIENT_PID),
	};
	return 0;
}

/**
 * tensor_dump_buf_start() - take the filters of a dump of buffers
 * @cb: the dump
 *
 * Return: 0.
 */
int tensor_dump_buf_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;

	*dump_state(cb) = (struct dump_state){
		.has_id = attrs && attrs[TENSOR_A_BUF_ID],
		.only_client = filter_u64(attrs, TENSOR_A_BUF_CLIENT),
		.only_pid = filter_u32(attrs, TENSOR_A_BUF_PID),
	};
	return 0;
}

/**
 * tensor_dump_handle_start() - take the filters of a dump of handles
 * @cb: the dump
 *
 * Return: 0.
 */
int tensor_dump_handle_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	u64 client = filter_u64(attrs, TENSOR_A_HANDLE_CLIENT);

	*dump_state(cb) = (struct dump_state){
		.parent = client,
		.only_client = client,
		.only_buf = filter_u64(attrs, TENSOR_A_HANDLE_BUF),
	};
	return 0;
}

/**
 * tensor_dump_export_start() - take the filters of a dump of exported files
 * @cb: the dump
 *
 * Return: 0.
 */
int tensor_dump_export_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	u64 buf = filter_u64(attrs, TENSOR_A_EXPORT_BUF);

	*dump_state(cb) = (struct dump_state){
		.exports = true,
		.parent = buf,
		.only_buf = buf,
		.only_pid = filter_u32(attrs, TENSOR_A_EXPORT_PID),
	};
	return 0;
}

static bool owner_wanted(struct netlink_callback *cb, const struct tensor_owner *owner)
{
	u32 pid = dump_state(cb)->only_pid;

	return (!pid || pid == pid_vnr(owner->pid)) && tensor_owner_visible(owner, cb->skb);
}

static void *row_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *row = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, dump_family,
				NLM_F_MULTI, cmd);

	if (row)
		genl_dump_check_consistent(cb, row);
	return row;
}

/* A part that has rows is sent; one without any ends the dump, or fails if a row is too long. */
static int dump_all(struct sk_buff *skb, struct netlink_callback *cb, dump_next_t next)
{
	unsigned int copied = 0;
	int more;

	/* only now: what start() says of its refusal does not reach the user */
	if (dump_state(cb)->has_id) {
		NL_SET_ERR_MSG(cb->extack, "An id is for a request without NLM_F_DUMP");
		return -EINVAL;
	}
	do {
		more = next(skb, cb);
		if (++copied % DUMP_BATCH)
			continue;
		cond_resched();
		if (fatal_signal_pending(current))
			more = -EINTR;
	} while (more > 0);
	return skb->len ? skb->len : more;
}

static int put_client(struct sk_buff *skb, struct netlink_callback *cb,
		      const struct tensor_client_row *client)
{
	void *row;

	if (!owner_wanted(cb, client->owner))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_CLIENT_GET);
	return tensor_message_end(skb, row, row ? tensor_row_client(skb, client) : 0);
}

static int next_client(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_client_row row;
	bool found = tensor_client_next(state->next, &row);
	int err;

	cb->seq = row.generation;
	if (!found)
		return 0;
	err = put_client(skb, cb, &row);
	tensor_owner_put(row.owner);
	if (err)
		return err;
	state->next = row.id + 1;
	return 1;
}

/**
 * tensor_dump_clients() - a part of a dump of clients
 * @skb: the part
 * @cb: the dump
 *
 * Return: bytes in @skb; 0 at the end; -errno.
 */
int tensor_dump_clients(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_all(skb, cb, next_client);
}

static int put_buf(struct sk_buff *skb, struct netlink_callback *cb,
		   const struct tensor_buf_row *buf)
{
	u64 client = dump_state(cb)->only_client;
	void *row;

	if ((client && client != buf->client) || !owner_wanted(cb, buf->owner))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_BUF_GET);
	return tensor_message_end(skb, row, row ? tensor_row_buf(skb, buf) : 0);
}

static int next_buf(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_buf_row row;
	bool found = tensor_buf_next(state->next, &row);
	int err;

	cb->seq = row.generation;
	if (!found)
		return 0;
	err = put_buf(skb, cb, &row);
	tensor_owner_put(row.owner);
	if (err)
		return err;
	state->next = row.id + 1;
	return 1;
}

/**
 * tensor_dump_bufs() - a part of a dump of buffers
 * @skb: the part
 * @cb: the dump
 *
 * Return: bytes in @skb; 0 at the end; -errno.
 */
int tensor_dump_bufs(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_all(skb, cb, next_buf);
}

/*
 * The parent to resume with, from its first child unless the dump was at it already; NULL at the
 * end. @only: the one parent that is wanted, or 0.
 */
static struct tensor_entry *parent_find(struct dump_state *state,
					const struct tensor_table *parents, u64 only)
{
	struct tensor_entry *parent = tensor_table_next(parents, state->parent);

	if (!parent || (only && only != parent->id))
		return NULL;
	if (parent->id != state->parent) {
		state->parent = parent->id;
		state->next = 0;
	}
	return parent;
}

static void parent_done(struct dump_state *state)
{
	state->parent++;
	state->next = 0;
}

static int put_handle(struct sk_buff *skb, struct netlink_callback *cb,
		      const struct tensor_owner *owner, const struct tensor_handle_row *handle)
{
	u64 buf = dump_state(cb)->only_buf;
	void *row;

	if ((buf && buf != handle->buf) || !tensor_owner_visible(owner, cb->skb))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_HANDLE_GET);
	return tensor_message_end(skb, row, row ? tensor_row_handle(skb, handle) : 0);
}

static int next_handle(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_handle_row row = {};
	struct tensor_owner *owner;
	struct tensor_client *client;
	struct tensor_entry *parent;
	bool found;
	int err;

	rcu_read_lock();
	spin_lock(&tensor_clients.lock);
	cb->seq = tensor_registry_generation(false);
	parent = parent_find(state, &tensor_clients, state->only_client);
	if (!parent) {
		spin_unlock(&tensor_clients.lock);
		rcu_read_unlock();
		return 0;
	}
	client = container_of(parent, struct tensor_client, listed);
	owner = tensor_owner_get(client->owner);
	spin_unlock(&tensor_clients.lock);
	/* not under the lock of all: the client's is held while a buffer's watches are marked */
	found = tensor_handle_next(client, &state->next, &row);
	rcu_read_unlock();
	err = found ? put_handle(skb, cb, owner, &row) : 0;
	tensor_owner_put(owner);
	if (err)
		return err;
	if (found)
		state->next++;
	else
		parent_done(state);
	return 1;
}

/**
 * tensor_dump_handles() - a part of a dump of handles
 * @skb: the part
 * @cb: the dump
 *
 * Return: bytes in @skb; 0 at the end; -errno.
 */
int tensor_dump_handles(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_all(skb, cb, next_handle);
}

static int put_export(struct sk_buff *skb, struct netlink_callback *cb,
		      const struct tensor_export_row *exported)
{
	void *row;

	if (!owner_wanted(cb, exported->owner))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_EXPORT_GET);
	return tensor_message_end(skb, row, row ? tensor_row_export(skb, exported) : 0);
}

/* The next export of a buffer, copied; false if there is none. */
static bool export_copy(struct tensor_buf *buf, u64 id, struct tensor_export_row *row)
{
	struct tensor_entry *entry;

	spin_lock(&buf->exports.lock);
	entry = tensor_table_next(&buf->exports, id);
	if (entry)
		tensor_export_copy(container_of(entry, struct tensor_exported, listed), row);
	spin_unlock(&buf->exports.lock);
	return entry;
}

static int next_export(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_export_row row = {};
	struct tensor_entry *parent;
	struct tensor_buf *buf;
	bool found;
	int err;

	spin_lock(&tensor_bufs.lock);
	cb->seq = tensor_registry_generation(true);
	parent = parent_find(state, &tensor_bufs, state->only_buf);
	if (!parent) {
		spin_unlock(&tensor_bufs.lock);
		return 0;
	}
	buf = container_of(parent, struct tensor_buf, listed);
	found = export_copy(buf, state->next, &row);
	spin_unlock(&tensor_bufs.lock);
	if (!found) {
		parent_done(state);
		return 1;
	}
	err = put_export(skb, cb, &row);
	tensor_owner_put(row.owner);
	if (err)
		return err;
	state->next = row.id + 1;
	return 1;
}

/**
 * tensor_dump_exports() - a part of a dump of exported files
 * @skb: the part
 * @cb: the dump
 *
 * Return: bytes in @skb; 0 at the end; -errno.
 */
int tensor_dump_exports(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_all(skb, cb, next_export);
}

/* The users of all namespaces are listed: that needs a privilege over the initial one. */
static bool user_visible(const struct tensor_user *user, struct sk_buff *request)
{
	return uid_eq(NETLINK_CREDS(request)->uid, user->uid) ||
	       netlink_ns_capable(request, &init_user_ns, CAP_NET_ADMIN) ||
	       netlink_ns_capable(request, &init_user_ns, CAP_SYS_ADMIN);
}

static int dump_user(struct sk_buff *skb, struct netlink_callback *cb,
		     const struct tensor_user *user)
{
	void *row;

	if (!user_visible(user, cb->skb))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_USER_GET);
	return tensor_message_end(skb, row, row ? tensor_row_user(skb, user) : 0);
}

/**
 * tensor_dump_users() - a part of a dump of users
 * @skb: the part
 * @cb: the dump
 *
 * Return: bytes in @skb; 0 at the end; -errno.
 */
int tensor_dump_users(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = dump_state(cb);
	struct tensor_user *user;
	int err = 0;

	while (!err && (user = tensor_user_next(state->next))) {
		err = dump_user(skb, cb, user);
		if (!err)
			state->next = (unsigned long)__kuid_val(user->uid) + 1;
		tensor_user_put(user);
	}
	return skb->len ? skb->len : err;
}
