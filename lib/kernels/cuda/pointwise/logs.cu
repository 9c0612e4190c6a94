// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/logs.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 4

namespace formula_logs
{
DEVICE_FUNCTION_1(exp)
DEVICE_FUNCTION_1(exp2)
DEVICE_FUNCTION_1(log)
DEVICE_FUNCTION_1(log1p)

#define F(x) x##_v
#define T    float
#define V    float
#include "kernels/formula/logs_float.h"
#undef T
#undef V
#define T double
#define V double
#include "kernels/formula/logs_float.h"
#undef T
#undef V

#include "kernels/formula/log_complex.h"
#include "kernels/formula/logs.h"
} // namespace formula_logs
