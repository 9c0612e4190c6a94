/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * One method on n elements of type T (no include guard). The includer defines T, ABS, POW and LOOP(name). Sums
 * are f64 in LANES accumulators, so that their order is the same on every processor.
 */

static void LOOP(change)(enum list_method method, T value, T *x, const T *y, int64_t n)
{
	switch (method) {
	case LIST_CLAMP:
		IVDEP for (int64_t i = 0; i < n; i++)
		{
			T v = x[i] < -value ? -value : x[i];

			x[i] = v > value ? value : v;
		}
		break;
	case LIST_LERP:
		IVDEP for (int64_t i = 0; i < n; i++) x[i] += value * (y[i] - x[i]);
		break;
	default:
		IVDEP for (int64_t i = 0; i < n; i++) x[i] *= value;
	}
}

/* True if an element is not finite: only those give something else than 0 when multiplied by 0. */
static bool LOOP(unscale)(T value, T *x, int64_t n)
{
	T found = 0;

	for (int64_t i = 0; i < n; i += LANES) {
		int64_t end = n - i < LANES ? n : i + LANES;
		T lane[LANES] = { 0 };

		IVDEP for (int64_t k = i; k < end; k++)
		{
			lane[k - i] = x[k] * 0;
			x[k] *= value;
		}
		IVDEP for (int64_t k = 0; k < LANES; k++) found = lane[k] != 0 ? 1 : found;
	}
	return found != 0;
}

#define SUM(NAME, TERM)                                               \
	static double LOOP(NAME)(double value, const T *x, int64_t n) \
	{                                                             \
		double sum[LANES] = { 0 }, all = 0;                   \
		int64_t i = 0;                                        \
                                                                      \
		(void)value;                                          \
		for (; i + LANES <= n; i += LANES)                    \
			IVDEP for (int k = 0; k < LANES; k++)         \
			{                                             \
				double v = x[i + k];                  \
				sum[k] += (TERM);                     \
			}                                             \
		for (int k = 0; i + k < n; k++) {                     \
			double v = x[i + k];                          \
			sum[k] += (TERM);                             \
		}                                                     \
		for (int k = 0; k < LANES; k++)                       \
			all += sum[k];                                \
		return all;                                           \
	}
SUM(sum_abs, fabs(v))
SUM(sum_square, v *v)
SUM(sum_power, pow(fabs(v), value))
#undef SUM

static double LOOP(greatest)(const T *x, int64_t n)
{
	double all = 0;

	for (int64_t i = 0; i < n; i++) {
		double v = fabs((double)x[i]);

		all = v > all || v != v ? v : all;
	}
	return all;
}

/* Returns the result of methods that have one, else 0. */
static double LOOP(part)(enum list_method method, double value, T *x, const T *y, int64_t n)
{
	switch (method) {
	case LIST_NORM_1:
		return LOOP(sum_abs)(value, x, n);
	case LIST_NORM_2:
		return LOOP(sum_square)(value, x, n);
	case LIST_NORM_MAX:
		return LOOP(greatest)(x, n);
	case LIST_NORM_P:
		return LOOP(sum_power)(value, x, n);
	case LIST_UNSCALE:
		return LOOP(unscale)((T)value, x, n);
	default:
		LOOP(change)(method, (T)value, x, y, n);
		return 0;
	}
}
