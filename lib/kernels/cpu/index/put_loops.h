/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of put.c for one operation and one dtype: the loop put_OP_SUFFIX() and the functions it
 * calls. Included once for each (no include guard), by put.c, put_bool.h and the lists in
 * simd/each_*.h. The includer defines
 *
 *   PUT         put_add, put_mul, put_max, put_min or put_set
 *   T, SUFFIX   element type, end of function names
 *   C           the type that elements are computed in
 *   LOAD(x), STORE(x)  conversions from T to C and from C to T
 *   COMBINE(y, x)      the result for the output's element y and the source's element x; it may use
 *                      `factor`, which is alpha as a double
 *   PUT_ALPHA          if COMBINE uses `alpha`, which is a C
 *
 * Strides are in bytes. The functions for rows are not inlined, so that each has all registers.
 */
#define F(name) CPU_PASTE(CPU_PASTE(PUT, name), SUFFIX)

/* Combines the element at `to` with that of the source at `from`. */
static inline __attribute__((always_inline)) void F(element)(T *to, const T *from, double factor)
{
#ifdef PUT_ALPHA
	const C alpha = (C)factor;
#endif
	C x = LOAD(*from), y = LOAD(*to);

	(void)factor, (void)y;
	*to = STORE(COMBINE(y, x));
}

/* Whether a factor 1 spares the multiplication, for loops of their own. */
static inline bool F(is_unscaled)(const struct put *p)
{
#ifdef PUT_ALPHA
	return p->alpha == 1;
#else
	return false;
#endif
}

/* The len elements whose numbers are in position[], to offsets at[]. */
static __attribute__((noinline)) void F(picked)(char *o, const char *s, int64_t so, int64_t ss,
						const int64_t *at, const int64_t *position,
						int64_t len, double factor)
{
	for (int64_t i = 0; i < len; i++) {
		int64_t n = position[i];

		F(element)((T *)(o + n * so + at[i]), (const T *)(s + n * ss), factor);
	}
}

/* A row of len elements, to offsets at[]. */
static __attribute__((noinline)) void F(row)(char *o, const char *s, int64_t so, int64_t ss,
					     const int64_t *at, int64_t len, double factor)
{
	for (int64_t i = 0; i < len; i++)
		F(element)((T *)(o + i * so + at[i]), (const T *)(s + i * ss), factor);
}

/* A row of len elements of one index, to a row of the output. */
static __attribute__((noinline)) void F(same_index)(char *o, const char *s, int64_t so, int64_t ss,
						    int64_t len, double factor)
{
	if (so == sizeof(T) && ss == sizeof(T)) {
		T *to = (T *)o;
		const T *from = (const T *)s;

#if defined(PUT_ALPHA)
		if (D == TENSOR_BF16 || D == TENSOR_F16) {
			put_add_row((uint16_t *)to, (const uint16_t *)from, len, (float)factor,
				    D == TENSOR_F16);
			return;
		}
#endif
		IVDEP for (int64_t i = 0; i < len; i++) F(element)(&to[i], &from[i], factor);
		return;
	}
	for (int64_t i = 0; i < len; i++)
		F(element)((T *)(o + i * so), (const T *)(s + i * ss), factor);
}

/* wrap is added to negative indices. Returns false at an index that is not below limit then. */
static inline __attribute__((always_inline)) bool
F(dense_row)(char *o, const char *s, const volatile int64_t *index, int64_t len, int64_t step,
	     int64_t wrap, uint64_t limit, double factor)
{
	for (int64_t i = 0; i < len; i++) {
		int64_t at = index[i];

		at += at >> 63 & wrap;
		if (unlikely((uint64_t)at >= limit))
			return false;
		F(element)((T *)(o + at * step), (const T *)s + i, factor);
	}
	return true;
}

/* The common case: one dimension, contiguous i64 indices and source, stride 0 in the output. */
static __attribute__((noinline)) bool F(dense)(const struct put *p, char *o, const char *index,
					       const char *s, int64_t len)
{
	const volatile int64_t *from = (const volatile int64_t *)index;
	int64_t step = p->x->step[0], limit = p->x->limit[0], wrap = p->x->wrap ? limit : 0;
	bool simple = step == sizeof(T) && !p->x->wrap, in_range;

#if defined(PUT_ALPHA) && defined(DISTINCT_GROUP)
	if ((D == TENSOR_BF16 || D == TENSOR_F16) && simple && limit >= DISTINCT_LEAST) {
		int64_t done = put_distinct((uint16_t *)o, (const int64_t *)index,
					    (const uint16_t *)s, len, limit, (float)p->alpha,
					    D == TENSOR_F16);

		if (unlikely(done < 0))
			p->x->bad = true;
		if (done < 0 || done == len)
			return done == len;
		from += done;
		s += done * sizeof(T);
		len -= done;
	}
#endif
	if (!simple)
		in_range = F(dense_row)(o, s, from, len, step, wrap, limit, p->alpha);
	else if (F(is_unscaled)(p))
		in_range = F(dense_row)(o, s, from, len, sizeof(T), 0, limit, 1);
	else
		in_range = F(dense_row)(o, s, from, len, sizeof(T), 0, limit, p->alpha);
	if (unlikely(!in_range))
		p->x->bad = true;
	return in_range;
}

