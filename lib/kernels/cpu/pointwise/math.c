// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Exponentials, logarithms and roots; sigmoid and tanh. */
#include "kernels/cpu/simd/vecmath.h"

#include <tgmath.h>

VEC_SLEEF_1(exp2)
VEC_SLEEF_1(log2)
VEC_SLEEF_1(log10)

static inline vec_f32 sigmoid_f32v(vec_f32 x)
{
	return 1 / (1 + exp_f32v(-x));
}

static inline vec_f64 sigmoid_f64v(vec_f64 x)
{
	return 1 / (1 + exp_f64v(-x));
}

/* |1 + z|^2 is computed as 1 + re (2 + re) + im^2, which is exact for small re. */
#define LOG1P_COMPLEX(T, f)                                                                      \
	static inline T _Complex log1p_complex_##f(T _Complex z)                                 \
	{                                                                                        \
		T re = creal(z), im = cimag(z);                                                  \
                                                                                                 \
		if (fabs(re) > (T)0.5 || fabs(im) > (T)0.5)                                      \
			return log(1 + z);                                                       \
		return __builtin_complex(log1p(re * (2 + re) + im * im) / 2, atan2(im, 1 + re)); \
	}
LOG1P_COMPLEX(float, f)
LOG1P_COMPLEX(double, d)

/*
 * The real part exp(re) cos(im) - 1 is computed without cancellation. If re is -infinity, the
 * result is -1, if infinity, infinity, also for im that is infinite or NaN.
 */
#define EXPM1_COMPLEX(T, f)                                                               \
	static inline T _Complex expm1_complex_##f(T _Complex z)                          \
	{                                                                                 \
		T re = creal(z), im = cimag(z), half = sin(im / 2);                       \
                                                                                          \
		if (im == 0)                                                              \
			return __builtin_complex(expm1(re) + 0, im); /* -0 becomes 0 */   \
		if (isinf(re) && !isfinite(im))                                           \
			return __builtin_complex(re < 0 ? -1 : re, re < 0 ? 0 : im - im); \
		return __builtin_complex(expm1(re) * cos(im) - 2 * half * half,           \
					 exp(re) * sin(im));                              \
	}
EXPM1_COMPLEX(float, f)
EXPM1_COMPLEX(double, d)

/*
 * If re is infinite, the imaginary part is 0 with the sign of im; in C99 it has the sign of
 * sin(2 im).
 */
#define TANH_COMPLEX(T, f)                                                                \
	static inline T _Complex tanh_complex_##f(T _Complex z)                           \
	{                                                                                 \
		T re = creal(z), im = cimag(z);                                           \
                                                                                          \
		if (isinf(re) && isfinite(im))                                            \
			return __builtin_complex(copysign((T)1, re), copysign((T)0, im)); \
		return tanh(z);                                                           \
	}
TANH_COMPLEX(float, f)
TANH_COMPLEX(double, d)

#define MATH(f, COMPLEX)          \
	VEC_UNARY_INLINE(f)       \
	UNARY_COMPLEX(f, COMPLEX) \
	POINTWISE(f, AT_FLOAT(f), AT_COMPLEX(f), AT_BF16(f))

MATH(exp, exp(x))
MATH(log, log(x))
MATH(tanh, _Generic(x, float complex : tanh_complex_f, default : tanh_complex_d)(x))
MATH(sigmoid, 1 / (1 + exp(-x)))

VEC_UNARY_INLINE(expm1)
UNARY_LOOP(expm1_c64, float complex, float complex, expm1_complex_f(x))
UNARY_LOOP(expm1_c128, double complex, double complex, expm1_complex_d(x))
POINTWISE(expm1, AT_FLOAT(expm1), AT_COMPLEX(expm1), AT_BF16(expm1))

VEC_UNARY_INLINE(log1p)
UNARY_LOOP(log1p_c64, float complex, float complex, log1p_complex_f(x))
UNARY_LOOP(log1p_c128, double complex, double complex, log1p_complex_d(x))
POINTWISE(log1p, AT_FLOAT(log1p), AT_COMPLEX(log1p), AT_BF16(log1p))

#define MATH_SLEEF(f, COMPLEX)    \
	VEC_UNARY(f, f)           \
	UNARY_COMPLEX(f, COMPLEX) \
	POINTWISE(f, AT_FLOAT(f), AT_COMPLEX(f))
MATH_SLEEF(exp2, exp(x *M_LN2))
MATH_SLEEF(log2, log(x) / M_LN2)
MATH_SLEEF(log10, log(x) / M_LN10)

UNARY_FLOAT(sqrt, sqrt(x))
UNARY_COMPLEX(sqrt, sqrt(x))
UNARY_BF16(sqrt, sqrt(x))
POINTWISE(sqrt, AT_FLOAT(sqrt), AT_COMPLEX(sqrt), AT_BF16(sqrt))
UNARY_FLOAT(rsqrt, 1 / sqrt(x))
UNARY_COMPLEX(rsqrt, x == 0 ? CMPLX(INFINITY, NAN) : 1 / sqrt(x))
UNARY_BF16(rsqrt, 1 / sqrt(x))
POINTWISE(rsqrt, AT_FLOAT(rsqrt), AT_COMPLEX(rsqrt), AT_BF16(rsqrt))

/* The reciprocal of zero is infinite, as in div. */
UNARY_FLOAT(reciprocal, 1 / x)
UNARY_COMPLEX(reciprocal, x == 0 ? CMPLX(INFINITY, NAN) : 1 / x)
UNARY_BF16(reciprocal, 1 / x)
POINTWISE(reciprocal, AT_FLOAT(reciprocal), AT_COMPLEX(reciprocal), AT_BF16(reciprocal))

CPU_KERNELS(K(exp), K(exp2), K(expm1), K(log), K(log2), K(log10), K(log1p), K(tanh), K(sigmoid),
	    K(sqrt), K(rsqrt), K(reciprocal))
