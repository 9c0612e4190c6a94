/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The arguments of the kernel that changes or measures all tensors of a list in one pass. */
#ifndef TENSOR_LIST_KERNEL_H
#define TENSOR_LIST_KERNEL_H

#include "kernels/abi/optimizer.h"

/* x is an element of item->param, y that of item->grad. */
enum list_method {
	LIST_SCALE,    /* x = x * value */
	LIST_CLAMP,    /* x within -value and value; NaN stays */
	LIST_LERP,     /* x = x + value * (y - x) */
	LIST_UNSCALE,  /* x = x * value; the result is 1 if an x was not finite, else 0 */
	LIST_NORM_1,   /* the result is the sum of |x| */
	LIST_NORM_2,   /* of x^2 */
	LIST_NORM_MAX, /* the greatest |x|, NaN if there is one */
	LIST_NORM_P    /* the sum of |x|^value */
};

/* Elements of a chunk. */
#define LIST_GRAIN (1 << 14)

/* part[i], which is 0 before, receives the result of chunk i of all items together, or part[0] that of all; NULL for
 * methods without one. */
typedef int (*list_kernel)(enum list_method method, double value, double *part,
			   const struct optimizer_item *items, int64_t nitems);
extern list_kernel type_of_list;

#endif
