// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The table of kernels that are formulas: the function of each one passes its launcher on. */
#include "kernels/cuda/cuda.h"

/* Integers are checked for zero divisors. */
static bool divides(cuda_launcher launch)
{
	return launch == cuda_launch_div_floor || launch == cuda_launch_div_trunc ||
	       launch == cuda_launch_fmod || launch == cuda_launch_remainder;
}

#define X(NAME)                                                                               \
	static int cuda_##NAME(struct tensor_iter *it, const struct pointwise_params *params) \
	{                                                                                     \
		if (divides(cuda_launch_##NAME))                                              \
			return cuda_formula_division(#NAME, cuda_launch_##NAME, it);          \
		return cuda_formula(#NAME, cuda_launch_##NAME, it, params);                   \
	}
#include "kernels/cuda/pointwise/formulas.h"
#undef X

#define X(NAME) { #NAME, KERNEL_OF_TYPE(pointwise_kernel, cuda_##NAME) },
const struct cuda_kernel cuda_formulas[] = {
#include "kernels/cuda/pointwise/formulas.h"
};
#undef X
const size_t cuda_formulas_count = ARRAY_SIZE(cuda_formulas);
