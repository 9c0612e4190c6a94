// SPDX-License-Identifier: GPL-2.0-only
/*
 * The owner of a client or a buffer: the process that made it, and who may see it in netlink.
 *
 * A buffer may outlive its maker, so the owner holds a reference to the pid (a number could be
 * reused by another process), the uid, the user namespace in which a privilege over that user
 * counts, and the name. The buffers of a program share one owner.
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
 * Return: an owner with one reference, or NULL: out of memory.
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
 * tensor_owner_current() - describe the calling process, reusing an owner if it matches
 * @hint: owner that probably describes it
 *
 * Return: an owner with one reference for the caller, or NULL: out of memory.
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
 * tensor_owner_put() - drop a reference
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
 * tensor_owner_visible() - whether a netlink request may see the objects of an owner
 * @owner: the owner
 * @request: the request; current is the task that reads the reply
 *
 * Only the same user or a privileged one may; both the socket and the reader must have the
 * privilege, so that passing a socket to a privileged program gains nothing. The owner must be in
 * the reader's pid namespace.
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
