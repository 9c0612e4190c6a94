/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Rounded sizes of mappings and buffers, so that a freed one serves similar requests. */
#ifndef TENSOR_SIZE_CLASS_H
#define TENSOR_SIZE_CLASS_H

#include <stddef.h>

/*
 * Rounds n up: eight sizes per doubling, whole pages, whole huge pages if larger than one. *class
 * is the number of the size.
 */
static inline size_t cache_round(size_t n, unsigned *class)
{
	size_t huge = (size_t)2 << 20, granule;
	unsigned msb;

	if (n < 4096)
		n = 4096;
	msb = 63 - (unsigned)__builtin_clzl(n);
	granule = (size_t)1 << (msb - 3);
	if (n >= huge && granule < huge)
		granule = huge;
	if (granule < 4096)
		granule = 4096;
	n = (n + granule - 1) & ~(granule - 1);
	msb = 63 - (unsigned)__builtin_clzl(n);
	*class = (msb - 12) * 8 + (unsigned)((n >> (msb - 3)) & 7);
	return n;
}

#endif
