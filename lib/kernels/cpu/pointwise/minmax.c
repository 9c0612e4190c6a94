// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* maximum, minimum, fmax, fmin, clamp. */
#include "kernels/cpu/simd/loops.h"

#include "kernels/formula/minmax.h"

CPU_KERNELS(K(maximum), K(minimum), K(fmax), K(fmin), K(clamp), K(clamp_tensor))
