// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/math.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 8

namespace formula_math
{
DEVICE_FUNCTION_1(exp)
DEVICE_FUNCTION_1(exp2)
DEVICE_FUNCTION_1(expm1)
DEVICE_FUNCTION_1(log)
DEVICE_FUNCTION_1(log2)
DEVICE_FUNCTION_1(log10)
DEVICE_FUNCTION_1(log1p)
DEVICE_FUNCTION_1(tanh)

#define F(x) x##_v
#define V    float
#include "kernels/formula/sigmoid_float.h"
#undef V
#define V double
#include "kernels/formula/sigmoid_float.h"
#undef V

#include "kernels/formula/math.h"
} // namespace formula_math
