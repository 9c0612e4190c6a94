/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Copy bytes inline, without a call. Up to 64 bytes are copied by two moves that overlap in the
 * middle, more in blocks of 64. memcpy() would use the string instruction, which some processors
 * execute one byte at a time where source and destination are not aligned to each other: rows of 4
 * KiB took 14 times as long.
 */
#ifndef TENSOR_MOVE_H
#define TENSOR_MOVE_H

#include <stdint.h>
#include <string.h>

#define MOVE_TWICE(SIZE)                               \
	do {                                           \
		char first[SIZE], last[SIZE];          \
                                                       \
		memcpy(first, from, SIZE);             \
		memcpy(last, from + n - (SIZE), SIZE); \
		memcpy(to, first, SIZE);               \
		memcpy(to + n - (SIZE), last, SIZE);   \
	} while (0)

/* Copy n bytes; the ranges must not overlap. */
static inline void move_bytes(char *to, const char *from, int64_t n)
{
	if (n > 64) {
		for (int64_t i = 0; i < n - 64; i += 64) {
			memcpy(to + i, from + i, 64);
			/* keeps the compiler from replacing the loop by memcpy() */
			__asm__ volatile("" : : : "memory");
		}
		memcpy(to + n - 64, from + n - 64, 64);
	} else if (n >= 32)
		MOVE_TWICE(32);
	else if (n >= 16)
		MOVE_TWICE(16);
	else if (n >= 8)
		MOVE_TWICE(8);
	else if (n >= 4)
		MOVE_TWICE(4);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i];
}

#endif
