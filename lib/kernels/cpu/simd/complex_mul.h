/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of complex numbers with the same bits at every instruction-set level: each part is the
 * sum of two rounded products. The difference in the real part is computed as a sum with the sign
 * bit inverted, because gcc 12 contracts a vectorized difference beside a sum to vfmaddsub, which
 * rounds once, also with -ffp-contract=off.
 */
#ifndef TENSOR_CPU_COMPLEX_MUL_H
#define TENSOR_CPU_COMPLEX_MUL_H

#include <complex.h>
#include <stdint.h>
#undef I

#define COMPLEX_MUL_OF(d, T, U)                                                 \
	static inline T negated_##d(T v)                                        \
	{                                                                       \
		union {                                                         \
			T v;                                                    \
			U bits;                                                 \
		} b = { v };                                                    \
                                                                                \
		b.bits ^= (U)1 << (sizeof(U) * 8 - 1);                          \
		return b.v;                                                     \
	}                                                                       \
                                                                                \
	static inline T _Complex complex_mul_##d(T _Complex x, T _Complex y)    \
	{                                                                       \
		T re = __real__ x * __real__ y, im = __real__ x * __imag__ y;   \
		T re2 = __imag__ x * __imag__ y, im2 = __imag__ x * __real__ y; \
                                                                                \
		return __builtin_complex(re + negated_##d(re2), im + im2);      \
	}
COMPLEX_MUL_OF(f32, float, uint32_t)
COMPLEX_MUL_OF(f64, double, uint64_t)

#define COMPLEX_MUL(x, y) \
	_Generic((x), float _Complex : complex_mul_f32, double _Complex : complex_mul_f64)(x, y)

#endif
