// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of buffers and clients, sent to the multicast group.
 *
 * An event must not delay or fail the call that causes it. No message is built without a listener;
 * sending waits neither for memory nor for a listener; and no error is returned. A listener that
 * missed an event, for lack of memory here or of room in its socket, gets ENOBUFS and can dump.
 *
 * Events are sent in the initial network namespace only. Joining the group takes CAP_NET_ADMIN over
 * the namespace of the socket, so in the initial one it is a privilege over the machine; any user
 * can have it over a network namespace of their own, and receives no event there.
 */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/tensor_netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

#include "../buffer/buf.h"
#include "../core/owner.h"
#include "message.h"
#include "notify.h"

/* Never sleeps: callers may hold any lock. */
#define EVENT_GFP   (GFP_NOWAIT | __GFP_NOWARN)
#define EVENT_GROUP 0
/* An upper bound of the size of all attributes. */
#define EVENT_ROOM 256

/* The family of the messages; registered before the first event. */
static struct genl_family *notify_family;

/**
 * struct event - the content of a message; members that are 0 are left out
 * @owner: the process concerned; NULL: the calling one
 * @buf: id of a buffer
 * @client: id of a client
 * @bytes: a size in bytes
 * @limit: limit of all users
 * @user_limit: limit of each user
 * @handles: number of handles
 * @state: TENSOR_STATE_*
 * @rights: TENSOR_RIGHT_*
 * @has_state: include @state even if it is 0
 * @seals: TENSOR_SEAL_*
 * @kind: enum tensor_export_kind
 * @has_kind: include @kind even if it is 0
 */
struct event {
	const struct tensor_owner *owner;
	u64 buf;
	u64 client;
	u64 bytes;
	u64 limit;
	u64 user_limit;
	u32 handles;
	u32 state;
	u32 rights;
	u32 seals;
	u32 kind;
	bool has_state;
	bool has_kind;
};

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, TENSOR_A_EVENT_PAD);
}

static int put_process(struct sk_buff *skb, struct pid *pid, kuid_t uid, const char *comm)
{
	if (nla_put_u32(skb, TENSOR_A_EVENT_PID, pid_nr(pid)) ||
	    nla_put_u32(skb, TENSOR_A_EVENT_UID, from_kuid_munged(&init_user_ns, uid)) ||
	    nla_put_string(skb, TENSOR_A_EVENT_COMM, comm))
		return -EMSGSIZE;
	return 0;
}

static int put_current(struct sk_buff *skb)
{
	char comm[TASK_COMM_LEN];

	get_task_comm(comm, current->group_leader);
	return put_process(skb, task_tgid(current), current_euid(), comm);
}

static int put_owner(struct sk_buff *skb, const struct tensor_owner *owner)
{
	return owner ? put_process(skb, owner->pid, owner->uid, owner->comm) : put_current(skb);
}

static int put_event(struct sk_buff *skb, const struct event *event)
{
	if (put_u64(skb, TENSOR_A_EVENT_TIME_NS, ktime_get_boottime_ns()) ||
	    put_owner(skb, event->owner))
		return -EMSGSIZE;
	if ((event->buf && put_u64(skb, TENSOR_A_EVENT_BUF, event->buf)) ||
	    (event->client && put_u64(skb, TENSOR_A_EVENT_CLIENT, event->client)) ||
	    (event->bytes && put_u64(skb, TENSOR_A_EVENT_BYTES, event->bytes)) ||
	    (event->has_state && nla_put_u32(skb, TENSOR_A_EVENT_STATE, event->state)) ||
	    (event->rights && nla_put_u32(skb, TENSOR_A_EVENT_RIGHTS, event->rights)) ||
	    (event->handles && nla_put_u32(skb, TENSOR_A_EVENT_HANDLES, event->handles)) ||
	    (event->seals && nla_put_u32(skb, TENSOR_A_EVENT_SEALS, event->seals)) ||
	    (event->has_kind && nla_put_u32(skb, TENSOR_A_EVENT_KIND, event->kind)) ||
	    (event->limit && put_u64(skb, TENSOR_A_EVENT_LIMIT_BYTES, event->limit)) ||
	    (event->user_limit && put_u64(skb, TENSOR_A_EVENT_USER_LIMIT_BYTES, event->user_limit)))
		return -EMSGSIZE;
	return 0;
}

static struct sk_buff *event_message(u8 cmd, const struct event *event)
{
	struct sk_buff *skb = genlmsg_new(EVENT_ROOM, EVENT_GFP);
	void *row;
	int err;

	if (!skb)
		return NULL;
	row = genlmsg_put(skb, 0, 0, notify_family, 0, cmd);
	err = tensor_message_end(skb, row, row ? put_event(skb, event) : 0);
	if (err) {
		nlmsg_free(skb);
		return NULL;
	}
	return skb;
}

static bool event_has_listener(void)
{
	return genl_has_listeners(notify_family, &init_net, EVENT_GROUP);
}

