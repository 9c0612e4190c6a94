// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/special.h. */
#include "kernels/cuda/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 1

namespace formula_special
{
DEVICE_FUNCTION_1(erf)
DEVICE_FUNCTION_1(erfc)
DEVICE_FUNCTION_1(lgamma)

#include "kernels/formula/special.h"
} // namespace formula_special
