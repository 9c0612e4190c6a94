// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Comparisons, whose result is bool, and where. */
#include "kernels/cpu/simd/loops.h"

#include "kernels/formula/compare.h"

static int cpu_where(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const iter_loop loops[] = {
		[1] = where_1, [2] = where_2, [4] = where_4, [8] = where_8, [16] = where_16
	};
	const uint8_t want[] = { it->dtype, TENSOR_BOOL, it->dtype, it->dtype };

	return CPU_NAME(pointwise_run_as)("where", it, loops[dtype_sizes[it->dtype]], want, params);
}

CPU_KERNELS(K(eq), K(ne), K(lt), K(le), K(gt), K(ge), K(where))
