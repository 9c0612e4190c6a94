/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of product_s8.c over the depth of a product, for one instruction (no include guard). TARGET is the attribute that functions
 * need to use it, ADD adds products of bytes.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* `rows` rows by `width` vectors of columns; inlined with constants. */
TARGET static inline __attribute__((always_inline)) void
F(tile_of)(int32_t *sums, const struct tile *t, int64_t at, const int rows, const int width)
{
	const int8_t *w = t->w;
	dot_vec sum[DOT_ROWS][DOT_WIDTH];

#pragma GCC unroll 6
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int j = 0; j < width; j++)
			sum[r][j] = t->add ? *(const dot_vec *)(sums + (at + r) * PANEL +
								j * DOT_LANES) :
					     (dot_vec){ 0 };
	for (int64_t tap = 0; tap < t->taps; tap++) {
		const uint8_t *x[DOT_ROWS];

#pragma GCC unroll 6
		for (int r = 0; r < rows; r++)
			x[r] = t->x[tap * ROWS + at + r] + t->shift;
		for (int64_t u = 0; u < t->units; u++, w += 4 * t->width) {
			dot_vec b[DOT_WIDTH];

#pragma GCC unroll 4
			for (int j = 0; j < width; j++)
				b[j] = *(const dot_vec *)(w + j * DOT_BYTES);
#pragma GCC unroll 6
			for (int r = 0; r < rows; r++) {
				dot_vec a = dot_spread(x[r] + 4 * u);

#pragma GCC unroll 4
				for (int j = 0; j < width; j++)
					sum[r][j] = ADD(sum[r][j], a, b[j]);
			}
		}
	}
#pragma GCC unroll 6
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int j = 0; j < width; j++)
			*(dot_vec *)(sums + (at + r) * PANEL + j * DOT_LANES) = sum[r][j];
}

/* All rows of a block by `width` vectors. */
TARGET static inline __attribute__((always_inline)) void
F(rows_of)(int32_t *sums, const struct tile *t, const int width)
{
	int64_t i = 0;

	for (; i + DOT_ROWS <= t->rows; i += DOT_ROWS)
		F(tile_of)(sums, t, i, DOT_ROWS, width);
	for (; i < t->rows; i++)
		F(tile_of)(sums, t, i, 1, width);
}

/* sums[i * PANEL + j] for all rows i and for the columns j below n, and perhaps further ones. */
TARGET static void F(block)(int32_t *sums, const struct tile *all, int64_t n)
{
	struct tile t = *all;

	while (n > 0) {
		const int width = n > 3 * DOT_LANES && DOT_WIDTH > 2 ? DOT_WIDTH :
				  n > DOT_LANES			     ? 2 :
								       1;

		if (width == 1)
			F(rows_of)(sums, &t, 1);
		else if (width == 2)
			F(rows_of)(sums, &t, 2);
		else
			F(rows_of)(sums, &t, DOT_WIDTH);
		n -= width * DOT_LANES;
		sums += width * DOT_LANES;
		t.w += width * DOT_BYTES;
	}
}

/*
 * DOT_BYTES channels of row r of a depthwise product: the bytes of four taps of a channel become a lane. Vector q of the weights has
 * channels 4 q to 4 q + 3 of each 16, and the sums stay in this order. The weights of taps that do not exist are zero.
 */
TARGET static inline void F(channels_of)(int32_t *sums, const struct tile *t, int64_t r)
{
	const uint8_t *const *x = t->x + r;
	const int8_t *w = t->w;
	dot_vec sum[4] = { { 0 } };

	for (int64_t tap = 0; tap < t->taps; tap += 4, w += 4 * DOT_BYTES) {
		dot_vec of[4], low[2], high[2];

		for (int64_t k = 0; k < 4; k++)
			of[k] = *(const dot_vec *)(x[(tap + k < t->taps ? tap + k : tap) * ROWS] +
						   t->shift);
		for (int k = 0; k < 2; k++) {
			low[k] = dot_low_bytes(of[2 * k], of[2 * k + 1]);
			high[k] = dot_high_bytes(of[2 * k], of[2 * k + 1]);
		}
		sum[0] = ADD(sum[0], dot_low_pairs(low[0], low[1]), *(const dot_vec *)w);
		sum[1] = ADD(sum[1], dot_high_pairs(low[0], low[1]),
			     *(const dot_vec *)(w + DOT_BYTES));
		sum[2] = ADD(sum[2], dot_low_pairs(high[0], high[1]),
			     *(const dot_vec *)(w + 2 * DOT_BYTES));
		sum[3] = ADD(sum[3], dot_high_pairs(high[0], high[1]),
			     *(const dot_vec *)(w + 3 * DOT_BYTES));
	}
	for (int q = 0; q < 4; q++)
		*(dot_vec *)(sums + q * DOT_LANES) = sum[q];
}

/* As F(block), of at most DOT_BYTES channels. */
TARGET static void F(channels)(int32_t *sums, const struct tile *t, int64_t n)
{
	for (int64_t r = 0; r < t->rows; r++, sums += PANEL) {
		int32_t part[DOT_BYTES];

		F(channels_of)(t->add ? part : sums, t, r);
		for (int64_t j = 0; t->add && j < DOT_BYTES; j++)
			sums[j] += part[j];
	}
}

#undef F
