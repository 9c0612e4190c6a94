// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit of all users together and the limit of each user.
 *
 * A limit counts every byte that the module keeps unmovable: memory of ALLOC until its last
 * reference is dropped (linger.c), memory pinned by PIN, and the pages of a memfd while a device
 * has them mapped. Such memory can neither be moved nor swapped out, and the OOM killer attributes
 * it to no process. Both limits therefore hold without memory cgroups, too: half of memory for all
 * users together, as for shared memory filesystems, and an eighth of memory for one user, so that
 * one user cannot lock out the others. A task with CAP_IPC_LOCK may exceed the limit of its user,
 * as it may exceed RLIMIT_MEMLOCK, and is still charged; the limit of all users holds for every
 * task. Both are charged before the first page is allocated.
 *
 * Kernel structs of handles and of imported buffers are charged to memory cgroups only. To bound
 * them without memory cgroups, too, a user may have one of them for each page of the limit.
 *
 * No lock: a compare and exchange raises each count and never exceeds its limit.
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
MODULE_PARM_DESC(limit_bytes, "Limit in bytes of all users together; 0: half of memory");

unsigned long long tensor_param_user_limit;
module_param_named(user_limit_bytes, tensor_param_user_limit, ullong, 0644);
MODULE_PARM_DESC(user_limit_bytes,
		 "Limit in bytes of each user without CAP_IPC_LOCK; 0: an eighth of memory");

static atomic64_t used;
static atomic64_t refused;
static atomic64_t refused_user;

static u64 limit_of(const unsigned long long *param, unsigned int divisor)
{
	u64 limit = READ_ONCE(*param);

	/* a count up to this value cannot overflow */
	return limit ? min_t(u64, limit, S64_MAX) : (u64)totalram_pages() / divisor * PAGE_SIZE;
}

/**
 * tensor_limit_bytes() - the limit of all users together
 *
 * Return: bytes. It may be below what is in use: lowering it frees nothing.
 */
u64 tensor_limit_bytes(void)
{
	return limit_of(&tensor_param_limit, 2);
}

/**
 * tensor_limit_user_bytes() - the limit of each user
 *
 * Return: bytes, as tensor_limit_bytes().
 */
u64 tensor_limit_user_bytes(void)
{
	return limit_of(&tensor_param_user_limit, 8);
}

/**
 * tensor_limit_used() - bytes charged to all users
 *
 * Return: bytes.
 */
u64 tensor_limit_used(void)
{
	return atomic64_read(&used);
}

/**
 * tensor_limit_refused() - charges refused because of a limit, since the module was loaded
 *
 * Return: a count, which includes tensor_limit_refused_user().
 */
u64 tensor_limit_refused(void)
{
	return atomic64_read(&refused) + tensor_limit_refused_user();
}

/**
 * tensor_limit_refused_user() - charges refused because of the limit of their user
 *
 * Return: a count over all users.
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
 * tensor_limit_exempt() - whether the calling task may lock any amount of memory
 *
 * Return: whether it has CAP_IPC_LOCK in the initial user namespace.
 */
bool tensor_limit_exempt(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
}

/* Raise a count of a user; only an exempt task may exceed the limit. */
static bool charge_user(atomic64_t *count, u64 limit, u64 amount)
{
	return charge(count, limit, amount) ||
	       (tensor_limit_exempt() && charge(count, S64_MAX, amount));
}

/**
 * tensor_limit_try() - charge bytes to both limits without freeing any; internal to alloc/
 * @user: user to charge
 * @bytes: number of bytes
 * @own: set if the limit of the user refuses
 *
 * Return: 0, or -EDQUOT and nothing is charged.
 */
int tensor_limit_try(struct tensor_user *user, u64 bytes, bool *own)
{
	/* the user first: a refusal by its limit must not have charged the limit of all */
	*own = !charge_user(&user->used, tensor_limit_user_bytes(), bytes);
	if (*own)
		return -EDQUOT;
	if (charge(&used, tensor_limit_bytes(), bytes))
		return 0;
	atomic64_sub(bytes, &user->used);
	return -EDQUOT;
}

/**
 * tensor_limit_refuse() - count a refusal; internal to alloc/
 * @user: user who made the request
 * @own: whether the limit of the user refused
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
 * @bytes: number of bytes to uncharge
 */
void tensor_limit_uncharge(struct tensor_user *user, u64 bytes)
{
	atomic64_sub(bytes, &used);
	atomic64_sub(bytes, &user->used);
}

/**
 * tensor_limit_count() - count a handle, or a buffer whose memory is not charged
 * @user: the user
 *
 * Return: 0, undone by tensor_limit_uncount(); -EDQUOT: the user has one for each page of the
 * limit.
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
