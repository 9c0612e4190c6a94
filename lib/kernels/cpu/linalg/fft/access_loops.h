/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Lines in a buffer of LANES lines side by side: element i has its real parts at 2 * LANES * i and
 * its imaginary parts LANES behind. This order of the parts is that of memory; the backward
 * transform takes them exchanged.
 */

#define F_INDEX ((U)CPU_PASTE(FFT_INDEX, SUFFIX))
#define F_LOW	((F_INDEX >> 1) + (F_INDEX & 1) * LANES) /* interleaves the first halves */
#define F_HIGH	(F_LOW + LANES / 2)
#define F_EVEN	(F_INDEX * 2)
#define F_ODD	(F_INDEX * 2 + 1)
#define F_LOAD	CPU_PASTE(vec_load, SUFFIX)
#define F_STORE CPU_PASTE(vec_store, SUFFIX)
#define F_PART	CPU_PASTE(vec_part, SUFFIX)

/* Bytes of a buffer for n elements and the one that a real transform adds. */
static size_t F(lanes_bytes)(int64_t n)
{
	return (size_t)(n + 1) * 2 * LANES * sizeof(T);
}

static struct F(lines) F(lines_at)(T *buffer, bool backward)
{
	return (struct F(lines)){ buffer + (backward ? LANES : 0),
				  buffer + (backward ? 0 : LANES) };
}

/* The first n lanes of a vector, all of them or none. */
static vec_part F(part)(int64_t n)
{
	return F_PART(n < 0 ? 0 : n > LANES ? LANES : n);
}

/*
 * Transposes a matrix of LANES vectors. A vector consists of segments of 16 bytes: first the square
 * matrices in each segment of S rows, by interleaving in the segment; then segments change places.
 */
INLINE void F(transpose)(V *a)
{
	const int S = 16 / sizeof(T);
	const U at = F_INDEX / S * S, low = at + F_INDEX % S / 2 + F_INDEX % 2 * LANES;
	const U even = 2 * at + F_INDEX % S;
	V b[LANES];

	_Pragma("GCC unroll 4") for (int round = 1; round < S; round *= 2)
	{
		_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i += 2)
		{
			int j = i / S * S + i % S / 2;

			b[i] = __builtin_shuffle(a[j], a[j + S / 2], low);
			b[i + 1] = __builtin_shuffle(a[j], a[j + S / 2], low + S / 2);
		}
		_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) a[i] = b[i];
	}
	_Pragma("GCC unroll 4") for (int round = S; round < LANES; round *= 2)
	{
		_Pragma("GCC unroll 16") for (int i = 0; i < LANES / 2; i++)
		{
			int j = i / S * 2 * S + i % S;

			b[i] = __builtin_shuffle(a[j], a[j + S], even);
			b[i + LANES / 2] = __builtin_shuffle(a[j], a[j + S], even + S);
		}
		_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) a[i] = b[i];
	}
}

/* ---- lines side by side in memory ---- */

/* Element i of `lanes` complex lines is at x + i * step, the next line two numbers behind. */
static void F(load_pairs)(T *to, const T *x, int64_t step, int64_t n, int lanes)
{
	vec_part low = F(part)(2 * lanes), high = F(part)(2 * lanes - LANES);

	for (int64_t i = 0; i < n; i++, x += step, to += 2 * LANES) {
		V a = lanes == LANES ? *(const V_ANY *)x : F_LOAD(x, low);
		V b = lanes == LANES ? *(const V_ANY *)(x + LANES) : F_LOAD(x + LANES, high);

		*(V *)to = __builtin_shuffle(a, b, F_EVEN);
		*(V *)(to + LANES) = __builtin_shuffle(a, b, F_ODD);
	}
}

/* The same to memory, outputs in order; the parts are exchanged if `exchange`. */
static void F(store_pairs)(T *y, int64_t step, bool exchange, const T *from, const int32_t *at,
			   int64_t n, int lanes, T scale)
{
	vec_part low = F(part)(2 * lanes), high = F(part)(2 * lanes - LANES);

	for (int64_t k = 0; k < n; k++, y += step) {
		const T *e = from + (int64_t)at[k] * 2 * LANES;
		V re = *(const V *)(e + (exchange ? LANES : 0)) * scale;
		V im = *(const V *)(e + (exchange ? 0 : LANES)) * scale;
		V a = __builtin_shuffle(re, im, F_LOW), b = __builtin_shuffle(re, im, F_HIGH);

		if (lanes == LANES) {
			*(V_ANY *)y = a;
			*(V_ANY *)(y + LANES) = b;
		} else {
			F_STORE(y, low, a);
			if (2 * lanes > LANES)
				F_STORE(y + LANES, high, b);
		}
	}
}

