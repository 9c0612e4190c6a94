// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* add, sub, mul, div, neg. Integers wrap. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <math.h>

#include "kernels/formula/arith.h"

CPU_KERNELS(K(add), K(add_alpha), K(sub), K(mul), K(div), K(neg))
