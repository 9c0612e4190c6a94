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

typedef T F(vec) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));

/* Whether one of GROUP elements is a result after value. No number replaces NaN. */
static inline bool F(any)(const T *x, T value)
{
	vec_u64 any = { 0 };

	for (int k = 0; k < GROUP; k += VEC_BYTES / (int)sizeof(T)) {
		F(vec) v = *(const F(vec) *)(x + k);

		any |= (vec_u64)(IS_NAN(v) | REPLACES(v, value));
	}
	return vec_byte_bits(any) != 0;
}

/* Most groups of elements that are not in order have no new result. */
static void F(line)(const void *in, void *out, int64_t *at, int64_t n, int64_t from, void *best,
		    int64_t *best_at)
{
	const T *x = in;
	T *o = out, value = from ? *(T *)best : x[0];
	int64_t where = from ? *best_at : 0;

	for (int64_t i = 0; i < n; i += GROUP) {
		int64_t end = n - i < GROUP ? n : i + GROUP;

		if (end - i == GROUP && !F(any)(x + i, value)) {
			for (int k = 0; k < GROUP; k++)
				o[i + k] = value;
			for (int k = 0; k < GROUP; k++)
				at[i + k] = where;
			continue;
		}
		for (int64_t k = i; k < end; k++) {
			bool take = IS_NAN(x[k]) | REPLACES(x[k], value);

			value = take ? x[k] : value;
			where = take ? from + k : where;
			o[k] = value;
			at[k] = where;
		}
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
