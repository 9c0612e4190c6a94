// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users, and what each of them has.
 *
 * A user exists as long as something refers to it: a buffer and every folio that outlives it keep a
 * reference, so a count outlives the process that raised it. Users are found by their number in the
 * initial user namespace; users of different namespaces have different ones.
 *
 * Lock: that of the table. An entry leaves the table under it, together with its last reference. No
 * allocation sleeps under it.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "alloc.h"

static DEFINE_XARRAY_FLAGS(users, XA_FLAGS_ACCOUNT);

static struct tensor_user *user_new(kuid_t uid)
{
	struct tensor_user *user = kzalloc(sizeof(*user), TENSOR_GFP);

	if (!user)
		return NULL;
	refcount_set(&user->ref, 1);
	user->uid = uid;
	return user;
}

/**
 * tensor_user_get() - find a user, or make an entry for it
 * @uid: who
 *
 * Return: the user with a reference, which tensor_user_put() gives back, or NULL without memory.
 */
struct tensor_user *tensor_user_get(kuid_t uid)
{
	struct tensor_user *user, *fresh;

	xa_lock(&users);
	user = xa_load(&users, __kuid_val(uid));
	if (user)
		refcount_inc(&user->ref);
	xa_unlock(&users);
	if (user)
		return user;

	fresh = user_new(uid);
	if (!fresh)
		return NULL;
	xa_lock(&users);
	/* drops the lock while it allocates, and has it when it compares and stores */
	user = __xa_cmpxchg(&users, __kuid_val(uid), NULL, fresh, TENSOR_GFP_XA);
	if (user && !xa_is_err(user))
		refcount_inc(&user->ref);
	xa_unlock(&users);
	if (!user)
		return fresh;
	kfree(fresh);
	return xa_is_err(user) ? NULL : user;
}

/**
 * tensor_user_payer() - which user pays for what a task holds
 * @cred: the credentials of the task
 *
 * The effective uid, unless the task is in a user namespace that was made by an ordinary user: such
 * a user can run tasks as any uid of a whole range (/etc/subuid), each of which would have a limit
 * of its own. Then the payer is the owner of the outermost such namespace. A namespace that root
 * made is a container of the administrator, whose users count one by one.
 *
 * Return: the payer.
 */
kuid_t tensor_user_payer(const struct cred *cred)
{
	const struct user_namespace *ns;
	kuid_t payer = cred->euid;

	for (ns = cred->user_ns; ns != &init_user_ns; ns = ns->parent) {
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			payer = ns->owner;
	}
	return payer;
}

/**
 * tensor_user_current() - find the user who pays for what the calling task holds
 *
 * Return: as tensor_user_get().
 */
struct tensor_user *tensor_user_current(void)
{
	return tensor_user_get(tensor_user_payer(current_cred()));
}

/**
 * tensor_user_hold() - take another reference
 * @user: the user
 *
 * Return: @user.
 */
struct tensor_user *tensor_user_hold(struct tensor_user *user)
{
	refcount_inc(&user->ref);
	return user;
}

/**
 * tensor_user_put() - drop a reference
 * @user: the user
 */
void tensor_user_put(struct tensor_user *user)
{
	bool last;

	xa_lock(&users);
	last = refcount_dec_and_test(&user->ref);
	if (last)
		__xa_erase(&users, __kuid_val(user->uid));
	xa_unlock(&users);
	if (!last)
		return;
	WARN_ON_ONCE(atomic64_read(&user->used));
	kfree(user);
}

/**
 * tensor_user_next() - go through all users, by ascending number
 * @from: the least number to look at: 0, then that of the user before plus 1
 *
 * An entry that comes or goes meanwhile may be returned or not; none is returned twice.
 *
 * Return: a user with a reference, or NULL behind the last one.
 */
struct tensor_user *tensor_user_next(unsigned long from)
{
	struct tensor_user *user;

	xa_lock(&users);
	user = xa_find(&users, &from, U32_MAX, XA_PRESENT);
	if (user)
		refcount_inc(&user->ref);
	xa_unlock(&users);
	return user;
}

/**
 * tensor_user_exit() - after the last user
 */
void tensor_user_exit(void)
{
	/* an insertion that failed half-way leaves nodes without an entry */
	xa_destroy(&users);
}
