/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Rows of so few outputs that those of several rows, also of several planes, are computed together.
 * A tap outside of the input stands for the nearest tap inside of it: an element that is compared
 * again changes no maximum.
 */
#ifndef TENSOR_POOL_SHORT_ROWS_H
#define TENSOR_POOL_SHORT_ROWS_H

#include "kernels/cpu/nn/pool/pool.h"

#define POOL_SHORT 16  /* outputs; longer rows fill vectors */
#define POOL_ROWS  64  /* rows, at most, that are computed together */
#define POOL_TABLE 512 /* taps of a row times outputs, at most */

struct pool_short_rows {
	int64_t rows;
	int64_t plane[POOL_ROWS]; /* element offset of the plane */
	int64_t row[POOL_ROWS]; /* offset within the plane of the row that the current taps read */
	struct pool_window z[POOL_ROWS], y[POOL_ROWS];
};

/* The position of tap k, or of the nearest tap within the input. */
static inline int64_t pool_nearest(const struct pool_window *w, int64_t k, int64_t dilation)
{
	k = k < w->from ? w->from : k < w->until ? k : w->until - 1;
	return w->start + k * dilation;
}

static inline bool pool_has_empty(const struct pool_shape *s, int d)
{
	for (int64_t o = 0; o < s->out[d]; o++) {
		struct pool_window w = pool_window_of(s, d, o);

		if (w.from == w.until)
			return true;
	}
	return false;
}

/* Sets column[k * outputs + i] to the position that tap k of output i reads. Returns false if rows
 * are long, or a window has no tap within the input. */
static inline bool pool_short_rows_columns(const struct pool_shape *s, int64_t *column)
{
	int64_t kernel = s->p->kernel[2], n = s->out[2];

	if (n >= POOL_SHORT || kernel > POOL_TABLE / n)
		return false;
	for (int d = 0; d < 3; d++)
		if (pool_has_empty(s, d))
			return false;
	for (int64_t i = 0; i < n; i++) {
		struct pool_window x = pool_window_of(s, 2, i);

		for (int64_t k = 0; k < kernel; k++)
			column[k * n + i] = pool_nearest(&x, k, s->p->dilation[2]);
	}
	return true;
}

/* The rows from `first` on, below `end`, that are computed together. */
static inline void pool_short_rows_at(const struct pool_shape *s, struct pool_short_rows *list,
				      int64_t first, int64_t end)
{
	int64_t most = POOL_CHUNK / s->out[2], oy = first % s->out[1];
	int64_t oz = first / s->out[1] % s->out[0], plane = first / s->out[1] / s->out[0];

	most = most < POOL_ROWS ? most : POOL_ROWS;
	list->rows = end - first < most ? end - first : most;
	for (int64_t r = 0; r < list->rows; r++) {
		list->plane[r] = plane * s->in_plane;
		list->z[r] = pool_window_of(s, 0, oz);
		list->y[r] = pool_window_of(s, 1, oy);
		plane += pool_next_row(s, &oz, &oy);
	}
}

/* Sets list->row for taps a and b of the first dimensions. */
static inline void pool_short_rows_tap(const struct pool_shape *s, struct pool_short_rows *list,
				       int64_t a, int64_t b)
{
	const int64_t *dilation = s->p->dilation;

	for (int64_t r = 0; r < list->rows; r++)
		list->row[r] = (pool_nearest(&list->z[r], a, dilation[0]) * s->in[1] +
				pool_nearest(&list->y[r], b, dilation[1])) *
			       s->in[2];
}

#endif
