/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Lines of a scan: a line is the elements of self along the scanned dimension. Lines are
 * numbered by their position in the kept dimensions, innermost first.
 */
#ifndef TENSOR_CPU_LINES_H
#define TENSOR_CPU_LINES_H

#include "iter/iter.h"
#include "iter/parallel.h"
#include "iter/reduce_iter.h"

#include <stdlib.h>

#define LINES_BY_ROWS_MIN   8	/* neighbouring lines that are scanned row by row */
#define LINES_BY_ROWS_GRAIN 128 /* the fewest of them for a thread */

/* Whether neighbouring lines are closer in memory than neighbouring elements of a line. */
static inline bool lines_are_closer(const struct reduce_iter *t)
{
	return t->kept.size[0] > 1 && llabs(t->kept.stride[1][0]) < llabs(t->along.stride[1][0]);
}

/* The same, and there are enough of them for a scan by rows of converted elements. */
static inline bool lines_by_rows(const struct reduce_iter *t)
{
	return t->kept.size[0] >= LINES_BY_ROWS_MIN && lines_are_closer(t);
}

/* The grain of a parallel_for() over lines. */
static inline int64_t lines_grain(const struct reduce_iter *t, bool by_rows)
{
	int64_t grain = ITER_GRAIN / t->along.count, least = by_rows ? LINES_BY_ROWS_GRAIN : 1;

	return grain < least ? least : grain;
}

/*
 * The number of lines from `begin` on, before `end`, that are in one run of the innermost kept
 * dimension, at most `most`; data is set to the operands of the first.
 */
static inline int64_t lines_next(const struct reduce_iter *t, int64_t begin, int64_t end,
				 int64_t most, char **data)
{
	int64_t run = t->kept.size[0], n = run - begin % run;

	reduce_iter_seek(t, begin, data);
	if (n > end - begin)
		n = end - begin;
	return n < most ? n : most;
}

#endif
