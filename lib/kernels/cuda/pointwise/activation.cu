// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/activation.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_activation
{
#include "kernels/formula/activation.h"
}
