/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Weights of conv_winograd.h: transformed, and packed in the groups of compute_tiles(). A vector has one tap of adjacent
 * rows; the taps of a row are adjacent in memory, so vectors of them are transposed in registers.
 */
#ifndef TENSOR_CONV_WINOGRAD_WEIGHTS_H
#define TENSOR_CONV_WINOGRAD_WEIGHTS_H

#define TAPS	    9
#define MOST_POINTS 5 /* products along an axis */
#define AT_A_TIME \
	8 /* channels of all rows: lines of the cache with weights of several are read once */

static inline __attribute__((always_inline)) void transform_taps(VEC *out, const int step, VEC a,
								 VEC b, VEC c, const int points)
{
	if (points == 4) {
		out[0] = a;
		out[step] = (T)0.5 * (a + b + c);
		out[2 * step] = (T)0.5 * (a - b + c);
		out[3 * step] = c;
	} else {
		out[0] = a;
		out[step] = a + c;
		out[2 * step] = c;
		out[3 * step] = b;
		out[4 * step] = b;
	}
}

/* tap[i] = tap i of `rows` rows, at most LANES; lanes of other rows are 0. */
static inline __attribute__((always_inline)) void load_taps(VEC *tap, const T *w, int64_t row,
							    int64_t rows)
{
#pragma GCC unroll 5
	for (int first = 0; first < TAPS; first += LANES) {
		int n = TAPS - first < LANES ? TAPS - first : LANES;
		VEC line[LANES];

#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++)
			line[i] = i < rows ? LOAD(w + i * row + first, PART(n)) : (VEC){ 0 };
		transpose_lanes(line);
#pragma GCC unroll 16
		for (int i = 0; i < n; i++)
			tap[first + i] = line[i];
	}
}

/* all[y * points + x] = the weights of product x, y of `rows` rows of a channel. */
static inline __attribute__((always_inline)) void
weight_points(VEC *all, const struct conv_winograd *c, const T *w, int64_t rows, const int points)
{
	VEC tap[TAPS], half[MOST_POINTS * 3];

	if (rows == LANES)
		load_taps(tap, w, c->weight_row, LANES);
	else
		load_taps(tap, w, c->weight_row, rows);
#pragma GCC unroll 3
	for (int x = 0; x < 3; x++)
		transform_taps(half + x, 3, tap[c->tap[x]], tap[c->tap[3 + x]], tap[c->tap[6 + x]],
			       points);
#pragma GCC unroll 5
	for (int y = 0; y < points; y++)
		transform_taps(all + y * points, 1, half[y * 3], half[y * 3 + 1], half[y * 3 + 2],
			       points);
}

/*
 * The channels of a group of rows. The products are `pitch` apart. If `other` is not NULL, the group has LANES / 2 rows,
 * and so has the next one, whose weights begin there.
 */
static inline __attribute__((always_inline)) void weight_group(const struct conv_winograd *c, T *to,
							       T *other, int64_t pitch, const T *w,
							       int64_t rows, int64_t depth,
							       const int points)
{
	VEC all[MOST_POINTS * MOST_POINTS];

	for (int64_t k = 0; k < depth; k++, w += c->weight_channel, to += rows) {
#ifdef STORE_HALVES
		if (other) {
			weight_points(all, c, w, LANES, points);
#pragma GCC unroll 25
			for (int p = 0; p < points * points; p++)
				STORE_HALVES(to + p * pitch, other + p * pitch, all[p]);
			other += rows;
			continue;
		}
#endif
		for (int64_t i = 0; i < rows; i += LANES) {
			vec_part part = PART(min64(rows - i, LANES));

			weight_points(all, c, w + i * c->weight_row, min64(rows - i, LANES),
				      points);
#pragma GCC unroll 25
			for (int p = 0; p < points * points; p++)
				STORE(to + p * pitch + i, part, all[p]);
		}
	}
}

/*
 * m rows of `depth` channels, in the groups of compute_tiles(). Returns the end of the first
 * product.
 */
static T *weight_groups(const struct conv_winograd *c, int points, T *to, const T *w, int64_t m,
			int64_t pitch, int64_t depth)
{
	int64_t count = (m + tile_rows[VECS] - 1) / tile_rows[VECS];
	int64_t step = c->weight_channel > c->weight_row ? AT_A_TIME : depth;

	for (int64_t k = 0; k < depth; k += step) {
		int64_t n = min64(depth - k, step), left = m;
		const T *from = w + k * c->weight_channel;
		T *at = to;

		for (int64_t i = 0, rows, groups; i < count; i += groups) {
			T *first = at + k * (rows = left / (count - i)), *other = NULL;

			groups = 1;
#ifdef STORE_HALVES
			if (2 * rows == LANES && i + 1 < count &&
			    (left - rows) / (count - i - 1) == rows) {
				groups = 2;
				other = first + rows * depth;
			}
#endif
			if (points == 4)
				weight_group(c, first, other, pitch, from, rows, n, 4);
			else
				weight_group(c, first, other, pitch, from, rows, n, 5);
			left -= groups * rows;
			from += groups * rows * c->weight_row;
			at += groups * rows * depth;
		}
	}
	return to + m * depth;
}

#endif
