// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/minmax.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_minmax
{
#include "kernels/formula/minmax.h"
}
