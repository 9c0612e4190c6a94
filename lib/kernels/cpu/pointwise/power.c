// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* pow, cube, inverse_square, copysign, nextafter. */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/vecloop.h"

#include <tgmath.h>

VEC_SLEEF_2(pow)

#include "kernels/formula/power.h"

static int cpu_nextafter(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const iter_loop loops[TENSOR_DTYPE_COUNT] = {
		AT_FLOAT(nextafter), AT_DTYPE(TENSOR_F16, nextafter_f16),
		AT_DTYPE(TENSOR_BF16, nextafter_bf16)
	};
	const uint8_t want[ITER_OPERANDS] = { it->dtype, it->dtype, it->dtype };

	return CPU_NAME(pointwise_run_as)("nextafter", it, loops[it->dtype], want, params);
}

CPU_KERNELS(K(pow), K(cube), K(inverse_square), K(copysign), K(nextafter))
