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
	int err = tensor_pool_init();

	if (err)
		return err;
	err = tensor_contig_init();
	if (err)
		tensor_pool_exit();
	return err;
}

/**
 * tensor_alloc_exit() - after the last request, when all chunks have been given back
 */
void tensor_alloc_exit(void)
{
	tensor_contig_exit();
	tensor_pool_exit();
}
