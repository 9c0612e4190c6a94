/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The complex transform of LANES lines side by side, in place: a stage for each factor, by
 * decimation in frequency. Lane l of a vector belongs to line l, so no stage moves data between
 * lanes. The stages leave output k at position at[k] of struct fft_lanes.
 */

/* An element of each line. */
struct F(complex) {
	V re, im;
};

/* Element i of the lines is re[2 * LANES * i ..], im[2 * LANES * i ..]. */
struct F(lines) {
	T *re, *im;
};

INLINE struct F(complex) F(get)(const struct F(lines) * x, int64_t i)
{
	return (struct F(complex)){ *(const V *)(x->re + 2 * LANES * i),
				    *(const V *)(x->im + 2 * LANES * i) };
}

INLINE void F(set)(const struct F(lines) * x, int64_t i, struct F(complex) a)
{
	*(V *)(x->re + 2 * LANES * i) = a.re;
	*(V *)(x->im + 2 * LANES * i) = a.im;
}

INLINE struct F(complex) F(add)(struct F(complex) a, struct F(complex) b)
{
	return (struct F(complex)){ a.re + b.re, a.im + b.im };
}

INLINE struct F(complex) F(sub)(struct F(complex) a, struct F(complex) b)
{
	return (struct F(complex)){ a.re - b.re, a.im - b.im };
}

/* a - i b and a + i b */
INLINE struct F(complex) F(sub_i)(struct F(complex) a, struct F(complex) b)
{
	return (struct F(complex)){ a.re + b.im, a.im - b.re };
}

INLINE struct F(complex) F(add_i)(struct F(complex) a, struct F(complex) b)
{
	return (struct F(complex)){ a.re - b.im, a.im + b.re };
}

INLINE struct F(complex) F(times)(struct F(complex) a, T re, T im)
{
	return (struct F(complex)){ a.re * re - a.im * im, a.im * re + a.re * im };
}

INLINE void F(butterfly_2)(struct F(complex) * x)
{
	struct F(complex) a = x[0];

	x[0] = F(add)(a, x[1]);
	x[1] = F(sub)(a, x[1]);
}

INLINE void F(butterfly_4)(struct F(complex) * x)
{
	struct F(complex) a = F(add)(x[0], x[2]), b = F(sub)(x[0], x[2]);
	struct F(complex) c = F(add)(x[1], x[3]), d = F(sub)(x[1], x[3]);

	x[0] = F(add)(a, c);
	x[1] = F(sub_i)(b, d);
	x[2] = F(sub)(a, c);
	x[3] = F(add_i)(b, d);
}

/* Outputs with even numbers are a transform of 4 sums, those with odd numbers of 4 differences. */
INLINE void F(butterfly_8)(struct F(complex) * x)
{
	const T h = (T)M_SQRT1_2;
	struct F(complex) even[4], odd[4], d;

	even[0] = F(add)(x[0], x[4]);
	odd[0] = F(sub)(x[0], x[4]);
	even[1] = F(add)(x[1], x[5]);
	d = F(sub)(x[1], x[5]);
	odd[1] = (struct F(complex)){ (d.re + d.im) * h, (d.im - d.re) * h };
	even[2] = F(add)(x[2], x[6]);
	d = F(sub)(x[2], x[6]);
	odd[2] = (struct F(complex)){ d.im, -d.re };
	even[3] = F(add)(x[3], x[7]);
	d = F(sub)(x[3], x[7]);
	odd[3] = (struct F(complex)){ (d.im - d.re) * h, (d.re + d.im) * -h };
	F(butterfly_4)(even);
	F(butterfly_4)(odd);
	x[0] = even[0], x[1] = odd[0], x[2] = even[1], x[3] = odd[1];
	x[4] = even[2], x[5] = odd[2], x[6] = even[3], x[7] = odd[3];
}

/*
 * r is odd. Operands j and r - j have conjugated factors: with their sums a and differences b,
 * outputs k and r - k are x[0] + sum a cos -+ i sum b sin. roots has cos and sin of 2 pi k / r.
 */
