/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The powers and roots of a norm; included by reduce_norm.c through each_float.h (no include
 * guard), which defines T and SUFFIX: powers_f32(), root_f32(), powers_f64(), root_f64().
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(root)(void *result, const void *acc, int64_t n, int64_t count, double p)
{
	for (int64_t i = 0; i < n; i++)
		((T *)result)[i] = p == 2 ? sqrt(((const T *)acc)[i]) :
					    pow(((const T *)acc)[i], (T)(1 / p));
}

static void F(powers)(void *to, const char *from, enum tensor_dtype dtype, int64_t stride,
		      int64_t n, double p)
{
	T *x = to;

	magnitudes(to, from, dtype, stride, n, p);
	for (int64_t i = 0; i < n; i++)
		x[i] = p == 3 ? fabs(x[i] * x[i] * x[i]) : pow(fabs(x[i]), (T)p);
}

#undef F
