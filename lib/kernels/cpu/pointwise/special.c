// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* erf, erfc, erfinv, lgamma, digamma, polygamma. */
#include "kernels/cpu/simd/vec_erfc.h"
#include "kernels/cpu/simd/vec_special.h"

#include <tgmath.h>

VEC_SLEEF_1(lgamma)

#include "kernels/formula/special.h"

CPU_KERNELS(K(erf), K(erfc), K(erfinv), K(lgamma), K(digamma), K(polygamma))
