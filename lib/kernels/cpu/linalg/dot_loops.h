/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of dot for elements of type T (no include guard; see each_wrapping.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

static T F(contiguous)(const T *a, const T *b, int64_t n)
{
	T sum[SUMS] = { 0 };
	int64_t i = 0;

	for (; i + SUMS <= n; i += SUMS)
		for (int j = 0; j < SUMS; j++)
			sum[j] = (T)(sum[j] + a[i + j] * b[i + j]);
	for (int j = 0; i + j < n; j++)
		sum[j] = (T)(sum[j] + a[i + j] * b[i + j]);
	for (int s = SUMS / 2; s; s /= 2)
		for (int j = 0; j < s; j++)
			sum[j] = (T)(sum[j] + sum[j + s]);
	return sum[0];
}

/* The partial sum of one chunk. */
static void F(dot)(int64_t begin, int64_t end, void *ctx)
{
	const struct dot *t = ctx;
	const T *a = (const T *)t->a + begin * t->sa;
	const T *b = (const T *)t->b + begin * t->sb;
	T *to = (T *)t->partial + begin / ITER_GRAIN, x[SUMS], y[SUMS], sum = 0;

	if (t->sa == 1 && t->sb == 1) {
		*to = F(contiguous)(a, b, end - begin);
		return;
	}
	for (int64_t i = begin; i < end; i += SUMS) {
		int64_t n = end - i < SUMS ? end - i : SUMS;

		for (int64_t j = 0; j < n; j++, a += t->sa, b += t->sb)
			x[j] = *a, y[j] = *b;
		sum = (T)(sum + F(contiguous)(x, y, n));
	}
	*to = sum;
}

/* Adds n partial sums. */
static void F(total)(void *out, const void *partial, int64_t n, bool conjugate)
{
	T sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum = (T)(sum + ((const T *)partial)[i]);
	*(T *)out = sum;
}

#undef F
