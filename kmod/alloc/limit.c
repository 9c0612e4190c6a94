// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit of all users together, and that of each user.
 *
 * A limit counts every byte that the module holds in place: ALLOC's memory until it is really
 * free (linger.c), memory held by PIN, and the pages of a memfd while a device has them mapped.
 * Such memory can neither be moved nor swapped out, and the out-of-memory killer sees it in no
 * process. So both limits hold where no memory cgroup is set up, too: half of memory for all
 * users together, as for shared memory filesystems, and an eighth of memory for one user, so that
 * one user cannot lock out the others. A task with CAP_IPC_LOCK may exceed the limit of its user,
 * as it may exceed RLIMIT_MEMLOCK, and is charged all the same; the limit of all users holds for
 * every task. Both are charged before the first page is allocated.
 *
 * What the kernel keeps about handles, and about the buffers of other makers behind them, is
 * charged to memory cgroups only. So that it has a bound elsewhere, too, a user has no more of both
 * together than pages.
 *
 * No lock: each count is raised by a compare and exchange that never exceeds its limit.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/user_namespace.h>

#include "alloc.h"

unsigned long long tensor_param_limit;
module_param_named(limit_bytes, tensor_param_limit, ullong, 0644);
MODULE_PARM_DESC(limit_bytes, "Most bytes held for all users together; 0: half of memory");

unsigned long long tensor_param_user_limit;
module_param_named(user_limit_bytes, tensor_param_user_limit, ullong, 0644);
MODULE_PARM_DESC(user_limit_bytes,
		 "Most bytes held for one user without CAP_IPC_LOCK; 0: an eighth of memory");

static atomic64_t used;
static atomic64_t refused;
static atomic64_t refused_user;

static u64 limit_of(const unsigned long long *param, unsigned int divisor)
{
	u64 limit = READ_ONCE(*param);

	/* a count that goes up to this cannot overflow */
	return limit ? min_t(u64, limit, S64_MAX) : (u64)totalram_pages() / divisor * PAGE_SIZE;
}

/**
 * tensor_limit_bytes() - the limit in all that is in force now
 *
 * Return: bytes. It may be below what is in use: lowering it takes nothing away.
 */
u64 tensor_limit_bytes(void)
{
	return limit_of(&tensor_param_limit, 2);
}

/**
 * tensor_limit_user_bytes() - the limit of each user that is in force now
 *
 * Return: bytes, as above.
 */
u64 tensor_limit_user_bytes(void)
{
	return limit_of(&tensor_param_user_limit, 8);
}

/**
 * tensor_limit_used() - bytes charged now, by all users
 *
 * Return: bytes.
 */
u64 tensor_limit_used(void)
{
	return atomic64_read(&used);
}

/**
 * tensor_limit_refused() - how often a charge met a limit since the module was loaded
 *
 * Return: a count; tensor_limit_refused_user() is part of it.
 */
u64 tensor_limit_refused(void)
{
	return atomic64_read(&refused) + tensor_limit_refused_user();
}

/**
 * tensor_limit_refused_user() - how often a charge met the limit of its user
 *
 * Return: a count, of all users together.
 */
u64 tensor_limit_refused_user(void)
{
	return atomic64_read(&refused_user);
}

static bool charge(atomic64_t *count, u64 limit, u64 bytes)
{
	s64 old = atomic64_read(count);

	do {
		if (bytes > limit || old > limit - bytes)
			return false;
	} while (!atomic64_try_cmpxchg(count, &old, old + bytes));
	return true;
}

/**
 * tensor_limit_exempt() - may the calling task lock any amount of memory?
 *
 * Return: whether it has CAP_IPC_LOCK in the initial user namespace.
 */
bool tensor_limit_exempt(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
}

/* A count of a user, beyond its limit only for a task that is exempt. */
static bool charge_user(atomic64_t *count, u64 limit, u64 amount)
{
	return charge(count, limit, amount) ||
	       (tensor_limit_exempt() && charge(count, S64_MAX, amount));
}

/**
 * tensor_limit_try() - charge bytes to both limits as they are; inside this folder
 * @user: who pays
 * @bytes: how many
 * @own: set if it is the limit of the user that refuses
 *
 * Return: 0, or -EDQUOT and nothing is charged.
 */
int tensor_limit_try(struct tensor_user *user, u64 bytes, bool *own)
{
	/* the user first: a refusal by its limit must not have taken from the other one */
	*own = !charge_user(&user->used, tensor_limit_user_bytes(), bytes);
	if (*own)
		return -EDQUOT;
	if (charge(&used, tensor_limit_bytes(), bytes))
		return 0;
	atomic64_sub(bytes, &user->used);
	return -EDQUOT;
}

/**
 * tensor_limit_refuse() - count a refusal; inside this folder
 * @user: whose request
 * @own: whether it is the limit of the user that refused
 */
void tensor_limit_refuse(struct tensor_user *user, bool own)
{
	atomic64_inc(own ? &refused_user : &refused);
	if (own)
		atomic64_inc(&user->refused);
}

/**
 * tensor_limit_uncharge() - undo tensor_limit_charge(), or a part of it
 * @user: the same user
 * @bytes: how many of the bytes
 */
void tensor_limit_uncharge(struct tensor_user *user, u64 bytes)
{
	atomic64_sub(bytes, &used);
	atomic64_sub(bytes, &user->used);
}

/**
 * tensor_limit_count() - count a handle, or a buffer that is not charged for its memory
 * @user: whose
 *
 * Return: 0, undone by tensor_limit_uncount(); -EDQUOT: the user has one for each page that the
 * limit permits.
 */
int tensor_limit_count(struct tensor_user *user)
{
	if (charge_user(&user->objects, tensor_limit_user_bytes() >> PAGE_SHIFT, 1))
		return 0;
	tensor_limit_refuse(user, true);
	return -EDQUOT;
}

/**
 * tensor_limit_uncount() - undo tensor_limit_count()
 * @user: the same user
 */
void tensor_limit_uncount(struct tensor_user *user)
{
	atomic64_dec(&user->objects);
}