static void event_send(u8 cmd, const struct event *event)
{
	struct sk_buff *skb;

	if (!event_has_listener())
		return;
	skb = event_message(cmd, event);
	if (skb)
		/* the core reports ENOBUFS to a listener without room */
		genlmsg_multicast_netns(notify_family, &init_net, skb, 0, EVENT_GROUP, EVENT_GFP);
	else
		genl_set_err(notify_family, &init_net, 0, EVENT_GROUP, -ENOBUFS);
}

/**
 * tensor_notify_init() - set the family of the messages
 * @family: the family
 */
void __init tensor_notify_init(struct genl_family *family)
{
	notify_family = family;
}

/**
 * tensor_notify_alloc() - a buffer was made
 * @buf: the buffer
 */
void tensor_notify_alloc(const struct tensor_buf *buf)
{
	event_send(TENSOR_CMD_EVENT_ALLOC, &(struct event){
						   .owner = buf->owner,
						   .buf = buf->id,
						   .client = buf->client,
						   .bytes = buf->bytes,
					   });
}

/**
 * tensor_notify_free() - a buffer was freed
 * @buf: the buffer, already removed from all tables
 */
void tensor_notify_free(const struct tensor_buf *buf)
{
	event_send(TENSOR_CMD_EVENT_FREE, &(struct event){
						  .owner = buf->owner,
						  .buf = buf->id,
						  .client = buf->client,
						  .bytes = buf->bytes,
					  });
}

/* The range and the rights of a handle or an fd. */
static struct event event_of_hold(u64 client, const struct tensor_hold *hold)
{
	return (struct event){
		.buf = hold->buf->id,
		.client = client,
		.bytes = (u64)hold->count << PAGE_SHIFT,
		.state = tensor_hold_state(hold),
		.rights = hold->rights,
		.has_state = true,
	};
}

/**
 * tensor_notify_import() - a client has imported a buffer
 * @client: its id
 * @hold: the buffer, the range and the rights of the handle; the caller has a reference
 */
void tensor_notify_import(u64 client, const struct tensor_hold *hold)
{
	struct event event = event_of_hold(client, hold);

	event_send(TENSOR_CMD_EVENT_IMPORT, &event);
}

/**
 * tensor_notify_export() - a buffer was exported
 * @client: id of the client whose handle was exported
 * @hold: the buffer, the range and the rights of the fd; the caller has a reference
 * @kind: enum tensor_export_kind
 */
void tensor_notify_export(u64 client, const struct tensor_hold *hold, u32 kind)
{
	struct event event = event_of_hold(client, hold);

	event.kind = kind;
	event.has_kind = true;
	event_send(TENSOR_CMD_EVENT_EXPORT, &event);
}

/**
 * tensor_notify_seal() - a buffer was sealed
 * @buf: the buffer; the caller has a reference
 * @seals: all seals that it has now
 */
void tensor_notify_seal(const struct tensor_buf *buf, u32 seals)
{
	event_send(TENSOR_CMD_EVENT_SEAL, &(struct event){
						  .buf = buf->id,
						  .bytes = buf->bytes,
						  .seals = seals,
					  });
}

/**
 * tensor_notify_revoke() - a buffer was revoked
 * @buf: the buffer; the caller has a reference
 */
void tensor_notify_revoke(const struct tensor_buf *buf)
{
	event_send(TENSOR_CMD_EVENT_REVOKE, &(struct event){
						    .buf = buf->id,
						    .bytes = buf->bytes,
					    });
}

/**
 * tensor_notify_purge() - a purgeable buffer was purged
 * @buf: the buffer; its lock is held
 *
 * The calling process is the one in reclaim, so the event does not name it.
 */
void tensor_notify_purge(const struct tensor_buf *buf)
{
	event_send(TENSOR_CMD_EVENT_PURGE, &(struct event){
						   .owner = buf->owner,
						   .buf = buf->id,
						   .client = buf->client,
						   .bytes = buf->bytes,
					   });
}

/**
 * tensor_notify_limit() - an allocation was refused because of a limit
 * @client: id of the calling client
 * @bytes: requested size
 */
void tensor_notify_limit(u64 client, u64 bytes)
{
	event_send(TENSOR_CMD_EVENT_LIMIT, &(struct event){
						   .client = client,
						   .bytes = bytes,
						   .limit = tensor_limit_bytes(),
						   .user_limit = tensor_limit_user_bytes(),
					   });
}

/**
 * tensor_notify_death() - a client was closed with open handles
 * @owner: the process that opened it
 * @client: its id
 * @bytes: bytes of the buffers that its handles refer to
 * @handles: number of handles
 */
void tensor_notify_death(const struct tensor_owner *owner, u64 client, u64 bytes, u32 handles)
{
	event_send(TENSOR_CMD_EVENT_DEATH, &(struct event){
						   .owner = owner,
						   .client = client,
						   .bytes = bytes,
						   .handles = handles,
					   });
}