/* As load_pairs() for real lines, two numbers of a line for an element, or one and zero. */
static void F(load_columns)(T *to, const T *x, int64_t step, int64_t n, int lanes, bool pairs)
{
	vec_part part = F(part)(lanes);

	for (int64_t i = 0; i < n; i++, to += 2 * LANES) {
		*(V *)to = F_LOAD(x, part);
		x += step;
		*(V *)(to + LANES) = pairs ? (V)F_LOAD(x, part) : (V){ 0 };
		x += pairs ? step : 0;
	}
}

static void F(store_columns)(T *y, int64_t step, const T *from, const int32_t *at, int64_t n,
			     int lanes, bool pairs, T scale)
{
	vec_part part = F(part)(lanes);

	for (int64_t k = 0; k < n; k++, y += step) {
		const T *e = from + (int64_t)at[k] * 2 * LANES;

		F_STORE(y, part, *(const V *)e * scale);
		if (!pairs)
			continue;
		y += step;
		F_STORE(y, part, *(const V *)(e + LANES) * scale);
	}
}

/* ---- lines one after another in memory: tiles are transposed ---- */

/* Numbers j to j + some - 1 of the lines; see load_rows(). */
INLINE void F(load_tile)(T *to, int64_t row, const T *x, int64_t line, int lanes, int some)
{
	vec_part part = F(part)(some);
	V a[LANES];

	_Pragma("GCC unroll 16") for (int l = 0; l < LANES; l++)
	{
		const T *from = x + (l < lanes ? l : 0) * line;

		__builtin_prefetch(from + FFT_AHEAD * LANES);
		a[l] = some == LANES ? *(const V_ANY *)from : F_LOAD(from, part);
	}
	F(transpose)(a);
	_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) if (i < some) *
		(V *)(to + i * row) = a[i];
}

/*
 * n numbers of each of `lanes` lines, `line` numbers apart. Number j goes to `to` + j * row: row is
 * LANES for complex lines and pairs, 2 * LANES for real parts alone.
 */
static void F(load_rows)(T *to, int64_t row, const T *x, int64_t line, int64_t n, int lanes)
{
	int64_t j = 0;

	for (; j + LANES <= n && lanes == LANES; j += LANES)
		F(load_tile)(to + j * row, row, x + j, line, LANES, LANES);
	for (; j < n; j += LANES)
		F(load_tile)
	(to + j * row, row, x + j, line, lanes, (int)(n - j < LANES ? n - j : LANES));
}

/* Numbers from output at[0]; see store_rows(). */
INLINE void F(store_tile_rows)(T *y, int64_t line, const T *from, const int32_t *at, int lanes,
			       int some, bool pairs, T scale)
{
	vec_part part = F(part)(some);
	V a[LANES];

	_Pragma("GCC unroll 16") for (int l = 0; l < LANES; l++)
		__builtin_prefetch(y + (l < lanes ? l : 0) * line + FFT_AHEAD * LANES, 1);
	_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i += pairs ? 2 : 1)
	{
		const T *e = from + (int64_t)at[i < some ? (pairs ? i / 2 : i) : 0] * 2 * LANES;

		a[i] = *(const V *)e * scale;
		if (pairs)
			a[i + 1] = *(const V *)(e + LANES) * scale;
	}
	F(transpose)(a);
	_Pragma("GCC unroll 16") for (int l = 0; l < LANES; l++) if (l < lanes && some == LANES) *
		(V_ANY *)(y + l * line) = a[l];
	else if (l < lanes) F_STORE(y + l * line, part, a[l]);
}

/* n numbers of the outputs in order: two of each output, or its real part. */
INLINE void F(store_rows_of)(T *y, int64_t line, const T *from, const int32_t *at, int64_t n,
			     int lanes, bool pairs, T scale)
{
	int64_t j = 0;

	for (; j + LANES <= n && lanes == LANES; j += LANES)
		F(store_tile_rows)
	(y + j, line, from, at + (pairs ? j / 2 : j), LANES, LANES, pairs, scale);
	for (; j < n; j += LANES)
		F(store_tile_rows)
	(y + j, line, from, at + (pairs ? j / 2 : j), lanes, (int)(n - j < LANES ? n - j : LANES),
	 pairs, scale);
}

static void F(store_rows)(T *y, int64_t line, const T *from, const int32_t *at, int64_t n,
			  int lanes, bool pairs, T scale)
{
	if (pairs)
		F(store_rows_of)(y, line, from, at, n, lanes, true, scale);
	else
		F(store_rows_of)(y, line, from, at, n, lanes, false, scale);
}
