// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Integral quotients, rounded down (div_floor) or towards zero (div_trunc), and remainders with the
 * sign of the divisor (remainder) or of the dividend (fmod). Division of integers by zero is an
 * error; the least integer divided by -1 wraps.
 */
#include "kernels/cpu/simd/vecloop.h"

#include <tgmath.h>

/* The params of integer loops: a flag that is set if a divisor is zero. */
#define ZERO_FLAG(T) bool *zero = (bool *)params
/* The quotient, or `minus` if y is -1, or 0 and *zero set if y is 0. */
#define GUARDED(zero, y, quotient, minus)                                                          \
	((y) == 0			   ? (__atomic_store_n(zero, true, __ATOMIC_RELAXED), 0) : \
	 NEGATIVE(y) && (int64_t)(y) == -1 ? (minus) :                                             \
					     (quotient))
/* Whether the quotient is negative and not exact. */
#define UNEVEN(x, y) (((x) % (y) != 0) & (NEGATIVE(x) != NEGATIVE(y)))

BINARY_INT_WITH(div_trunc, ZERO_FLAG, GUARDED(zero, y, x / y, -x))
BINARY_INT_WITH(div_floor, ZERO_FLAG, GUARDED(zero, y, x / y - UNEVEN(x, y), -x))
BINARY_INT_WITH(fmod, ZERO_FLAG, GUARDED(zero, y, x % y, 0))
BINARY_INT_WITH(remainder, ZERO_FLAG, GUARDED(zero, y, x % y + (UNEVEN(x, y) ? y : 0), 0))

static inline vec_f32 fmod_v32(vec_f32 x, vec_f32 y)
{
	return (vec_f32)SLEEF_F32_(fmod, )((sleef_f32)x, (sleef_f32)y);
}

static inline vec_f64 fmod_v64(vec_f64 x, vec_f64 y)
{
	return (vec_f64)SLEEF_F64_(fmod, )((sleef_f64)x, (sleef_f64)y);
}
VEC_BINARY(fmod, fmod)
BINARY_FLOAT(div_trunc, trunc(x / y))

/*
 * div_floor and remainder of floats from m = fmod(x, y), which is exact. The quotient
 * (x - m) / y is within rounding errors of an integer; it is rounded to that integer, and
 * reduced by 1 if m and y have different signs.
 */
#define FLOOR_OF(T)                                                                            \
	static inline T floor_of_##T(T x, T y, T m)                                            \
	{                                                                                      \
		T q = (x - m) / y - ((m != 0) & ((y < 0) != (m < 0)) ? 1 : 0);                 \
		T whole = floor(q);                                                            \
                                                                                               \
		whole += q - whole > (T)0.5 ? 1 : 0;                                           \
		whole = q != 0 ? whole : copysign((T)0, x / y);                                \
		/* SLEEF's fmod() returns NaN for zero and for some subnormal divisors. */     \
		return (y == 0) | ((m != m) & (fabs(x) + fabs(y) < INFINITY)) ? x / y : whole; \
	}                                                                                      \
	static inline T remainder_of_##T(T x, T y, T m)                                        \
	{                                                                                      \
		return (m != 0) & ((y < 0) != (m < 0)) ? m + y : m;                            \
	}
FLOOR_OF(float)
FLOOR_OF(double)

/* The loop NAME_d() of f_T(x, y, fmod(x, y)); fmod is computed in blocks. */
#define AFTER_FMOD(NAME, d, T, f)                                                               \
	static void NAME##_##d##_block(void *out, const void *const *in, int64_t n,             \
				       const void *params)                                      \
	{                                                                                       \
		T m[VEC_BLOCK];                                                                 \
                                                                                                \
		for (int64_t i = 0; i < n; i += VEC_BLOCK) {                                    \
			const T *x = (const T *)in[0] + i, *y = (const T *)in[1] + i;           \
			int64_t k = n - i < VEC_BLOCK ? n - i : VEC_BLOCK;                      \
			T *o = (T *)out + i;                                                    \
                                                                                                \
			fmod_##d##_block(m, (const void *[]){ x, y }, k, NULL);                 \
			IVDEP for (int64_t j = 0; j < k; j++) o[j] = f##_##T(x[j], y[j], m[j]); \
		}                                                                               \
	}                                                                                       \
	VEC_ENTRY(NAME, d, 2)
AFTER_FMOD(div_floor, f32, float, floor_of)
AFTER_FMOD(div_floor, f64, double, floor_of)
AFTER_FMOD(remainder, f32, float, remainder_of)
AFTER_FMOD(remainder, f64, double, remainder_of)

#define DIVISION(NAME)                                                                         \
	static int cpu_##NAME(struct tensor_iter *it, const struct pointwise_params *params)   \
	{                                                                                      \
		static const iter_loop loops[TENSOR_DTYPE_COUNT] = { AT_INT(NAME),             \
								     AT_FLOAT(NAME) };         \
		bool zero = false;                                                             \
		int err = CPU_NAME(pointwise_run)(#NAME, it, loops, TENSOR_DTYPE_NONE, &zero); \
                                                                                               \
		if (unlikely(zero))                                                            \
			return tensor_fail(EDOM, #NAME ": integer division by zero");          \
		return err;                                                                    \
	}
DIVISION(div_trunc)
DIVISION(div_floor)
DIVISION(fmod)
DIVISION(remainder)

CPU_KERNELS(K(div_trunc), K(div_floor), K(fmod), K(remainder))
