// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Joining rows of pieces. The output is cut into ranges of bytes, wherever in a row they begin,
 * so that one long row is shared out like many short ones. Short pieces are moved without a call.
 */
#include "join.h"

#include "parallel.h"

#include <string.h>

#define GRAIN (128 << 10) /* bytes of the output in a chunk */

struct join {
	char *to;
	const struct join_piece *piece;
	int n;
	int64_t row; /* bytes */
};

/* Two moves that overlap in the middle. */
#define MOVE_TWICE(n, SIZE)                                                                       \
	do {                                                                                      \
		char first[SIZE], last[SIZE];                                                     \
                                                                                                  \
		memcpy(first, from, SIZE);                                                        \
		memcpy(last, from + (n) - (SIZE), SIZE);                                          \
		memcpy(to, first, SIZE);                                                          \
		memcpy(to + (n) - (SIZE), last, SIZE);                                            \
	} while (0)

static inline void move(char *to, const char *from, int64_t n)
{
	if (n > 64)
		memcpy(to, from, n);
	else if (n >= 32)
		MOVE_TWICE(n, 32);
	else if (n >= 16)
		MOVE_TWICE(n, 16);
	else if (n >= 8)
		MOVE_TWICE(n, 8);
	else if (n >= 4)
		MOVE_TWICE(n, 4);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i];
}

/* From byte `at` of a row up to its end, or `n` bytes; how many. */
static int64_t part_of_row(const struct join *j, char *to, int64_t row, int64_t at, int64_t n)
{
	int64_t done = 0;

	for (int i = 0; i < j->n && done < n; i++) {
		int64_t bytes = j->piece[i].bytes, m = bytes - at;

		if (m <= 0) {
			at -= bytes;
			continue;
		}
		if (m > n - done)
			m = n - done;
		move(to + done, j->piece[i].from + row * bytes + at, m);
		done += m;
		at = 0;
	}
	return done;
}

static void join_range(int64_t begin, int64_t end, void *ctx)
{
	const struct join *j = ctx;

	while (begin < end && (begin % j->row || end - begin < j->row))
		begin += part_of_row(j, j->to + begin, begin / j->row, begin % j->row, end - begin);
	for (; end - begin >= j->row; begin += j->row) {
		int64_t row = begin / j->row;
		char *to = j->to + begin;

		for (int i = 0; i < j->n; i++) {
			int64_t bytes = j->piece[i].bytes;

			move(to, j->piece[i].from + row * bytes, bytes);
			to += bytes;
		}
	}
	if (begin < end)
		part_of_row(j, j->to + begin, begin / j->row, 0, end - begin);
}

void join_rows(char *to, int64_t rows, const struct join_piece *piece, int n)
{
	struct join j = {.to = to, .piece = piece, .n = n};

	for (int i = 0; i < n; i++)
		j.row += piece[i].bytes;
	parallel_for(0, rows * j.row, GRAIN, join_range, &j);
}
