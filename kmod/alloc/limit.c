// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit of all buffers together.
 *
 * Buffer memory can neither be moved nor swapped out, and the out-of-memory killer does not see it
 * in any process. So there is a ceiling that holds even where no memory cgroup is set up. It is
 * charged before the first page is asked for: whoever runs against it has cost the machine nothing.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "alloc.h"

static unsigned long long limit_bytes;
module_param(limit_bytes, ullong, 0644);
MODULE_PARM_DESC(limit_bytes, "Most bytes that all buffers together may have; 0: half of memory");

static atomic64_t used;
static atomic64_t refused;

/**
 * tensor_limit_bytes() - the limit in force now
 *
 * Return: bytes. It may be below what is in use: lowering it takes nothing away.
 */
u64 tensor_limit_bytes(void)
{
	u64 limit = READ_ONCE(limit_bytes);

	return limit ? limit : (u64)totalram_pages() / 2 * PAGE_SIZE;
}

/**
 * tensor_limit_used() - bytes charged now
 *
 * Return: bytes.
 */
u64 tensor_limit_used(void)
{
	return atomic64_read(&used);
}

/**
 * tensor_limit_refused() - how often a charge met the limit since the module was loaded
 *
 * Return: a count.
 */
u64 tensor_limit_refused(void)
{
	return atomic64_read(&refused);
}

/**
 * tensor_limit_charge() - take bytes out of what the limit leaves
 * @bytes: how many
 *
 * Return: 0, or -EDQUOT and nothing is charged.
 */
int tensor_limit_charge(u64 bytes)
{
	u64 limit = tensor_limit_bytes();
	s64 old = atomic64_read(&used);

	do {
		if (bytes > limit || old > limit - bytes) {
			atomic64_inc(&refused);
			return -EDQUOT;
		}
	} while (!atomic64_try_cmpxchg(&used, &old, old + bytes));
	return 0;
}

/**
 * tensor_limit_uncharge() - give back what tensor_limit_charge() took
 * @bytes: the same number
 */
void tensor_limit_uncharge(u64 bytes)
{
	atomic64_sub(bytes, &used);
}
