// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/round.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_round
{
#include "kernels/formula/round.h"
}
