// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Vector norms of any order, of absolute values: order 2 adds squares, 1 the values, 0 counts
 * what is not zero, an infinite one takes the greatest or the least, any other adds powers.
 */
#include "kernels/cpu/reduce/reduce.h"

#include <math.h>

/* Without the sign bit. */
#define VEC_ABS(e) \
	((__typeof__(e))((__typeof__(e == e))(e) & ~(__typeof__(e == e))-(__typeof__(e)){ 0 }))

#define NORMS(d, T, D, ABS, SQRT, POW)                                                          \
	REDUCER(squares_##d, T, D, T, D, 0, e *e, x + y)                                        \
	REDUCER_OF(SAME_, values_##d, T, D, T, D, 0, ABS(e), VEC_ABS(e), x + y, x + y)          \
	REDUCER_OF(SAME_, nonzero_##d, T, D, T, D, 0, (T)(e != 0),                              \
		   __builtin_convertvector(-(e != 0), __typeof__(e)), x + y, x + y)             \
	REDUCER_OF(SAME_, greatest_##d, T, D, T, D, 0, ABS(e), VEC_ABS(e),                      \
		   ((y > x) | (y != y)) ? y : x, vec_max_##d(x, y))                             \
	REDUCER_OF(SAME_, least_##d, T, D, T, D, INFINITY, ABS(e), VEC_ABS(e),                  \
		   ((y < x) | (y != y)) ? y : x, vec_min_##d(x, y))                             \
                                                                                                \
	static void root_##d(void *result, const void *acc, int64_t n, int64_t count, double p) \
	{                                                                                       \
		for (int64_t i = 0; i < n; i++)                                                 \
			((T *)result)[i] = p == 2 ? SQRT(((const T *)acc)[i]) :                 \
						    POW(((const T *)acc)[i], (T)(1 / p));       \
	}                                                                                       \
                                                                                                \
	static void powers_##d(void *to, const char *from, enum tensor_dtype dtype,             \
			       int64_t stride, int64_t n, double p)                             \
	{                                                                                       \
		T *x = to;                                                                      \
                                                                                                \
		magnitudes(to, from, dtype, stride, n, p);                                      \
		for (int64_t i = 0; i < n; i++)                                                 \
			x[i] = p == 3 ? ABS(x[i] * x[i] * x[i]) : POW(ABS(x[i]), (T)p);         \
	}

/* Elements as real numbers: complex ones as their absolute values. */
static void magnitudes(void *to, const char *from, enum tensor_dtype dtype, int64_t stride,
		       int64_t n, double p)
{
	enum tensor_dtype real = dtype_wide(dtype_real(dtype));

	if (dtype == TENSOR_C64)
		for (int64_t i = 0; i < n; i++, from += stride)
			((float *)to)[i] =
				hypotf(((const float *)from)[0], ((const float *)from)[1]);
	else if (dtype == TENSOR_C128)
		for (int64_t i = 0; i < n; i++, from += stride)
			((double *)to)[i] =
				hypot(((const double *)from)[0], ((const double *)from)[1]);
	else
		CPU_NAME(convert)(to, real, dtype_sizes[real], from, dtype, stride, n);
}

NORMS(f32, float, TENSOR_F32, fabsf, sqrtf, powf)
NORMS(f64, double, TENSOR_F64, fabs, sqrt, pow)

static int cpu_norm(tensor *out, const tensor *self, uint32_t dims, double p)
{
	enum tensor_dtype real = dtype_wide(dtype_real(self->dtype));
	bool wide = real == TENSOR_F64;
	struct reduction norm = { .p = p };

	if (unlikely(real != TENSOR_F32 && !wide))
		return kernel_no_dtype("norm", self->dtype, "cpu");
	if (p == 2)
		norm.r = wide ? &squares_f64 : &squares_f32;
	else if (p == 0)
		norm.r = wide ? &nonzero_f64 : &nonzero_f32;
	else if (p == INFINITY)
		norm.r = wide ? &greatest_f64 : &greatest_f32;
	else if (p == -INFINITY)
		norm.r = wide ? &least_f64 : &least_f32;
	else
		norm.r = wide ? &values_f64 : &values_f32;
	if (dtype_is_complex(self->dtype))
		norm.fetch = magnitudes;
	if (p != 0 && p != 1 && isfinite(p)) {
		norm.finish = wide ? root_f64 : root_f32;
		if (p != 2)
			norm.fetch = wide ? powers_f64 : powers_f32;
	}
	return CPU_NAME(reduce)(&norm, out, self, dims);
}

CPU_KERNELS(K(norm))
