/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A scan for one operation and one dtype: struct scanner SCAN_SUFFIX (cumsum_f32) and its functions
 * (cumsum_line_f32). Included once for each by scan.c and scan_each.h (no include guard). The
 * includer defines
 *
 *   SCAN          the name of the operation
 *   T, D, SUFFIX  the type in which is computed, its dtype, the end of function names
 *   IDENTITY      the result of no elements
 *   OP(x, y)      the associative operation
 *   FIRST(x)      the result of one element
 *
 * and SCAN_VECTOR if there are vectors of T, or SCAN_OWN_LINE if it defines the function for a
 * line.
 */
#define F(name) CPU_PASTE(CPU_PASTE(SCAN, name), SUFFIX)

#if defined(SCAN_VECTOR)

/* Within a vector, lanes are combined with those 1, 2, 4 and 8 lanes below. */
static void F(line)(void *buf, int64_t n, void *carry)
{
	typedef T V __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));
	const int lanes = VEC_BYTES / sizeof(T);
	V identity = (V){ 0 } + (T)(IDENTITY), last = OP(identity, *(T *)carry);
	T *x = buf;

	for (int64_t i = n; i % lanes; i++)
		x[i] = (IDENTITY);
	for (int64_t i = 0; i < n; i += lanes) {
		V v = *(V *)(x + i);

		v = OP(v, __builtin_shuffle(v, identity, LANES_UP(T, 1)));
		if (lanes > 2)
			v = OP(v, __builtin_shuffle(v, identity, LANES_UP(T, 2)));
		if (lanes > 4)
			v = OP(v, __builtin_shuffle(v, identity, LANES_UP(T, 4)));
		if (lanes > 8)
			v = OP(v, __builtin_shuffle(v, identity, LANES_UP(T, 8)));
		*(V *)(x + i) = OP(v, last);
		last = OP(last, __builtin_shuffle(v, LANE_INDEX(T) * 0 + (lanes - 1)));
	}
	if (n)
		*(T *)carry = x[n - 1];
}

#elif !defined(SCAN_OWN_LINE)

static void F(line)(void *buf, int64_t n, void *carry)
{
	T *x = buf, sum = *(T *)carry;

	for (int64_t i = 0; i < n; i++)
		x[i] = sum = OP(sum, x[i]);
	*(T *)carry = sum;
}

#endif

static void F(lines)(void *buf, int64_t n, int64_t lines)
{
	for (T *x = buf; lines > 0; lines--, x += n) {
		x[0] = FIRST(x[0]);
		for (int64_t i = 1; i < n; i++)
			x[i] = OP(x[i - 1], x[i]);
	}
}

static void F(rows)(void *acc, void *buf, int64_t rows, int64_t n)
{
	T *restrict a = acc, *restrict x = buf;

	for (; rows > 0; rows--, x += n)
		for (int64_t i = 0; i < n; i++)
			x[i] = a[i] = OP(a[i], x[i]);
}

static void F(clear)(void *acc, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		((T *)acc)[i] = (IDENTITY);
}

static const struct scanner CPU_PASTE(SCAN, SUFFIX) = { D, F(line), F(lines), F(rows), F(clear) };

#undef F
