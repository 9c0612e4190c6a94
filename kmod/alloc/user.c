// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users, and what each of them has.
 *
 * A user is there as long as somebody refers to them: whoever made a buffer is kept with it, so a
 * count outlives the process that ran it up. They are found by their number in the initial user
 * namespace; users of different namespaces have different ones.
 *
 * Lock: that of the table. An entry leaves the table under it, together with its last reference.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
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
 * tensor_user_get() - find a user, or begin to count for them
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
	/* may let go of the lock to find memory, but has it when it looks and stores */
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
 * tensor_user_put() - give a reference back
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
 * Who comes or goes meanwhile may be told or not; nobody is told twice.
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
