// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* lerp, addcmul, addcdiv; nan_to_num. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <tgmath.h>

#include "kernels/formula/ternary.h"

CPU_KERNELS(K(lerp), K(addcmul), K(addcdiv), K(nan_to_num))
