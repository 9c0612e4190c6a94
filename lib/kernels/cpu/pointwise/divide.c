// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Integral quotients, rounded down (div_floor) or towards zero (div_trunc), and remainders with the
 * sign of the divisor (remainder) or of the dividend (fmod). Division of integers by zero is an
 * error; the least integer divided by -1 wraps.
 */
#include "kernels/cpu/simd/vecloop.h"

#include <tgmath.h>

/* The params of integer loops. */
#define FLAG_TYPE	   bool *
#define PARAM_FLAG(params) ((bool *)(params))
#define SET_FLAG(flag)	   __atomic_store_n(flag, true, __ATOMIC_RELAXED)

static inline vec_f32 fmod_v32(vec_f32 x, vec_f32 y)
{
	return (vec_f32)SLEEF_F32_(fmod, )((sleef_f32)x, (sleef_f32)y);
}

static inline vec_f64 fmod_v64(vec_f64 x, vec_f64 y)
{
	return (vec_f64)SLEEF_F64_(fmod, )((sleef_f64)x, (sleef_f64)y);
}
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

#include "kernels/formula/divide.h"

CPU_KERNELS(K(div_trunc), K(div_floor), K(fmod), K(remainder))
