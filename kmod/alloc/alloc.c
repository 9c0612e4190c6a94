// SPDX-License-Identifier: GPL-2.0-only
/*
 * Set-up and tear-down of what this folder keeps between requests.
 */
#include "alloc.h"

/**
 * tensor_alloc_init() - before the first request
 *
 * Return: 0 or -errno.
 */
int tensor_alloc_init(void)
{
	return tensor_pool_init();
}

/**
 * tensor_alloc_exit() - after the last request, when all chunks have been freed
 */
void tensor_alloc_exit(void)
{
	tensor_linger_exit();
	tensor_pool_exit();
	tensor_user_exit();
}
