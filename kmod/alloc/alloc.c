// SPDX-License-Identifier: GPL-2.0-only
/* Set-up and tear-down of the state that alloc/ keeps between requests. */
#include "alloc.h"

/**
 * tensor_alloc_init() - set up the pool and the list of lingering folios
 *
 * Return: 0 or -errno.
 */
int tensor_alloc_init(void)
{
	return tensor_pool_init();
}

/**
 * tensor_alloc_exit() - tear both down; all chunks have been freed
 */
void tensor_alloc_exit(void)
{
	tensor_linger_exit();
	tensor_pool_exit();
	tensor_user_exit();
}
