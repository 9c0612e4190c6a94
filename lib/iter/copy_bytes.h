/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Copy bytes inline, without a call. Up to 64 bytes are copied by two moves that overlap in the
 * middle, more in blocks of 64. memcpy() would use the string instruction, which some processors
 * execute one byte at a time where source and destination are not aligned to each other: rows of 4
 * KiB took 14 times as long.
 */
#ifndef TENSOR_COPY_BYTES_H
#define TENSOR_COPY_BYTES_H

#include <stdint.h>
#include <string.h>

/* Copy n bytes as the first `size` and the last `size`; size <= n <= 2 * size, a constant. */
static inline __attribute__((always_inline)) void copy_ends(char *to, const char *from, int64_t n,
							    size_t size)
{
	char first[32], last[32];

	memcpy(first, from, size);
	memcpy(last, from + n - size, size);
	memcpy(to, first, size);
	memcpy(to + n - size, last, size);
}

/* Copy n bytes; the ranges must not overlap. */
static inline void copy_bytes(char *to, const char *from, int64_t n)
{
	if (n > 64) {
		for (int64_t i = 0; i < n - 64; i += 64) {
			memcpy(to + i, from + i, 64);
			/* keeps the compiler from replacing the loop by memcpy() */
			__asm__ volatile("" : : : "memory");
		}
		memcpy(to + n - 64, from + n - 64, 64);
	} else if (n >= 32)
		copy_ends(to, from, n, 32);
	else if (n >= 16)
		copy_ends(to, from, n, 16);
	else if (n >= 8)
		copy_ends(to, from, n, 8);
	else if (n >= 4)
		copy_ends(to, from, n, 4);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i];
}

#endif
