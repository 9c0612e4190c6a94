// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit of all buffers together, and that of each user's.
 *
 * Buffer memory can neither be moved nor swapped out, and the out-of-memory killer does not see it
 * in any process. So there is a ceiling that holds even where no memory cgroup is set up: half of
 * the memory, as for shared memory filesystems. A single user may have all of it, because most
 * machines have only one; where they have several, the administrator sets what each may have. Both
 * are charged before the first page is asked for: whoever runs against one has cost the machine
 * nothing.
 *
 * No lock: each count is raised by a compare and exchange that never exceeds its limit.
 */
#include <linux/atomic.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "alloc.h"

unsigned long long tensor_param_limit;
module_param_named(limit_bytes, tensor_param_limit, ullong, 0644);
MODULE_PARM_DESC(limit_bytes, "Most bytes that all buffers together may have; 0: half of memory");

unsigned long long tensor_param_user_limit;
module_param_named(user_limit_bytes, tensor_param_user_limit, ullong, 0644);
MODULE_PARM_DESC(user_limit_bytes,
		 "Most bytes that the buffers of one user may have; 0: as limit_bytes");

static atomic64_t used;
static atomic64_t refused;
static atomic64_t refused_user;

/**
 * tensor_limit_bytes() - the limit in all that is in force now
 *
 * Return: bytes. It may be below what is in use: lowering it takes nothing away.
 */
u64 tensor_limit_bytes(void)
{
	u64 limit = READ_ONCE(tensor_param_limit);

	/* a count that goes up to this cannot overflow */
	return limit ? min_t(u64, limit, S64_MAX) : (u64)totalram_pages() / 2 * PAGE_SIZE;
}

/**
 * tensor_limit_user_bytes() - the limit of each user that is in force now
 *
 * Return: bytes, as above.
 */
u64 tensor_limit_user_bytes(void)
{
	u64 limit = READ_ONCE(tensor_param_user_limit);

	return limit ? min_t(u64, limit, S64_MAX) : tensor_limit_bytes();
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
 * tensor_limit_charge() - take bytes out of what both limits leave
 * @user: who pays
 * @bytes: how many
 *
 * Return: 0, or -EDQUOT and nothing is charged.
 */
int tensor_limit_charge(struct tensor_user *user, u64 bytes)
{
	/* the user first: what is taken back here has stood in nobody else's way */
	if (!charge(&user->used, tensor_limit_user_bytes(), bytes)) {
		atomic64_inc(&refused_user);
		atomic64_inc(&user->refused);
		return -EDQUOT;
	}
	if (!charge(&used, tensor_limit_bytes(), bytes)) {
		atomic64_sub(bytes, &user->used);
		atomic64_inc(&refused);
		return -EDQUOT;
	}
	return 0;
}

/**
 * tensor_limit_uncharge() - give back what tensor_limit_charge() took
 * @user: the same user
 * @bytes: the same number
 */
void tensor_limit_uncharge(struct tensor_user *user, u64 bytes)
{
	atomic64_sub(bytes, &used);
	atomic64_sub(bytes, &user->used);
}
