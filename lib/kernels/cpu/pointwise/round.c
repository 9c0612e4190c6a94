// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rounding. Integers are copied. */
#include "kernels/cpu/simd/loops.h"

#include <tgmath.h>

#include "kernels/formula/round.h"

CPU_KERNELS(K(ceil), K(floor), K(trunc), K(round), K(frac), K(round_decimals))
