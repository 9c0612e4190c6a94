// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Exponentials, logarithms and roots, with sigmoid and tanh, which are made of them. */
#include "vecloop.h"

#include <tgmath.h>

VEC_SLEEF_1(exp2)
VEC_SLEEF_1(expm1)
VEC_SLEEF_1(log2)
VEC_SLEEF_1(log10)
/* SLEEF's overflows near the end of the range, where the 1 is nothing. */
static inline vec_f32 log1p_v32(vec_f32 x)
{
	vec_f32 small = vec_select_f32(x > 1e10f, (vec_f32){0}, x);

	return vec_select_f32(x > 1e10f, log_v32(x), (vec_f32)SLEEF_F32(log1p)((sleef_f32)small));
}

static inline vec_f64 log1p_v64(vec_f64 x)
{
	vec_f64 small = vec_select_f64(x > 1e20, (vec_f64){0}, x);

	return vec_select_f64(x > 1e20, log_v64(x), (vec_f64)SLEEF_F64(log1p)((sleef_f64)small));
}
VEC_SLEEF_1(tanh)

static inline vec_f32 sigmoid_v32(vec_f32 x)
{
	return 1 / (1 + exp_v32(-x));
}

static inline vec_f64 sigmoid_v64(vec_f64 x)
{
	return 1 / (1 + exp_v64(-x));
}

/* (1 + re)^2 + im^2 is 1 + re (2 + re) + im^2, which keeps what is small. */
#define LOG1P_COMPLEX(T, f)                                                                       \
	static inline T _Complex log1p_complex_##f(T _Complex z)                                  \
	{                                                                                         \
		T re = creal(z), im = cimag(z);                                                   \
                                                                                                  \
		if (fabs(re) > (T)0.5 || fabs(im) > (T)0.5)                                       \
			return log(1 + z);                                                        \
		return __builtin_complex(log1p(re * (2 + re) + im * im) / 2, atan2(im, 1 + re));  \
	}
LOG1P_COMPLEX(float, f)
LOG1P_COMPLEX(double, d)

/* exp(re) cos(im) - 1, where the cosine is near 1 and the exponential too. */
#define EXPM1_COMPLEX(T, f)                                                                       \
	static inline T _Complex expm1_complex_##f(T _Complex z)                                  \
	{                                                                                         \
		T re = creal(z), im = cimag(z), half = sin(im / 2);                               \
                                                                                                  \
		if (im == 0)                                                                      \
			return __builtin_complex(expm1(re), im);                                  \
		return __builtin_complex(expm1(re) * cos(im) - 2 * half * half,                   \
					 exp(re) * sin(im));                                      \
	}
EXPM1_COMPLEX(float, f)
EXPM1_COMPLEX(double, d)

#define MATH(f, COMPLEX)                                                                          \
	VEC_UNARY(f, f)                                                                           \
	UNARY_COMPLEX(f, COMPLEX)                                                                 \
	POINTWISE(f, AT_FLOAT(f), AT_COMPLEX(f))

MATH(exp, exp(x))
MATH(exp2, exp(x *M_LN2))
MATH(log, log(x))
MATH(log2, log(x) / M_LN2)
MATH(log10, log(x) / M_LN10)
MATH(tanh, tanh(x))
MATH(sigmoid, 1 / (1 + exp(-x)))

VEC_UNARY(expm1, expm1)
UNARY_LOOP(expm1_c64, float complex, float complex, expm1_complex_f(x))
UNARY_LOOP(expm1_c128, double complex, double complex, expm1_complex_d(x))
POINTWISE(expm1, AT_FLOAT(expm1), AT_COMPLEX(expm1))

VEC_UNARY(log1p, log1p)
UNARY_LOOP(log1p_c64, float complex, float complex, log1p_complex_f(x))
UNARY_LOOP(log1p_c128, double complex, double complex, log1p_complex_d(x))
POINTWISE(log1p, AT_FLOAT(log1p), AT_COMPLEX(log1p))

UNARY_FLOAT(sqrt, sqrt(x))
UNARY_COMPLEX(sqrt, sqrt(x))
POINTWISE(sqrt, AT_FLOAT(sqrt), AT_COMPLEX(sqrt))
UNARY_FLOAT(rsqrt, 1 / sqrt(x))
UNARY_COMPLEX(rsqrt, x == 0 ? CMPLX(INFINITY, NAN) : 1 / sqrt(x))
POINTWISE(rsqrt, AT_FLOAT(rsqrt), AT_COMPLEX(rsqrt))

/* As division does it: a zero makes an infinity. */
UNARY_FLOAT(reciprocal, 1 / x)
UNARY_COMPLEX(reciprocal, x == 0 ? CMPLX(INFINITY, NAN) : 1 / x)
POINTWISE(reciprocal, AT_FLOAT(reciprocal), AT_COMPLEX(reciprocal))

CPU_KERNELS(K(exp), K(exp2), K(expm1), K(log), K(log2), K(log10), K(log1p), K(tanh), K(sigmoid),
	    K(sqrt), K(rsqrt), K(reciprocal))
