// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Division with a whole quotient and what remains: quotients rounded down or towards zero,
 * remainders with the divisor's sign (remainder) or the dividend's (fmod). Integers divided by
 * zero are an error; the smallest one divided by -1 wraps.
 */
#include "kernels/cpu/simd/vecloop.h"

#include <tgmath.h>

/* What integer loops get as parameters: set when a divisor was zero. */
#define ZERO(T) bool *zero = (bool *)params
#define GUARDED(QUOTIENT, MINUS)                                                                 \
	(y == 0				 ? (__atomic_store_n(zero, true, __ATOMIC_RELAXED), 0) : \
	 NEGATIVE(y) && (int64_t)y == -1 ? (MINUS) :                                             \
					   (QUOTIENT))
/* One below zero, the other not, and something remains. */
#define UNEVEN ((x % y != 0) & (NEGATIVE(x) != NEGATIVE(y)))

BINARY_INT_WITH(div_trunc, ZERO, GUARDED(x / y, -x))
BINARY_INT_WITH(div_floor, ZERO, GUARDED(x / y - UNEVEN, -x))
BINARY_INT_WITH(fmod, ZERO, GUARDED(x % y, 0))
BINARY_INT_WITH(remainder, ZERO, GUARDED(x % y + (UNEVEN ? y : 0), 0))

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
 * From m = fmod(x, y), which is exact. The quotient (x - m) / y is nearly whole: rounded to
 * whole, and one less where m and y have different signs.
 */
#define FLOOR_OF(T)                                                                            \
	static inline T floor_of_##T(T x, T y, T m)                                            \
	{                                                                                      \
		T q = (x - m) / y - ((m != 0) & ((y < 0) != (m < 0)) ? 1 : 0);                 \
		T whole = floor(q);                                                            \
                                                                                               \
		whole += q - whole > (T)0.5 ? 1 : 0;                                           \
		whole = q != 0 ? whole : copysign((T)0, x / y);                                \
		/* SLEEF's fmod() gives up on a divisor that is zero or nearly so. */          \
		return (y == 0) | ((m != m) & (fabs(x) + fabs(y) < INFINITY)) ? x / y : whole; \
	}                                                                                      \
	static inline T remainder_of_##T(T x, T y, T m)                                        \
	{                                                                                      \
		return (m != 0) & ((y < 0) != (m < 0)) ? m + y : m;                            \
	}
FLOOR_OF(float)
FLOOR_OF(double)

/* Blocks of fmod, then the rest of the work on them. */
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
