/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C types of the kernels of padding, and of tril and triu. See kernels.h. */
#ifndef TENSOR_PAD_KERNELS_H
#define TENSOR_PAD_KERNELS_H

#include "kernels/abi/kernels.h"

/*
 * Pads the last n (1 to 3) dimensions of self to the sizes of out, with the elements mirrored at
 * the edge (reflect) or with the element at the edge. before[i] is the padding in front of
 * dimension ndim - n + i; a negative one crops.
 */
struct pad_params {
	int n;
	bool reflect;
	int64_t before[3];
};
typedef int (*pad_kernel)(tensor *out, const tensor *self, const struct pad_params *params);
extern pad_kernel type_of_pad;
/*
 * Adds each element of grad to the element of out that was copied to it, in order. out is zero
 * before.
 */
typedef int (*pad_backward_kernel)(tensor *out, const tensor *grad,
				   const struct pad_params *params);
extern pad_backward_kernel type_of_pad_backward;

/*
 * out = self on and above (upper), or on and below diagonal k of the last two dimensions, and 0
 * elsewhere. out may be self.
 */
typedef int (*triangle_kernel)(tensor *out, const tensor *self, int64_t k, bool upper);
extern triangle_kernel type_of_triangle;

#endif
