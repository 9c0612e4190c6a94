/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of dot for complex elements with parts of type T (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* The partial sums of one chunk, of products of real and imaginary parts; summed in f64. */
static void F(dot)(int64_t begin, int64_t end, void *ctx)
{
	const struct dot *t = ctx;
	const T *a = (const T *)t->a + 2 * begin * t->sa;
	const T *b = (const T *)t->b + 2 * begin * t->sb;
	T *to = (T *)t->partial + begin / ITER_GRAIN * 4;
	double rr = 0, ii = 0, ri = 0, ir = 0;

	for (int64_t i = begin; i < end; i++, a += 2 * t->sa, b += 2 * t->sb) {
		rr += (double)a[0] * b[0];
		ii += (double)a[1] * b[1];
		ri += (double)a[0] * b[1];
		ir += (double)a[1] * b[0];
	}
	to[0] = (T)rr, to[1] = (T)ii, to[2] = (T)ri, to[3] = (T)ir;
}

/* Adds n partial sums; conjugate: a was to be conjugated. */
static void F(total)(void *out, const void *partial, int64_t n, bool conjugate)
{
	const T *p = partial;
	T re = 0, im = 0;

	for (int64_t i = 0; i < n; i++, p += 4) {
		re += conjugate ? p[0] + p[1] : p[0] - p[1];
		im += conjugate ? p[2] - p[3] : p[2] + p[3];
	}
	((T *)out)[0] = re;
	((T *)out)[1] = im;
}

#undef F
