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
	return (struct F(lines)){ buffer + (backward ? LANES : 0), buffer + (backward ? 0 : LANES) };
}

/* The first n lanes of a vector, all of them or none. */
static vec_part F(part)(int64_t n)
{
	return F_PART(n < 0 ? 0 : n > LANES ? LANES : n);
}

/* Transposes a matrix of LANES vectors. */
INLINE void F(transpose)(V *a)
{
	V b[LANES];

	_Pragma("GCC unroll 4") for (int round = 1; round < LANES; round *= 2)
	{
		_Pragma("GCC unroll 16") for (int i = 0; i < LANES / 2; i++)
		{
			b[2 * i] = __builtin_shuffle(a[i], a[i + LANES / 2], F_LOW);
			b[2 * i + 1] = __builtin_shuffle(a[i], a[i + LANES / 2], F_HIGH);
		}
		_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
			a[i] = b[i];
	}
}

/* ---- lines side by side in memory ---- */

/* Element i of `lanes` complex lines is at x + i * step, the next line two numbers behind. */
static void F(load_pairs)(T *to, const T *x, int64_t step, int64_t n, int lanes)
{
	vec_part low = F(part)(2 * lanes), high = F(part)(2 * lanes - LANES);

	for (int64_t i = 0; i < n; i++, x += step, to += 2 * LANES) {
		V a = lanes == LANES ? *(const V *)x : F_LOAD(x, low);
		V b = lanes == LANES ? *(const V *)(x + LANES) : F_LOAD(x + LANES, high);

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
			*(V *)y = a;
			*(V *)(y + LANES) = b;
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
		*(V *)(to + LANES) = pairs ? F_LOAD(x, part) : (V){ 0 };
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

/*
 * n numbers of each of `lanes` lines, `line` numbers apart. Number j goes to `to` + j * row: row is
 * LANES for complex lines and pairs, 2 * LANES for real parts alone.
 */
static void F(load_rows)(T *to, int64_t row, const T *x, int64_t line, int64_t n, int lanes)
{
	for (int64_t j = 0; j < n; j += LANES) {
		int some = (int)(n - j < LANES ? n - j : LANES);
		vec_part part = F(part)(some);
		V a[LANES];

		for (int l = 0; l < LANES; l++) {
			const T *from = x + (l < lanes ? l : 0) * line + j;

			a[l] = some == LANES ? *(const V *)from : F_LOAD(from, part);
		}
		F(transpose)(a);
		for (int i = 0; i < some; i++)
			*(V *)(to + (j + i) * row) = a[i];
	}
}

/* Numbers of the outputs in order: two of each output, or its real part. */
static void F(store_rows)(T *y, int64_t line, const T *from, const int32_t *at, int64_t n,
			  int lanes, bool pairs, T scale)
{
	for (int64_t j = 0; j < n; j += LANES) {
		int some = (int)(n - j < LANES ? n - j : LANES);
		vec_part part = F(part)(some);
		V a[LANES];

		for (int i = 0; i < LANES; i++) {
			int64_t k = j + (i < some ? i : 0);
			int64_t e = pairs ? (int64_t)at[k / 2] * 2 + k % 2 : (int64_t)at[k] * 2;

			a[i] = *(const V *)(from + e * LANES) * scale;
		}
		F(transpose)(a);
		for (int l = 0; l < lanes; l++)
			if (some == LANES)
				*(V *)(y + l * line + j) = a[l];
			else
				F_STORE(y + l * line + j, part, a[l]);
	}
}
