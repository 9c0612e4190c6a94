// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dumps: all objects of a kind that the reader may see, in as many parts as needed.
 *
 * A dump stores only the last id and resumes after it. Each object is copied under the lock of its
 * table and put into the message without the lock. It carries the registry's generation at the time
 * of the copy, by which netlink reports to the reader that the dump is inconsistent.
 *
 * The later parts of a dump are built in the context of the process that calls recvmsg(), so
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

/* Objects examined between two checks for rescheduling and signals. */
#define DUMP_BATCH 256

static struct genl_family *dump_family;

/**
 * struct dump_state - position and filters of a dump; stored in netlink_callback.ctx
 * @next: id to resume with
 * @parent: for handles and exports: the client or buffer to resume with; @next is within it
 * @only_client: list this client only; 0: all
 * @only_buf: list this buffer only; 0: all
 * @only_pid: list this process only, numbered in the reader's pid namespace; 0: all
 * @exports: a dump of exported files, which have a generation of their own
 * @has_id: the request has an id, which dumps do not accept
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

/* Copies the next object and puts it into the message. Return: 1; 0: there is none; -errno. */
typedef int (*dump_next_t)(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * tensor_dump_init() - set the family of the messages
 * @family: the family
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

/* A filter that is given is never 0: no object has this id. */
static u64 filter_u64(struct nlattr **attrs, int attr)
{
	return attrs && attrs[attr] ? nla_get_u64(attrs[attr]) : 0;
}

static u32 filter_u32(struct nlattr **attrs, int attr)
{
	return attrs && attrs[attr] ? nla_get_u32(attrs[attr]) : 0;
}

/**
 * tensor_dump_client_start() - parse the filters of a dump of clients
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
 * tensor_dump_buf_start() - parse the filters of a dump of buffers
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
 * tensor_dump_handle_start() - parse the filters of a dump of handles
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
 * tensor_dump_export_start() - parse the filters of a dump of exported files
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

/* A part with rows is sent; one without any ends the dump, or fails if a row is too long. */
static int dump_all(struct sk_buff *skb, struct netlink_callback *cb, dump_next_t next)
{
	unsigned int copied = 0;
	int more;

	/* here, because an error message of start() does not reach user space */
	if (dump_state(cb)->has_id) {
		NL_SET_ERR_MSG(cb->extack, "An id is accepted without NLM_F_DUMP only");
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

/* End of an object: drop its owner; resume after it unless its row did not fit. */
static int row_done(struct netlink_callback *cb, struct tensor_owner *owner, u64 id, int err)
{
	tensor_owner_put(owner);
	if (err)
		return err;
	dump_state(cb)->next = id + 1;
	return 1;
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

	cb->seq = row.generation;
	if (!found)
		return 0;
	return row_done(cb, row.owner, row.id, put_client(skb, cb, &row));
}

/**
 * tensor_dump_clients() - build a part of a dump of clients
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

	cb->seq = row.generation;
	if (!found)
		return 0;
	return row_done(cb, row.owner, row.id, put_buf(skb, cb, &row));
}

/**
 * tensor_dump_bufs() - build a part of a dump of buffers
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
 * The parent to resume with; at its first child unless the dump had already begun with it; NULL at
 * the end. @only: list this parent only; 0: all.
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
	/*
	 * without the table's lock: the client's lock is held while a buffer's watches are marked
	 */
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
 * tensor_dump_handles() - build a part of a dump of handles
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

/* Copy the next export of a buffer; false if there is none. */
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
	return row_done(cb, row.owner, row.id, put_export(skb, cb, &row));
}

/**
 * tensor_dump_exports() - build a part of a dump of exported files
 * @skb: the part
 * @cb: the dump
 *
 * Return: bytes in @skb; 0 at the end; -errno.
 */
int tensor_dump_exports(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_all(skb, cb, next_export);
}

/* The list has the users of all namespaces, so it needs a privilege in the initial one. */
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
 * tensor_dump_users() - build a part of a dump of users
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
