// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * erf, erfc, erfinv, lgamma, digamma, polygamma. Functions that SLEEF does not have are computed
 * element by element, in double.
 */
#include "kernels/cpu/simd/vec_erfc.h"

#include <tgmath.h>

VEC_SLEEF_1(lgamma)

#include "kernels/formula/special.h"

CPU_KERNELS(K(erf), K(erfc), K(erfinv), K(lgamma), K(digamma), K(polygamma))
