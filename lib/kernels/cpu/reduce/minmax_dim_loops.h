/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The functions of struct minmax_finder for one dtype and direction: max_finder_f32 and its
 * max_line_f32() etc. Included by minmax_dim.c through each_int.h and each_float.h (no include
 * guard), which define T and SUFFIX. The includer defines
 *
 *   MINMAX        max or min
 *   BEFORE(x, y)  whether x comes before y
 *   BEST(x, y)    the one of two vectors that comes first, NaN where either is NaN
 */
#define F(name) CPU_PASTE(CPU_PASTE(MINMAX, name), SUFFIX)

/* Whether y comes before x. */
static inline bool F(is_before)(T x, T y)
{
	return BEFORE(y, x) | (IS_NAN(y) & !IS_NAN(x));
}

/* A row number; as wide as T if T has 64 bits, so that vectors of both have the same lanes. */
typedef __typeof__(__builtin_choose_expr(sizeof(T) == 8, (int64_t)0, (int32_t)0)) F(row_number);

typedef T F(vec) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));
enum { F(lanes) = VEC_BYTES / sizeof(T) };

/*
 * The first in order of n elements, at least one vector. The last vector may overlap the one
 * before.
 */
static T F(best_of_block)(const T *p, int64_t n)
{
	F(vec) a = *(const F(vec) *)p, b = a, c = a, d = a, last;
	const int64_t w = F(lanes);
	T lane[F(lanes)];
	int64_t i = w;

	for (; i + 4 * w <= n; i += 4 * w) {
		a = BEST(a, *(const F(vec) *)(p + i));
		b = BEST(b, *(const F(vec) *)(p + i + w));
		c = BEST(c, *(const F(vec) *)(p + i + 2 * w));
		d = BEST(d, *(const F(vec) *)(p + i + 3 * w));
	}
	for (; i + w <= n; i += w)
		a = BEST(a, *(const F(vec) *)(p + i));
	last = *(const F(vec) *)(p + n - w);
	b = BEST(b, last);
	a = BEST(a, b);
	c = BEST(c, d);
	a = BEST(a, c);
	if (VEC_BYTES >= 64)
		a = BEST(a, VEC_CROSS(F(vec), a, 4));
	if (VEC_BYTES >= 32)
		a = BEST(a, VEC_CROSS(F(vec), a, 2));
	a = BEST(a, VEC_CROSS(F(vec), a, 1));
	*(F(vec) *)lane = a;
	for (int64_t k = 1; k < 8 / (int64_t)sizeof(T); k++)
		lane[0] = F(is_before)(lane[0], lane[k]) ? lane[k] : lane[0];
	return lane[0];
}

/* The position of the first element equal to value, which is one of the n. */
static int64_t F(position_of)(const T *p, int64_t n, T value)
{
	F(vec) wanted = (F(vec)){ 0 } + value;
	bool nan = IS_NAN(value);
	int64_t i = 0;

	for (; i + F(lanes) <= n; i += F(lanes)) {
		F(vec) x = *(const F(vec) *)(p + i);
		uint64_t found = vec_byte_bits((vec_u64)((x == wanted) | IS_NAN(x)));

		if (found)
			return i + __builtin_ctzll(found) / (int)sizeof(T);
	}
	while (i < n - 1 && !(nan ? IS_NAN(p[i]) : p[i] == value))
		i++;
	return i;
}

/* struct minmax_finder describes this function and the following ones. */
static void F(line)(void *best, int64_t *at, const char *p, int64_t n, int64_t s, int64_t from)
{
	T best_value = *(const T *)p;
	int64_t where = 0;

	if (s == sizeof(T) && n >= F(lanes)) {
		for (int64_t i = 0; i < n; i += BLOCK) {
			/* A last block shorter than a vector starts earlier, at elements already seen. */
			int64_t m = n - i < F(lanes) ? F(lanes) : n - i;
			int64_t begin = n - i < F(lanes) ? n - m : i;
			T value = F(best_of_block)((const T *)p + begin, m < BLOCK ? m : BLOCK);

			if (F(is_before)(best_value, value)) {
				best_value = value;
				where = i;
			}
		}
		where += F(position_of)((const T *)p + where, n - where < BLOCK ? n - where : BLOCK,
					best_value);
	} else {
		for (int64_t i = 1; i < n; i++) {
			T value = *(const T *)(p + i * s);

			if (F(is_before)(best_value, value)) {
				best_value = value;
				where = i;
			}
		}
	}
	*(T *)best = *(const T *)(p + where * s);
	*at = from + where;
}

/* Compares row r with the best of each column so far. */
static void F(row)(T *restrict best, F(row_number) *restrict row, const char *restrict p,
		   int64_t cols, int64_t cs, F(row_number) r)
{
	if (cs == sizeof(T)) {
		const T *restrict x = (const T *)p;

		for (int64_t c = 0; c < cols; c++) {
			bool less = F(is_before)(best[c], x[c]);

			best[c] = less ? x[c] : best[c];
			row[c] = less ? r : row[c];
		}
		return;
	}
	for (int64_t c = 0; c < cols; c++) {
		T x = *(const T *)(p + c * cs);
		bool less = F(is_before)(best[c], x);

		best[c] = less ? x : best[c];
		row[c] = less ? r : row[c];
	}
}

static void F(rows)(void *best, int64_t *at, const char *p, int64_t rows, int64_t rs, int64_t cols,
		    int64_t cs, int64_t from)
{
	_Alignas(64) F(row_number) row[TILE];

	for (int64_t c = 0; c < cols; c++) {
		((T *)best)[c] = *(const T *)(p + c * cs);
		at[c] = from;
	}
	for (int64_t i = 0; i < rows; i += ROWS_MAX) {
		int64_t n = rows - i < ROWS_MAX ? rows - i : ROWS_MAX;

		for (int64_t c = 0; c < cols; c++)
			row[c] = -1;
		for (int64_t r = 0; r < n; r++)
			F(row)(best, row, p + (i + r) * rs, cols, cs, (F(row_number))r);
		for (int64_t c = 0; c < cols; c++)
			at[c] = row[c] < 0 ? at[c] : from + i + row[c];
	}
}

static void F(combine)(void *best, int64_t *at, const void *best2, const int64_t *at2, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		if (F(is_before)(((T *)best)[i], ((const T *)best2)[i])) {
			((T *)best)[i] = ((const T *)best2)[i];
			at[i] = at2[i];
		}
	}
}

static void F(fold)(void *best, int64_t *at, int64_t cols, int64_t q)
{
	T *b = best;

	for (int64_t i = cols; i < cols * q; i++) {
		int64_t c = i % cols;
		bool tie = !F(is_before)(b[i], b[c]) && at[i] < at[c];

		if (F(is_before)(b[c], b[i]) || tie) {
			b[c] = b[i];
			at[c] = at[i];
		}
	}
}

static const struct minmax_finder F(finder) = { sizeof(T), F(line), F(rows), F(combine), F(fold) };

#undef F
