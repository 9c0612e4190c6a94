/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The dtypes of x for which norm_each.h makes functions. */
#ifndef TENSOR_NORM_DTYPE_H
#define TENSOR_NORM_DTYPE_H

#include "core/tensor_impl.h"

static inline bool norm_has_dtype(const tensor *x)
{
	return x->dtype == TENSOR_F32 || x->dtype == TENSOR_F64 || x->dtype == TENSOR_F16 ||
	       x->dtype == TENSOR_BF16;
}

/* The function fn for x's dtype, one of those. */
#define NORM_BY_DTYPE(x, fn)                   \
	((x)->dtype == TENSOR_F32 ? fn##_f32 : \
	 (x)->dtype == TENSOR_F64 ? fn##_f64 : \
	 (x)->dtype == TENSOR_F16 ? fn##_f16 : \
				    fn##_bf16)

#endif