/* Rows of n elements side by side, to offsets at[]. */
static inline __attribute__((always_inline)) void F(across)(char *o, const char *s,
							    const int64_t *s1, const int64_t *at,
							    int64_t step, int64_t n, int64_t rows,
							    double factor)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t r = 0; r < rows; r++)
			F(element)
	((T *)(o + r * s1[0] + at[r * step + i]), (const T *)(s + r * s1[2]) + i, factor);
}

/*
 * dense() for short rows of different elements of the output: one element of each of several rows,
 * then the next, so that the sum of an element rarely waits for the one before.
 */
static __attribute__((noinline)) void F(dense_rows)(const struct put *p, char *const *data,
						    const int64_t *s1, int64_t n0, int64_t n1)
{
	int64_t at[INDEX_BLOCK], most = INDEX_BLOCK / n0, step;

	for (int64_t j = 0, rows; j < n1; j += rows) {
		char *o = data[0] + j * s1[0];
		const char *s = data[2] + j * s1[2];

		rows = n1 - j < most ? n1 - j : most;
		if (!indices_fetch_rows(p->x, data[1] + j * s1[1], sizeof(int64_t), s1[1], n0, rows,
					at, &step))
			return;
		if (F(is_unscaled)(p))
			F(across)(o, s, s1, at, step, n0, rows, 1);
		else
			F(across)(o, s, s1, at, step, n0, rows, p->alpha);
	}
}

/* Short rows along which the index changes: the indices of several are read together. */
static __attribute__((noinline)) void F(short_rows)(const struct put *p, char *const *data,
						    const int64_t *s0, const int64_t *s1,
						    int64_t n0, int64_t n1)
{
	int64_t at[INDEX_BLOCK], most = INDEX_BLOCK / n0, step;

	for (int64_t j = 0, rows; j < n1; j += rows) {
		rows = n1 - j < most ? n1 - j : most;
		if (!indices_fetch_rows(p->x, data[1] + j * s1[1], s0[1], s1[1], n0, rows, at,
					&step))
			return;
		for (int64_t r = 0; r < rows; r++) {
			char *o = data[0] + (j + r) * s1[0];
			const char *s = data[2] + (j + r) * s1[2];

			for (int64_t i = 0; i < n0; i++)
				F(element)
			((T *)(o + i * s0[0] + at[r * step + i]), (const T *)(s + i * s0[2]),
			 p->alpha);
		}
	}
}

/* Rows along which the index changes. */
static void F(rows)(const struct put *p, char *const *data, const int64_t *s0, const int64_t *s1,
		    int64_t n0, int64_t n1)
{
	int64_t at[INDEX_BLOCK], position[INDEX_BLOCK], so = s0[0], ss = s0[2];

	for (int64_t j = 0; j < n1; j++)
		for (int64_t i = 0, len, k; i < n0; i += len) {
			char *o = data[0] + j * s1[0] + i * so;
			const char *s = data[2] + j * s1[2] + i * ss;
			const char *from = data[1] + j * s1[1] + i * s0[1];

			len = n0 - i < INDEX_BLOCK ? n0 - i : INDEX_BLOCK;
			if (!indices_fetch(p->x, from, s0[1], len, at))
				return;
			if (p->window) {
				k = pick(p, at, len, position);
				F(picked)(o, s, so, ss, at, position, k, p->alpha);
			} else {
				F(row)(o, s, so, ss, at, len, p->alpha);
			}
		}
}

/* Rows of one index each. */
static void F(rows_same_index)(const struct put *p, char *const *data, const int64_t *s0,
			       const int64_t *s1, int64_t n0, int64_t n1)
{
	int64_t at[INDEX_BLOCK];

	for (int64_t j = 0, rows; j < n1; j += rows) {
		rows = n1 - j < INDEX_BLOCK ? n1 - j : INDEX_BLOCK;
		if (!indices_fetch(p->x, data[1] + j * s1[1], s1[1], rows, at))
			return;
		for (int64_t r = 0; r < rows; r++) {
			char *o = data[0] + (j + r) * s1[0] + at[r];
			const char *s = data[2] + (j + r) * s1[2];

			if (!p->window || (at[r] >= p->low && at[r] < p->high))
				F(same_index)(o, s, s0[0], s0[2], n0, p->alpha);
		}
	}
}

static void CPU_PASTE(PUT, SUFFIX)(char *const *data, const int64_t *s0, const int64_t *s1,
				   int64_t n0, int64_t n1, const void *params)
{
	const struct put *p = params;

	/* Measured: dense() is faster for elements of 4 and 8 bytes, whose sums take less time. */
	if (sizeof(T) == 2 && !p->window && p->x->n == 1 && !p->x->narrow &&
	    s0[1] == sizeof(int64_t) && s0[2] == sizeof(T) && !s0[0] && s1[0] && n1 > 1 &&
	    n0 <= ROW_BLOCK) {
		F(dense_rows)(p, data, s1, n0, n1);
	} else if (!p->window && p->x->n == 1 && !p->x->narrow && s0[1] == sizeof(int64_t) &&
		   s0[2] == sizeof(T) && !s0[0]) {
		for (int64_t j = 0; j < n1; j++)
			if (!F(dense)(p, data[0] + j * s1[0], data[1] + j * s1[1],
				      data[2] + j * s1[2], n0))
				return;
	} else if (s0[1] && !p->window && n0 <= ROW_BLOCK) {
		F(short_rows)(p, data, s0, s1, n0, n1);
	} else if (s0[1]) {
		F(rows)(p, data, s0, s1, n0, n1);
	} else {
		F(rows_same_index)(p, data, s0, s1, n0, n1);
	}
}

#undef F
