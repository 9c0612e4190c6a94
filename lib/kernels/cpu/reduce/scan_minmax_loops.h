/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The functions of struct minmax_scanner for one dtype: cummax_f32 and its cummax_line_f32(),
 * cummax_row_f32(). Included by scan_minmax_each.h (no include guard), which defines T, D and
 * SUFFIX. The includer defines
 *
 *   SCAN               cummax or cummin
 *   REPLACES(x, best)  whether x, an element after best, is the next result
 */
#define F(name) CPU_PASTE(CPU_PASTE(SCAN, name), SUFFIX)

static void F(line)(void *buf, int64_t *at, int64_t n, int64_t from, void *best, int64_t *best_at)
{
	T *x = buf, value = from ? *(T *)best : x[0];
	int64_t where = from ? *best_at : 0;

	for (int64_t i = 0; i < n; i++) {
		bool take = IS_NAN(x[i]) | (REPLACES(x[i], value) & !IS_NAN(value));

		value = take ? x[i] : value;
		where = take ? from + i : where;
		x[i] = value;
		at[i] = where;
	}
	*(T *)best = value;
	*best_at = where;
}

static void F(row)(void *best, int64_t *restrict best_at, const void *buf, int64_t n, int64_t row)
{
	T *restrict value = best;
	const T *restrict x = buf;

	for (int64_t i = 0; i < n; i++) {
		bool take = (row == 0) | IS_NAN(x[i]) |
			    (REPLACES(x[i], value[i]) & !IS_NAN(value[i]));

		value[i] = take ? x[i] : value[i];
		best_at[i] = take ? row : best_at[i];
	}
}

static const struct minmax_scanner CPU_PASTE(SCAN, SUFFIX) = { D, F(line), F(row) };

#undef F
