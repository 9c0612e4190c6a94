// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/sign.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_sign
{
#include "kernels/formula/sign.h"
}
