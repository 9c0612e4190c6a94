// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/special.h. */
#include "kernels/cuda/pointwise/formula.cuh"

#undef FORMULA_MOST
#define FORMULA_MOST 1

namespace formula_special
{
DEVICE_FUNCTION_1(erf)
DEVICE_FUNCTION_1(erfc)
#ifdef TENSOR_CUDA_EMULATED
/* The host's lgamma() stores the sign in a variable that all threads share. */
static inline float lgamma_v(float x)
{
	int sign;

	return lgammaf_r(x, &sign);
}
static inline double lgamma_v(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}
#else
DEVICE_FUNCTION_1(lgamma)
#endif

#include "kernels/formula/special.h"
} // namespace formula_special
