// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Trigonometric and hyperbolic functions and their inverses, real and complex. */
#include "kernels/cpu/simd/vec_asin.h"
#include "kernels/cpu/simd/vec_trig.h"
#include "kernels/cpu/simd/vecloop.h"

#include <tgmath.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "kernels/cpu/simd/vec_atan.h"
#else
VEC_SLEEF_1(atan)
#endif
VEC_SLEEF_1(sinh)
VEC_SLEEF_1(cosh)
VEC_SLEEF_1(atanh)
VEC_SLEEF_2(atan2)

#define FAR 1e8f
/* acosh(x) and asinh(x) for x > FAR: log(2 x). SLEEF's functions square x and overflow. */
static inline vec_f32 far_v32(vec_f32 size)
{
	return log_v32(size) + (float)M_LN2;
}

static inline vec_f64 far_v64(vec_f64 size)
{
	return log_v64(size) + M_LN2;
}

#define INVERSE_HYPERBOLIC(d, V)                                                         \
	static inline V acosh_v##d(V x)                                                  \
	{                                                                                \
		V near = vec_select_f##d(x > FAR, (V){ 0 } + 1, x);                      \
                                                                                         \
		near = (V)SLEEF_F##d(acosh)((sleef_f##d)near);                           \
		return vec_select_f##d(x > FAR, far_v##d(x), near);                      \
	}                                                                                \
                                                                                         \
	static inline V asinh_v##d(V x)                                                  \
	{                                                                                \
		V size = vec_select_f##d(x < 0, -x, x);                                  \
		V near = vec_select_f##d(size > FAR, (V){ 0 }, x), far = far_v##d(size); \
                                                                                         \
		near = (V)SLEEF_F##d(asinh)((sleef_f##d)near);                           \
		far = vec_select_f##d(x < 0, -far, far);                                 \
		return vec_select_f##d(size > FAR, far, near);                           \
	}
INVERSE_HYPERBOLIC(32, vec_f32)
INVERSE_HYPERBOLIC(64, vec_f64)

static inline vec_f32 hypot_v32(vec_f32 x, vec_f32 y)
{
	return (vec_f32)SLEEF_F32_(hypot, _u05)((sleef_f32)x, (sleef_f32)y);
}

static inline vec_f64 hypot_v64(vec_f64 x, vec_f64 y)
{
	return (vec_f64)SLEEF_F64_(hypot, _u05)((sleef_f64)x, (sleef_f64)y);
}
#include "kernels/formula/trig.h"

CPU_KERNELS(K(sin), K(cos), K(tan), K(asin), K(acos), K(atan), K(sinh), K(cosh), K(asinh), K(acosh),
	    K(atanh), K(atan2), K(hypot))
