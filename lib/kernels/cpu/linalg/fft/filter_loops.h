/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Lines as convolutions, which are products of transforms: of any length with a chirp (L. Bluestein, 1970), of a prime
 * length in the order of powers of a generator (C. Rader, 1968). Both return false if memory is short.
 */

/* to = x times the chirp, or its product with the transform of the filter, exchanged. */
static void F(times_table)(T *to, const T *x, const T *table, int64_t n, bool backward)
{
	IVDEP for (int64_t k = 0; k < 2 * n; k += 2)
	{
		T re = x[k + backward], im = x[k + !backward];
		T r = re * table[k] - im * table[k + 1], i = re * table[k + 1] + im * table[k];

		to[k] = r;
		to[k + 1] = i;
	}
}

/*
 * Bluestein's algorithm: the transform as a convolution with a chirp. `padded` has room for
 * p->size elements. For the backward transform re and im are exchanged at both ends.
 */
static bool F(chirp)(const struct fft_plan *p, T *y, const T *x, T *padded, T *work, bool backward,
		     T scale)
{
	const T *chirp = p->chirp;

	F(times_table)(padded, x, chirp, p->n, backward);
	memset(padded + 2 * p->n, 0, (size_t)(p->size - p->n) * 2 * sizeof(T));
	if (!F(matrix)(p, padded, padded, work, false, 1))
		return false;
	F(times_table)(padded, padded, p->filter, p->size, false);
	if (!F(matrix)(p, padded, padded, work, true, scale))
		return false;
	IVDEP for (int64_t k = 0; k < 2 * p->n; k += 2)
	{
		T re = padded[k] * chirp[k] - padded[k + 1] * chirp[k + 1];
		T im = padded[k] * chirp[k + 1] + padded[k + 1] * chirp[k];

		y[k + backward] = re;
		y[k + !backward] = im;
	}
	return true;
}

struct F(pair) {
	T re, im;
};

/* Multiplies n complex numbers by a table, or by its conjugate. */
static void F(times_filter)(T *x, const T *table, int64_t n, bool conjugate)
{
	T sign = conjugate ? -1 : 1;

	IVDEP for (int64_t k = 0; k < 2 * n; k += 2)
	{
		T re = x[k] * table[k] - x[k + 1] * (table[k + 1] * sign);
		T im = x[k] * (table[k + 1] * sign) + x[k + 1] * table[k];

		x[k] = re;
		x[k + 1] = im;
	}
}

/*
 * With a generator g of the integers modulo n, output g^-q less x[0] is the cyclic convolution of x[g^s] and
 * exp(-2 pi i g^-s / n). `padded` has room for n - 1 elements. y may be x.
 */
static bool F(prime)(const struct fft_plan *p, T *y, const T *x, T *padded, T *work, bool backward,
		     T scale)
{
	const struct F(pair) *from = (const struct F(pair) *)x;
	struct F(pair) *a = (struct F(pair) *)padded, *to = (struct F(pair) *)y;
	struct F(pair) first = from[0], sum;
	const int32_t *powers = p->powers;
	int64_t m = p->size;

	for (int64_t s = 0; s < m; s++)
		a[s] = from[powers[s]];
	if (!F(matrix)(p, padded, padded, work, backward, 1))
		return false;
	sum = (struct F(pair)){ first.re + a[0].re, first.im + a[0].im };
	F(times_filter)(padded, p->filter, m, backward);
	a[0].re += first.re;
	a[0].im += first.im;
	if (!F(matrix)(p, padded, padded, work, !backward, scale))
		return false;
	to[0] = (struct F(pair)){ sum.re * scale, sum.im * scale };
	to[1] = a[0];
	for (int64_t q = 1; q < m; q++)
		to[powers[m - q]] = a[q];
	return true;
}
