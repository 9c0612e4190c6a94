// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* logaddexp, logaddexp2, xlogy, without overflow of intermediate results. */
#include "kernels/cpu/simd/vecloop.h"

#include "kernels/cpu/simd/log_complex.h"

VEC_SLEEF_1(log1p)
VEC_SLEEF_1(exp2)

/* most + log(1 + e^-distance); equal infinities are not subtracted. M: the element type. */
#define LOG_ADD(d, V, M)                                                                           \
	static inline V logaddexp_v##d(V x, V y)                                                   \
	{                                                                                          \
		V far = vec_select_f##d(x > y, y - x, x - y), most = vec_select_f##d(x > y, x, y); \
		V sum = most + log1p_v##d(exp_v##d(far));                                          \
                                                                                                   \
		return vec_select_f##d(x == y, x + (M)M_LN2, sum);                                 \
	}                                                                                          \
	static inline V logaddexp2_v##d(V x, V y)                                                  \
	{                                                                                          \
		V far = vec_select_f##d(x > y, y - x, x - y), most = vec_select_f##d(x > y, x, y); \
		V sum = most + log1p_v##d(exp2_v##d(far)) * (M)M_LOG2E;                            \
                                                                                                   \
		return vec_select_f##d(x == y, x + 1, sum);                                        \
	}
LOG_ADD(32, vec_f32, float)
LOG_ADD(64, vec_f64, double)

/* x log(y); 0 for x = 0, unless y is NaN */
#define XLOGY(d, V)                                                                            \
	static inline V xlogy_v##d(V x, V y)                                                   \
	{                                                                                      \
		V product = x * log_v##d(y);                                                   \
                                                                                               \
		return vec_select_f##d(x == 0, vec_select_f##d(y == y, (V){ 0 }, y), product); \
	}
XLOGY(32, vec_f32)
XLOGY(64, vec_f64)

VEC_BINARY(logaddexp, logaddexp)
VEC_BINARY(logaddexp2, logaddexp2)
VEC_BINARY(xlogy, xlogy)
BINARY_COMPLEX(logaddexp, log_add_complex(x, y))
POINTWISE(logaddexp, AT_FLOAT(logaddexp), AT_COMPLEX(logaddexp))
POINTWISE(logaddexp2, AT_FLOAT(logaddexp2))
POINTWISE(xlogy, AT_FLOAT(xlogy))

CPU_KERNELS(K(logaddexp), K(logaddexp2), K(xlogy))
