/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What fronts hand to the kernels of padding and of triangles. See kernels.h. */
#ifndef TENSOR_PAD_KERNELS_H
#define TENSOR_PAD_KERNELS_H

#include "kernels/abi/kernels.h"

/*
 * The last n (1 to 3) dimensions of self are padded to those of out with what lies mirrored
 * across the edge (reflect) or with the edge itself; before[i]: by how much in front of dimension
 * ndim - n + i. May be negative, which crops.
 */
struct pad_params {
	int n;
	bool reflect;
	int64_t before[3];
};
typedef int (*pad_kernel)(tensor *out, const tensor *self, const struct pad_params *params);
/* out, zero and of self's shape, plus every element of grad where it came from, in order. */
typedef int (*pad_backward_kernel)(tensor *out, const tensor *grad,
				   const struct pad_params *params);

/* out = self on and above (upper), or on and below, the diagonal k of the last two dimensions,
 * else 0. out may be self. */
typedef int (*triangle_kernel)(tensor *out, const tensor *self, int64_t k, bool upper);

#endif
