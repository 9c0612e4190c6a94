// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/activation_exp.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 8

namespace formula_activation_exp
{
DEVICE_FUNCTION_1(exp)
DEVICE_FUNCTION_1(expm1)
DEVICE_FUNCTION_1(log1p)
DEVICE_FUNCTION_1(tanh)

template <class T> static __device__ inline T normal_cdf_v(T x)
{
	return T(0.5) * erfc(x * T(-M_SQRT1_2));
}
#define F(x)			x##_v
#define T			float
#define V			float
#define LOOP_1(NAME, DECL, ...) UNARY_LOOP_WITH(NAME##_f32, float, float, DECL, (__VA_ARGS__))
#define LOOP_2(NAME, DECL, ...) BINARY_LOOP_WITH(NAME##_f32, float, float, DECL, (__VA_ARGS__))
#include "kernels/formula/activation_exp_float.h"
#define F(x)			x##_v
#define T			double
#define V			double
#define LOOP_1(NAME, DECL, ...) UNARY_LOOP_WITH(NAME##_f64, double, double, DECL, (__VA_ARGS__))
#define LOOP_2(NAME, DECL, ...) BINARY_LOOP_WITH(NAME##_f64, double, double, DECL, (__VA_ARGS__))
#include "kernels/formula/activation_exp_float.h"

UNARY_FLOAT(gelu, x *normal_cdf_v(x))
#include "kernels/formula/activation_exp.h"
} // namespace formula_activation_exp