INLINE void F(butterfly_odd)(struct F(complex) * x, int r, const T *roots)
{
	struct F(complex) a[(FFT_PRIME_MAX + 1) / 2], b[(FFT_PRIME_MAX + 1) / 2], first = x[0];
	int half = r / 2;

	_Pragma("GCC unroll 8") for (int j = 1; j <= half; j++)
	{
		a[j] = F(add)(x[j], x[r - j]);
		b[j] = F(sub)(x[j], x[r - j]);
		x[0] = F(add)(x[0], a[j]);
	}
	_Pragma("GCC unroll 8") for (int k = 1; k <= half; k++)
	{
		struct F(complex) c = first, s = { { 0 }, { 0 } };

		_Pragma("GCC unroll 8") for (int j = 1; j <= half; j++)
		{
			T cos = roots[2 * (j * k % r)], sin = roots[2 * (j * k % r) + 1];

			c.re += a[j].re * cos;
			c.im += a[j].im * cos;
			s.re += b[j].re * sin;
			s.im += b[j].im * sin;
		}
		x[k] = F(sub_i)(c, s);
		x[r - k] = F(add_i)(c, s);
	}
}

/* A butterfly of r operands; r is constant. */
INLINE void F(compute)(struct F(complex) * x, int r, const T *roots)
{
	if (r == 2)
		F(butterfly_2)(x);
	else if (r == 4)
		F(butterfly_4)(x);
	else if (r == 8)
		F(butterfly_8)(x);
	else
		F(butterfly_odd)(x, r, roots);
}

/*
 * Stores outputs m elements apart, multiplied by the twiddle factors w, of which output 0 has none,
 * unless w is NULL.
 */
INLINE void F(set_outputs)(const struct F(lines) * v, int r, int64_t first, int64_t m,
			   const struct F(complex) * x, const T *w)
{
	F(set)(v, first, x[0]);
	_Pragma("GCC unroll 16") for (int k = 1; k < r; k++)
		F(set)(v, first + k * m, w ? F(times)(x[k], w[2 * k - 2], w[2 * k - 1]) : x[k]);
}

INLINE void F(butterfly)(const struct F(lines) * v, int r, int64_t first, int64_t m, const T *w,
			 const T *roots)
{
	struct F(complex) x[FFT_PRIME_MAX];

	_Pragma("GCC unroll 16") for (int j = 0; j < r; j++) x[j] = F(get)(v, first + j * m);
	F(compute)(x, r, roots);
	F(set_outputs)(v, r, first, m, x, w);
}

/* A stage: blocks of `left` elements, each of left / r butterflies. */
INLINE void F(stage)(const struct F(lines) * v, int r, int64_t n, int64_t left, const T *w,
		     const T *roots)
{
	int64_t m = left / r;

	for (int64_t block = 0; block < n; block += left) {
		F(butterfly)(v, r, block, m, NULL, roots);
		for (int64_t q = 1; q < m; q++)
			F(butterfly)(v, r, block + q, m, w + (q - 1) * 2 * (r - 1), roots);
	}
}

/* Any other odd factor; not inlined, so that constant factors alone are unrolled. */
static __attribute__((noinline)) void F(stage_any)(const struct F(lines) * v, int r, int64_t n,
						   int64_t left, const T *w, const T *roots)
{
	if (r < 3 || r > FFT_PRIME_MAX)
		__builtin_unreachable();
	F(stage)(v, r, n, left, w, roots);
}

static void F(run_stage)(const struct F(lines) * v, int r, int64_t n, int64_t left, const T *w,
			 const T *roots)
{
	switch (r) {
	case 2:
		F(stage)(v, 2, n, left, w, roots);
		break;
	case 3:
		F(stage)(v, 3, n, left, w, roots);
		break;
	case 4:
		F(stage)(v, 4, n, left, w, roots);
		break;
	case 5:
		F(stage)(v, 5, n, left, w, roots);
		break;
	case 7:
		F(stage)(v, 7, n, left, w, roots);
		break;
	case 8:
		F(stage)(v, 8, n, left, w, roots);
		break;
	case 11:
		F(stage)(v, 11, n, left, w, roots);
		break;
	case 13:
		F(stage)(v, 13, n, left, w, roots);
		break;
	default:
		F(stage_any)(v, r, n, left, w, roots);
	}
}

/* Stages begin to end - 1; all of them make the forward transform. */
static void F(run_stages)(const struct fft_lanes *p, const struct F(lines) * v, int begin, int end)
{
	int64_t left = p->n;

	for (int i = 0; i < begin; i++)
		left /= p->factor[i];
	for (int i = begin; i < end; i++) {
		F(run_stage)(v, p->factor[i], p->n, left, p->twiddle[i], p->roots[i]);
		left /= p->factor[i];
	}
}

/* The forward transform of v; exchanging re and im makes it the backward one. */
static void F(transform_lanes)(const struct fft_lanes *p, const struct F(lines) * v)
{
	F(run_stages)(p, v, 0, p->nfactors);
}
