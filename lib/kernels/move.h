/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Copies of a few bytes without a call: two moves that overlap in the middle. */
#ifndef TENSOR_MOVE_H
#define TENSOR_MOVE_H

#include <stdint.h>
#include <string.h>

#define MOVE_TWICE(SIZE)                                                                          \
	do {                                                                                      \
		char first[SIZE], last[SIZE];                                                     \
                                                                                                  \
		memcpy(first, from, SIZE);                                                        \
		memcpy(last, from + n - (SIZE), SIZE);                                            \
		memcpy(to, first, SIZE);                                                          \
		memcpy(to + n - (SIZE), last, SIZE);                                              \
	} while (0)

/* n bytes between places that do not overlap. */
static inline void move_bytes(char *to, const char *from, int64_t n)
{
	if (n > 64)
		memcpy(to, from, n);
	else if (n >= 32)
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
