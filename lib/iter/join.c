// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Concatenate rows of pieces. The output is divided into ranges of bytes that may begin inside a
 * row, so that one long row is as parallel as many short ones. Short pieces are copied inline. */
#include "iter/join.h"

#include "iter/copy_bytes.h"
#include "iter/parallel.h"

#define GRAIN (128 << 10) /* bytes of the output per chunk */

struct join {
	char *to;
	const struct join_piece *piece;
	int n;
	int64_t row; /* bytes of a row */
};

/* Write one row from byte `at` to its end, at most n bytes. Returns the number of bytes. */
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
		copy_bytes(to + done, j->piece[i].from + row * j->piece[i].step + at, m);
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

			copy_bytes(to, j->piece[i].from + row * j->piece[i].step, bytes);
			to += bytes;
		}
	}
	if (begin < end)
		part_of_row(j, j->to + begin, begin / j->row, 0, end - begin);
}

void join_rows(char *to, int64_t rows, const struct join_piece *piece, int n)
{
	struct join j = { .to = to, .piece = piece, .n = n };

	for (int i = 0; i < n; i++)
		j.row += piece[i].bytes;
	parallel_for(0, rows * j.row, GRAIN, join_range, &j);
}
