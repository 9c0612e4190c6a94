/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The first stage from complex lines that are side by side in memory, and the last stage to such
 * lines: a pass over the buffer less at each end. Only for LANES lines and frequent factors; the
 * others are copied to or from the buffer.
 */

/* x has n elements, `step` numbers apart; the backward transform exchanges the parts. */
INLINE void F(first_stage)(const struct fft_lanes *p, const struct F(lines) * v, int r, const T *x,
			   int64_t step, bool backward)
{
	int64_t m = p->n / r;
	const T *w = p->twiddle[0];

	for (int64_t q = 0; q < m; q++) {
		struct F(complex) e[FFT_PRIME_MAX];

		_Pragma("GCC unroll 16") for (int j = 0; j < r; j++)
		{
			const T *at = x + (q + j * m) * step;
			V a = *(const V_ANY *)at, b = *(const V_ANY *)(at + LANES);
			V even = __builtin_shuffle(a, b, F_EVEN);
			V odd = __builtin_shuffle(a, b, F_ODD);

			e[j].re = backward ? odd : even;
			e[j].im = backward ? even : odd;
		}
		F(compute)(e, r, p->roots[0]);
		F(set_outputs)(v, r, q, m, e, q ? w + (q - 1) * 2 * (r - 1) : NULL);
	}
}

INLINE void F(last_stage)(const struct fft_lanes *p, const struct F(lines) * v, int r, T *y,
			  int64_t step, bool backward, T scale)
{
	for (int64_t block = 0; block < p->n; block += r) {
		struct F(complex) e[FFT_PRIME_MAX];

		_Pragma("GCC unroll 16") for (int j = 0; j < r; j++) e[j] = F(get)(v, block + j);
		F(compute)(e, r, p->roots[p->nfactors - 1]);
		_Pragma("GCC unroll 16") for (int k = 0; k < r; k++)
		{
			T *to = y + p->order[block + k] * step;
			V a = (backward ? e[k].im : e[k].re) * scale;
			V b = (backward ? e[k].re : e[k].im) * scale;

			*(V_ANY *)to = __builtin_shuffle(a, b, F_LOW);
			*(V_ANY *)(to + LANES) = __builtin_shuffle(a, b, F_HIGH);
		}
	}
}

/* The first stage, if it can be done so; returns the number of stages done. */
static int F(begin_stages)(const struct fft_lanes *p, const struct F(lines) * v, const T *x,
			   int64_t step, bool backward)
{
	switch (p->nfactors ? p->factor[0] * 2 + backward : 0) {
	case 6:
		F(first_stage)(p, v, 3, x, step, false);
		return 1;
	case 7:
		F(first_stage)(p, v, 3, x, step, true);
		return 1;
	case 8:
		F(first_stage)(p, v, 4, x, step, false);
		return 1;
	case 9:
		F(first_stage)(p, v, 4, x, step, true);
		return 1;
	case 10:
		F(first_stage)(p, v, 5, x, step, false);
		return 1;
	case 11:
		F(first_stage)(p, v, 5, x, step, true);
		return 1;
	case 16:
		F(first_stage)(p, v, 8, x, step, false);
		return 1;
	case 17:
		F(first_stage)(p, v, 8, x, step, true);
		return 1;
	default:
		return 0;
	}
}

/* Loads `lanes` lines and transforms them; see load_pairs(). Does not do the last `rest` stages. */
static void F(load_transform)(const struct fft_lanes *p, T *buffer, const T *x, int64_t step,
			      int lanes, bool backward, int rest)
{
	struct F(lines) v = F(lines_at)(buffer, backward);
	int done = 0;

	if (lanes == LANES && p->nfactors > rest)
		done = F(begin_stages)(p, &v, x, step, backward);
	if (!done)
		F(load_pairs)(buffer, x, step, p->n, lanes);
	F(run_stages)(p, &v, done, p->nfactors - rest);
}

/* Whether transform_store() does the last stage. */
static bool F(ends_in_memory)(const struct fft_lanes *p, int lanes)
{
	int last = p->nfactors ? p->factor[p->nfactors - 1] : 0;

	return lanes == LANES && (last == 4 || last == 8);
}

/*
 * Does the last stage and stores the lines; see store_pairs(). In the buffer of `v` the parts have
 * the order of the transform; the backward one has them exchanged in memory.
 */
static void F(transform_store)(const struct fft_lanes *p, const struct F(lines) * v, T *y,
			       int64_t step, bool backward, T scale)
{
	if (p->factor[p->nfactors - 1] == 4) {
		if (backward)
			F(last_stage)(p, v, 4, y, step, true, scale);
		else
			F(last_stage)(p, v, 4, y, step, false, scale);
	} else {
		if (backward)
			F(last_stage)(p, v, 8, y, step, true, scale);
		else
			F(last_stage)(p, v, 8, y, step, false, scale);
	}
}
