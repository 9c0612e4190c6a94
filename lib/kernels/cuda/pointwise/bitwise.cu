// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/bitwise.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_bitwise
{
#include "kernels/formula/bitwise.h"
}
