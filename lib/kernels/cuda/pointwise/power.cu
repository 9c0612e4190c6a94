// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/power.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 4

namespace formula_power
{
DEVICE_FUNCTION_2(pow)

#include "kernels/formula/power.h"

POINTWISE(nextafter, AT_FLOAT(nextafter), AT_DTYPE(TENSOR_F16, nextafter_f16),
	  AT_DTYPE(TENSOR_BF16, nextafter_bf16))
} // namespace formula_power
