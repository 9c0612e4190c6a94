// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/ternary.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_ternary
{
#include "kernels/formula/ternary.h"
}
