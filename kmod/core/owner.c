// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who made a client or a buffer, and who may be told about it.
 *
 * A buffer may outlive its maker, so it keeps the pid with a reference (a number could be reused by
 * another process), the user with the namespace in which a privilege over them counts, and the
 * name. The buffers of a program share one owner.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "owner.h"

/**
 * tensor_owner_new() - describe the calling process
 *
 * Return: an owner with one reference, or NULL without memory.
 */
struct tensor_owner *tensor_owner_new(void)
{
	struct tensor_owner *owner = kzalloc(sizeof(*owner), TENSOR_GFP);

	if (!owner)
		return NULL;
	owner->user = tensor_user_current();
	if (!owner->user) {
		kfree(owner);
		return NULL;
	}
	refcount_set(&owner->ref, 1);
	owner->pid = get_pid(task_tgid(current));
	owner->ns = get_user_ns(current_user_ns());
	owner->uid = current_euid();
	get_task_comm(owner->comm, current->group_leader);
	return owner;
}

static bool owner_is_current(const struct tensor_owner *owner)
{
	return owner->pid == task_tgid(current) && uid_eq(owner->uid, current_euid()) &&
	       owner->ns == current_user_ns();
}

/**
 * tensor_owner_current() - describe the calling process, sharing what describes it already
 * @hint: probably the right one
 *
 * Return: an owner with one reference for the caller, or NULL without memory.
 */
struct tensor_owner *tensor_owner_current(struct tensor_owner *hint)
{
	return owner_is_current(hint) ? tensor_owner_get(hint) : tensor_owner_new();
}

/**
 * tensor_owner_get() - take a reference
 * @owner: the owner
 *
 * Return: @owner.
 */
struct tensor_owner *tensor_owner_get(struct tensor_owner *owner)
{
	refcount_inc(&owner->ref);
	return owner;
}

/**
 * tensor_owner_put() - give a reference back
 * @owner: the owner
 */
void tensor_owner_put(struct tensor_owner *owner)
{
	if (!refcount_dec_and_test(&owner->ref))
		return;
	put_user_ns(owner->ns);
	put_pid(owner->pid);
	tensor_user_put(owner->user);
	kfree(owner);
}

/**
 * tensor_owner_visible() - may a netlink request see the objects of an owner?
 * @owner: who made it
 * @request: the message that asks; current is who reads the answer
 *
 * Only the same user or a privileged one; both the socket and the reader must have the privilege,
 * so that passing a socket to a privileged program gains nothing. And only processes of the
 * reader's pid namespace.
 *
 * Return: whether it may.
 */
bool tensor_owner_visible(const struct tensor_owner *owner, struct sk_buff *request)
{
	if (!pid_vnr(owner->pid))
		return false;
	return uid_eq(NETLINK_CREDS(request)->uid, owner->uid) ||
	       netlink_ns_capable(request, owner->ns, CAP_NET_ADMIN) ||
	       netlink_ns_capable(request, owner->ns, CAP_SYS_ADMIN);
}
