// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/divide.h and counts.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 4

namespace formula_divide
{
DEVICE_FUNCTION_2(fmod)

/* f(x, y, fmod(x, y)) */
#define AFTER_FMOD(NAME, d, T, f) BINARY_LOOP(NAME##_##d, T, T, f##_##T(x, y, fmod(x, y)))
#define DIVISION(NAME)		  POINTWISE(NAME, AT_INT(NAME), AT_FLOAT(NAME))
#include "kernels/formula/divide.h"
} // namespace formula_divide

namespace formula_counts
{
#include "kernels/formula/counts.h"
} // namespace formula_counts
