// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/arith.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_arith
{
#include "kernels/formula/arith.h"
}
