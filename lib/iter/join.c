// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Concatenate rows of pieces. The output is divided into ranges of bytes that may begin inside a
 * row, so that one long row is as parallel as many short ones. Short pieces are copied inline. */
#include "iter/join.h"

#include "iter/copy_bytes.h"
#include "iter/parallel.h"

#define GRAIN (128 << 10) /* bytes of the output per chunk */
#define BLOCK 4096	  /* bytes of rows that are written piece by piece, in the first cache */

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

/* Copy `bytes`, a constant, from each of n rows. */
static inline __attribute__((always_inline)) void
copy_each(char *to, int64_t to_step, const char *from, int64_t step, int64_t n, size_t bytes)
{
	for (int64_t i = 0; i < n; i++)
		memcpy(to + i * to_step, from + i * step, bytes);
}

/* Copy piece p of n rows. Pieces of few bytes have loops without a distinction by size for each row. */
static void copy_piece(const struct join_piece *p, char *to, int64_t to_step, int64_t row,
		       int64_t n)
{
	const char *from = p->from + row * p->step;

	switch (p->bytes) {
	case 4:
		copy_each(to, to_step, from, p->step, n, 4);
		break;
	case 8:
		copy_each(to, to_step, from, p->step, n, 8);
		break;
	case 16:
		copy_each(to, to_step, from, p->step, n, 16);
		break;
	case 32:
		copy_each(to, to_step, from, p->step, n, 32);
		break;
	case 64:
		copy_each(to, to_step, from, p->step, n, 64);
		break;
	default:
		for (int64_t i = 0; i < n; i++)
			copy_bytes(to + i * to_step, from + i * p->step, p->bytes);
	}
}

static void join_range(int64_t begin, int64_t end, void *ctx)
{
	const struct join *j = ctx;

	while (begin < end && (begin % j->row || end - begin < j->row))
		begin += part_of_row(j, j->to + begin, begin / j->row, begin % j->row, end - begin);
	for (int64_t n; end - begin >= j->row; begin += n * j->row) {
		int64_t row = begin / j->row, left = (end - begin) / j->row;
		char *to = j->to + begin;

		n = j->row < BLOCK ? BLOCK / j->row : 1;
		n = n < left ? n : left;
		for (int i = 0; i < j->n; to += j->piece[i++].bytes)
			copy_piece(&j->piece[i], to, j->row, row, n);
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
