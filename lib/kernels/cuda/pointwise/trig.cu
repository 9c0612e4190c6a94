// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/trig.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 4

namespace formula_trig
{
DEVICE_FUNCTION_1(acos)
DEVICE_FUNCTION_1(acosh)
DEVICE_FUNCTION_1(asin)
DEVICE_FUNCTION_1(asinh)
DEVICE_FUNCTION_1(atan)
DEVICE_FUNCTION_1(atanh)
DEVICE_FUNCTION_1(cos)
DEVICE_FUNCTION_1(cosh)
DEVICE_FUNCTION_1(sin)
DEVICE_FUNCTION_1(sinh)
DEVICE_FUNCTION_1(tan)
DEVICE_FUNCTION_2(atan2)
DEVICE_FUNCTION_2(hypot)

#include "kernels/formula/trig.h"
} // namespace formula_trig
