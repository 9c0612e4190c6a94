// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The formulas of formula/compare.h. */
#include "kernels/cuda/pointwise/formula.cuh"

namespace formula_compare
{
#include "kernels/formula/compare.h"

POINTWISE(where, AT_DTYPE(TENSOR_BOOL, where_1), AT_DTYPE(TENSOR_U8, where_1),
	  AT_DTYPE(TENSOR_I8, where_1), AT_DTYPE(TENSOR_U16, where_2),
	  AT_DTYPE(TENSOR_I16, where_2), AT_DTYPE(TENSOR_F16, where_2),
	  AT_DTYPE(TENSOR_BF16, where_2), AT_DTYPE(TENSOR_U32, where_4),
	  AT_DTYPE(TENSOR_I32, where_4), AT_DTYPE(TENSOR_F32, where_4),
	  AT_DTYPE(TENSOR_U64, where_8), AT_DTYPE(TENSOR_I64, where_8),
	  AT_DTYPE(TENSOR_F64, where_8), AT_DTYPE(TENSOR_C64, where_8),
	  AT_DTYPE(TENSOR_C128, where_16))
} // namespace formula_compare
