// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dumps: all objects of a kind that the reader may see, as many parts as it takes.
 *
 * A dump remembers only the id it has come to, so whatever happens between two parts, it goes on
 * behind the last object it told. Each part is made under the registry's mutex and carries the
 * registry's generation, by which netlink tells the reader that something came or went between.
 *
 * A part ends when its message is full. One who may see little fills it slowly: so the mutex is
 * given to others every now and then, also within a part.
 *
 * The later parts of a dump are made in the context of whoever calls recvmsg(): who may see what is
 * asked for each row, see tensor_owner_visible().
 */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/tensor_netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>

#include "core.h"
#include "netlink.h"

/* Objects looked at before the mutex is offered to others: some tens of microseconds. */
#define DUMP_BREATH	256

/**
 * struct dump_state - where a dump stands and what it is about; lives in netlink_callback.ctx
 * @next: id to go on with; of handles: within the client
 * @client: of handles: the client to go on with
 * @only_client: client wanted; 0: any
 * @only_buf: buffer wanted; 0: any
 * @only_pid: process wanted, as its reader numbers it; 0: any
 * @exports: it is about exported files, which come and go more often than the rest
 * @has_id: an id came with the request, which is not for dumps
 */
struct dump_state {
	unsigned long next;
	unsigned long client;
	u64 only_client;
	u64 only_buf;
	u32 only_pid;
	bool exports;
	bool has_id;
};

typedef int (*dump_row_t)(struct sk_buff *skb, struct netlink_callback *cb, void *object);

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
		.client = client,
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

	*dump_state(cb) = (struct dump_state){
		.exports = true,
		.only_buf = filter_u64(attrs, TENSOR_A_EXPORT_BUF),
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
	void *row = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &tensor_family,
				NLM_F_MULTI, cmd);

	if (row)
		genl_dump_check_consistent(cb, row);
	return row;
}

static int dump_client(struct sk_buff *skb, struct netlink_callback *cb, void *object)
{
	const struct tensor_client *client = object;
	void *row;

	if (!owner_wanted(cb, client->owner))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_CLIENT_GET);
	return tensor_row_end(skb, row, row ? tensor_row_client(skb, client) : 0);
}

static int dump_buf(struct sk_buff *skb, struct netlink_callback *cb, void *object)
{
	u64 client = dump_state(cb)->only_client;
	struct tensor_buf *buf = object;
	void *row;

	if ((client && client != buf->client) || !owner_wanted(cb, buf->owner))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_BUF_GET);
	return tensor_row_end(skb, row, row ? tensor_row_buf(skb, buf) : 0);
}

static int dump_handle(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct tensor_handle_row *handle)
{
	u64 buf = dump_state(cb)->only_buf;
	void *row;

	if (buf && buf != handle->buf)
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_HANDLE_GET);
	return tensor_row_end(skb, row, row ? tensor_row_handle(skb, handle) : 0);
}

static void dump_begin(struct netlink_callback *cb)
{
	mutex_lock(&tensor_registry_lock);
	cb->seq = tensor_registry_generation(dump_state(cb)->exports);
}

/*
 * Lets others have the mutex. What came or went meanwhile is told with the next row, unless there
 * was none before: then the list begins here.
 */
static int dump_breathe(struct netlink_callback *cb)
{
	mutex_unlock(&tensor_registry_lock);
	cond_resched();
	dump_begin(cb);
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* A part that has rows is sent; one without any ends the dump, or fails if a row is too long. */
static int dump_end(struct sk_buff *skb, int err)
{
	mutex_unlock(&tensor_registry_lock);
	return skb->len ? skb->len : err;
}

static int dump_all(struct sk_buff *skb, struct netlink_callback *cb, struct xarray *objects,
		    dump_row_t row)
{
	struct dump_state *state = dump_state(cb);
	unsigned int looked = 0;
	void *object;
	int err = 0;

	/* only now: what start() says of its refusal does not reach the user */
	if (state->has_id) {
		NL_SET_ERR_MSG(cb->extack, "An id is for a request without NLM_F_DUMP");
		return -EINVAL;
	}
	dump_begin(cb);
	while (!err && (object = xa_find(objects, &state->next, ULONG_MAX, XA_PRESENT))) {
		err = row(skb, cb, object);
		if (err)
			break;
		state->next++;
		if (++looked % DUMP_BREATH == 0)
			err = dump_breathe(cb);
	}
	return dump_end(skb, err);
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
	return dump_all(skb, cb, &tensor_clients, dump_client);
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
	return dump_all(skb, cb, &tensor_bufs, dump_buf);
}

/* The client to go on with, from its first handle unless we were at it already. */
static struct tensor_client *handle_client(struct dump_state *state)
{
	unsigned long id = state->client;
	struct tensor_client *client = xa_find(&tensor_clients, &id, ULONG_MAX, XA_PRESENT);

	if (client && id != state->client) {
		state->client = id;
		state->next = 0;
	}
	if (client && state->only_client && state->only_client != id)
		return NULL;
	return client;
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
	struct dump_state *state = dump_state(cb);
	struct tensor_handle_row row;
	struct tensor_client *client;
	unsigned int looked = 0;
	int err = 0;

	dump_begin(cb);
	while (!err && (client = handle_client(state))) {
		if (tensor_owner_visible(client->owner, cb->skb) &&
		    tensor_handle_next(client, &state->next, &row)) {
			err = dump_handle(skb, cb, &row);
			if (err)
				break;
			state->next++;
		} else {
			state->client++;
			state->next = 0;
		}
		if (++looked % DUMP_BREATH == 0)
			err = dump_breathe(cb);
	}
	return dump_end(skb, err);
}

static int dump_export(struct sk_buff *skb, struct netlink_callback *cb, void *object)
{
	const struct tensor_exported *exported = object;
	u64 buf = dump_state(cb)->only_buf;
	void *row;

	if ((buf && buf != exported->hold->buf->id) || !owner_wanted(cb, exported->owner))
		return 0;
	row = row_begin(skb, cb, TENSOR_CMD_EXPORT_GET);
	return tensor_row_end(skb, row, row ? tensor_row_export(skb, exported) : 0);
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
	return dump_all(skb, cb, &tensor_exports, dump_export);
}

/* Of all users of the machine: a privilege over one namespace does not reach as far. */
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
	return tensor_row_end(skb, row, row ? tensor_row_user(skb, user) : 0);
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
