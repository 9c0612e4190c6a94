/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Real lines of even length n as complex ones of h = n / 2 elements z[j] = x[2 j] + i x[2 j + 1].
 * With a = Z[k], b = conj Z[h - k] and w = exp(-2 pi i / n):
 *	X[k] = (a + b) / 2 - i w^k (a - b) / 2,  X[h - k] = conj((a + b) / 2 + i w^k (a - b) / 2)
 * The way back, without the factors of 1 / 2, has conj w^k and the other sign.
 */

/* x = a + conj b + f (a - conj b), y = conj(a + conj b - f (a - conj b)), times half; as vectors */
INLINE void F(fold_pair)(struct F(complex) * a, struct F(complex) * b, V fr, V fi, T half)
{
	V er = (a->re + b->re) * half, ei = (a->im - b->im) * half;
	V dr = a->re - b->re, di = a->im + b->im;
	V or = dr * fr - di * fi, oi = dr * fi + di * fr;

	*a = (struct F(complex)){ er + or, ei + oi };
	*b = (struct F(complex)){ er - or, oi - ei };
}

/* In place, for lines side by side: element k is at position at[k], or k without `at`. */
static void F(fold_lanes)(const struct fft_plan *p, const struct F(lines) * v, const int32_t *at)
{
	int64_t h = p->n;
	T half = at ? (T)0.5 : 1, sign = at ? -1 : 1;
	const T *w = p->fold;
	struct F(complex) a = F(get)(v, 0), b = F(get)(v, h);
	V zero = { 0 };

	if (at) {
		F(set)(v, 0, (struct F(complex)){ a.re + a.im, zero });
		F(set)(v, h, (struct F(complex)){ a.re - a.im, zero });
	} else {
		F(set)(v, 0, (struct F(complex)){ a.re + b.re, a.re - b.re });
	}
	for (int64_t k = 1; 2 * k <= h; k++) {
		int64_t i = at ? at[k] : k, j = at ? at[h - k] : h - k;
		V fr = zero + w[2 * k + 1] * half, fi = zero + w[2 * k] * half * sign;

		a = F(get)(v, i);
		b = F(get)(v, j);
		F(fold_pair)(&a, &b, fr, fi, half);
		F(set)(v, i, a);
		F(set)(v, j, b);
	}
}

/* Element k of y and its counterpart from those of x; see fold_line(). */
static void F(fold_one)(T *y, const T *x, const T *w, int64_t h, int64_t k, T half, T sign)
{
	int64_t j = h - k;
	T fr = w[2 * k + 1] * half, fi = w[2 * k] * half * sign;
	T er = (x[2 * k] + x[2 * j]) * half, ei = (x[2 * k + 1] - x[2 * j + 1]) * half;
	T dr = x[2 * k] - x[2 * j], di = x[2 * k + 1] + x[2 * j + 1];
	T or = dr * fr - di * fi, oi = dr * fi + di * fr;

	y[2 * k] = er + or ;
	y[2 * k + 1] = ei + oi;
	y[2 * j] = er - or ;
	y[2 * j + 1] = oi - ei;
}

/*
 * The same for a contiguous line, from x to y, times scale. Spectrum to numbers if `back`. A block
 * of elements from k and one that ends at h - k in reversed order.
 */
static void F(fold_line)(const struct fft_plan *p, T *y, const T *x, bool back, T scale)
{
	const U reversed = (U){ 0 } + (LANES - 1) - F_INDEX;
	const U low = (U){ 0 } + (LANES - 1) - (F_INDEX >> 1) + (F_INDEX & 1) * LANES;
	int64_t h = p->n, k = 1;
	T half = back ? scale : scale / 2, sign = back ? 1 : -1;
	const T *w = p->fold;

	for (; 2 * k <= h && k + LANES <= h; k += LANES) {
		int64_t j = h - k - LANES + 1;
		const V_ANY *f = (const V_ANY *)(x + 2 * k), *b = (const V_ANY *)(x + 2 * j);
		const V_ANY *t = (const V_ANY *)(w + 2 * k);
		V fr = __builtin_shuffle(t[0], t[1], F_ODD) * half;
		V fi = __builtin_shuffle(t[0], t[1], F_EVEN) * (half * sign);
		struct F(complex) c = { __builtin_shuffle(f[0], f[1], F_EVEN),
					__builtin_shuffle(f[0], f[1], F_ODD) };
		struct F(complex) d = { __builtin_shuffle(b[0], b[1], reversed * 2),
					__builtin_shuffle(b[0], b[1], reversed * 2 + 1) };

		F(fold_pair)(&c, &d, fr, fi, half);
		*(V_ANY *)(y + 2 * k) = __builtin_shuffle(c.re, c.im, F_LOW);
		*(V_ANY *)(y + 2 * k + LANES) = __builtin_shuffle(c.re, c.im, F_HIGH);
		*(V_ANY *)(y + 2 * j) = __builtin_shuffle(d.re, d.im, low);
		*(V_ANY *)(y + 2 * j + LANES) = __builtin_shuffle(d.re, d.im, low - LANES / 2);
	}
	for (; 2 * k <= h; k++)
		F(fold_one)(y, x, w, h, k, half, sign);
	if (back) {
		T first = x[0], last = x[2 * h];

		y[0] = (first + last) * scale;
		y[1] = (first - last) * scale;
	} else {
		T re = x[0], im = x[1];

		y[0] = (re + im) * scale;
		y[2 * h] = (re - im) * scale;
		y[1] = y[2 * h + 1] = 0;
	}
}

/* Elements above n / 2 of a Hermitian line, in lines side by side; element 0 becomes real. */
static void F(extend_lanes)(const struct F(lines) * v, int64_t n)
{
	struct F(complex) a = F(get)(v, 0);

	a.im = (V){ 0 };
	F(set)(v, 0, a);
	for (int64_t k = 1; 2 * k < n; k++) {
		a = F(get)(v, k);
		a.im = -a.im;
		F(set)(v, n - k, a);
	}
}

/* The same for a line of odd length from x to y. */
static void F(extend_line)(T *y, const T *x, int64_t n)
{
	y[0] = x[0];
	y[1] = 0;
	for (int64_t k = 1; 2 * k < n; k++) {
		y[2 * k] = y[2 * (n - k)] = x[2 * k];
		y[2 * k + 1] = x[2 * k + 1];
		y[2 * (n - k) + 1] = -x[2 * k + 1];
	}
}
