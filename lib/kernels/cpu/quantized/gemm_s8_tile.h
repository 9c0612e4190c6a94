/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The functions of gemm_s8.c that compute a tile, F(tile) and F(line), for one instruction (no
 * include guard). TARGET is the attribute that functions need to use it, ADD adds products of
 * bytes.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Rows of sums by 4 columns; inlined with a constant count <= DOT_ROWS. */
TARGET static inline __attribute__((always_inline)) void
F(dot_rows)(int32_t *sums, const uint8_t *const *x, const int8_t *const *w, int64_t k, int count)
{
	dot_sums sum[DOT_ROWS][4];
	int64_t at = 0;

	for (int r = 0; r < count; r++)
		for (int j = 0; j < 4; j++)
			sum[r][j] = dot_zero();
	for (; at + DOT_BYTES <= k; at += DOT_BYTES) {
		dot_bytes b[4];

		for (int j = 0; j < 4; j++)
			b[j] = dot_load(w[j] + at);
		for (int r = 0; r < count; r++) {
			dot_bytes a = dot_load(x[r] + at);

			for (int j = 0; j < 4; j++)
				sum[r][j] = ADD(sum[r][j], a, b[j]);
		}
	}
	if (at < k) {
		dot_bytes b[4];

		for (int j = 0; j < 4; j++)
			b[j] = dot_load_part(w[j] + at, k - at);
		for (int r = 0; r < count; r++) {
			dot_bytes a = dot_load_part(x[r] + at, k - at);

			for (int j = 0; j < 4; j++)
				sum[r][j] = ADD(sum[r][j], a, b[j]);
		}
	}
	for (int r = 0; r < count; r++)
		_mm_storeu_si128((__m128i *)(sums + r * PANEL),
				 dot_total(sum[r][0], sum[r][1], sum[r][2], sum[r][3]));
}

TARGET static void F(tile)(int32_t *sums, const uint8_t *const *x, const int8_t *const *w,
			   int64_t k)
{
	F(dot_rows)(sums, x, w, k, DOT_ROWS);
}

TARGET static void F(line)(int32_t *sums, const uint8_t *const *x, const int8_t *const *w,
			   int64_t k)
{
	F(dot_rows)(sums, x, w, k, 1);
}

#undef F
