/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Exponentials, logarithms and roots; sigmoid and tanh. */
/* |1 + z|^2 is computed as 1 + re (2 + re) + im^2, which is exact for small re. */
#define LOG1P_COMPLEX(T, C)                                                                  \
	FORMULA C log1p_##C(C z)                                                             \
	{                                                                                    \
		T re = creal(z), im = cimag(z);                                              \
                                                                                             \
		if (fabs(re) > (T)0.5 || fabs(im) > (T)0.5)                                  \
			return log(1 + z);                                                   \
		return COMPLEX_OF(z, log1p(re * (2 + re) + im * im) / 2, atan2(im, 1 + re)); \
	}
LOG1P_COMPLEX(float, complex_f32)
LOG1P_COMPLEX(double, complex_f64)

/*
 * The real part exp(re) cos(im) - 1 is computed without cancellation. If re is -infinity, the
 * result is -1, if infinity, infinity, also for im that is infinite or NaN.
 */
#define EXPM1_COMPLEX(T, C)                                                                     \
	FORMULA C expm1_##C(C z)                                                                \
	{                                                                                       \
		T re = creal(z), im = cimag(z), half = sin(im / 2);                             \
                                                                                                \
		if (im == 0)                                                                    \
			return COMPLEX_OF(z, expm1(re) + 0, im); /* -0 becomes 0 */             \
		if (isinf(re) && !isfinite(im))                                                 \
			return COMPLEX_OF(z, re < 0 ? -1 : re, re < 0 ? 0 : im - im);           \
		return COMPLEX_OF(z, expm1(re) * cos(im) - 2 * half * half, exp(re) * sin(im)); \
	}
EXPM1_COMPLEX(float, complex_f32)
EXPM1_COMPLEX(double, complex_f64)

/*
 * If re is infinite, the imaginary part is 0 with the sign of im; in C99 it has the sign of
 * sin(2 im).
 */
#define TANH_COMPLEX(T, C)                                                            \
	FORMULA C tanh_##C(C z)                                                       \
	{                                                                             \
		T re = creal(z), im = cimag(z);                                       \
                                                                                      \
		if (isinf(re) && isfinite(im))                                        \
			return COMPLEX_OF(z, copysign((T)1, re), copysign((T)0, im)); \
		return tanh(z);                                                       \
	}
TANH_COMPLEX(float, complex_f32)
TANH_COMPLEX(double, complex_f64)

/* The function f_complex_f32() or f_complex_f64() of x. */
#define BY_COMPLEX(f, x) COMPLEX_CASE(x, f##_complex_f32, f##_complex_f64)(x)

#define MATH(f, COMPLEX)          \
	VEC_UNARY_INLINE(f)       \
	UNARY_COMPLEX(f, COMPLEX) \
	POINTWISE(f, AT_FLOAT(f), AT_BF16(f), AT_COMPLEX(f))

MATH(exp, exp(x))
MATH(log, log(x))
MATH(tanh, BY_COMPLEX(tanh, x))
MATH(sigmoid, 1 / (1 + exp(-x)))
MATH(expm1, BY_COMPLEX(expm1, x))
MATH(log1p, BY_COMPLEX(log1p, x))

#define MATH_SLEEF(f, COMPLEX)    \
	VEC_UNARY(f, f)           \
	UNARY_COMPLEX(f, COMPLEX) \
	POINTWISE(f, AT_FLOAT(f), AT_COMPLEX(f))
MATH_SLEEF(exp2, exp(x *M_LN2))
MATH_SLEEF(log2, log(x) / M_LN2)
MATH_SLEEF(log10, log(x) / M_LN10)

#ifndef SQRT_FLOATS
#define SQRT_FLOATS UNARY_FLOATS(sqrt, sqrt(x))
#endif
SQRT_FLOATS
UNARY_COMPLEX(sqrt, sqrt(x))
POINTWISE(sqrt, AT_FLOATS(sqrt), AT_COMPLEX(sqrt))
UNARY_FLOATS(rsqrt, 1 / sqrt(x))
UNARY_COMPLEX(rsqrt, x == 0 ? COMPLEX_OF(x, INFINITY, NAN) : 1 / sqrt(x))
POINTWISE(rsqrt, AT_FLOATS(rsqrt), AT_COMPLEX(rsqrt))

/* The reciprocal of zero is infinite, as in div. */
UNARY_FLOATS(reciprocal, 1 / x)
UNARY_COMPLEX(reciprocal, x == 0 ? COMPLEX_OF(x, INFINITY, NAN) : 1 / x)
POINTWISE(reciprocal, AT_FLOATS(reciprocal), AT_COMPLEX(reciprocal))
