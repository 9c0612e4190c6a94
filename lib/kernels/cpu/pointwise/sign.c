// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* abs, sign, sgn, square, conj, angle; tests for NaN, infinities and signs. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <tgmath.h>

#include "kernels/formula/sign.h"

CPU_KERNELS(K(abs), K(sign), K(sgn), K(square), K(conj_physical), K(angle), K(isnan), K(isinf),
	    K(isfinite), K(isposinf), K(isneginf), K(signbit), K(logical_not))
