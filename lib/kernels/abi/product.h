/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Kernels of matrix products with a bias and an activation. See kernels.h. */
#ifndef TENSOR_KERNELS_PRODUCT_H
#define TENSOR_KERNELS_PRODUCT_H

#include "kernels/abi/kernels.h"

/*
 * mm_epilogue: out = f(beta * bias + alpha * a b), computed on a block of out while that is in a cache, where bias
 * is a contiguous vector of n elements of the dtype of out, added to each row (NULL: out itself, as in mm), and f the
 * elementwise kernel `activation` of the backend (NULL: none). Its bits are those of a copy of the bias, mm and f. Floats only.
 */
struct mm_epilogue {
	const tensor *bias;
	pointwise_kernel activation;
};
typedef int (*mm_epilogue_kernel)(tensor *out, const tensor *a, const tensor *b,
				  tensor_scalar alpha, tensor_scalar beta,
				  const struct mm_epilogue *epilogue);
extern mm_epilogue_kernel type_of_mm_epilogue;

#endif
