// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounting by user: the table of users and what each is charged for.
 *
 * An entry exists while a reference to it does: a buffer and every folio that outlives it hold one,
 * so a count outlives the process that raised it. The key is the uid in the initial user namespace,
 * so users of different namespaces have different keys.
 *
 * Lock: the xarray's own. An entry is removed under it when its last reference is dropped. No
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
 * @uid: uid in the initial user namespace
 *
 * Return: the user with a reference, dropped by tensor_user_put(); NULL: out of memory.
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
	/* __xa_cmpxchg() drops the lock to allocate and holds it while it compares and stores */
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
 * tensor_user_charged() - find the uid that is charged for what a task holds
 * @cred: the credentials of the task
 *
 * This is the effective uid, unless the task is in a user namespace made by an unprivileged user.
 * Such a user can run tasks under a whole range of uids (/etc/subuid), each with a limit of its
 * own, so the owner of the outermost such namespace is charged instead. A namespace made by root is
 * a container of the administrator; its uids are charged separately.
 *
 * Return: the uid to charge.
 */
kuid_t tensor_user_charged(const struct cred *cred)
{
	const struct user_namespace *ns;
	kuid_t charged = cred->euid;

	for (ns = cred->user_ns; ns != &init_user_ns; ns = ns->parent) {
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			charged = ns->owner;
	}
	return charged;
}

/**
 * tensor_user_current() - find the user that is charged for what the calling task holds
 *
 * Return: as tensor_user_get().
 */
struct tensor_user *tensor_user_current(void)
{
	return tensor_user_get(tensor_user_charged(current_cred()));
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
 * tensor_user_next() - iterate over all users in ascending order of uid
 * @from: the least uid to return: 0 at first, then the previous uid plus 1
 *
 * An entry that is added or removed during the iteration may be returned or not; no entry is
 * returned twice.
 *
 * Return: a user with a reference, or NULL after the last one.
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
 * tensor_user_exit() - free the table; no user is left
 */
void tensor_user_exit(void)
{
	/* an insertion that failed half-way leaves nodes without an entry */
	xa_destroy(&users);
}
