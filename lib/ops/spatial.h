/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What fronts over images share: lists of numbers for spatial dimensions. */
#ifndef TENSOR_SPATIAL_H
#define TENSOR_SPATIAL_H

#include "front.h"

#define SPATIAL 3

/*
 * A list argument for n spatial dimensions, for all SPATIAL of them: the missing ones come first
 * and get `missing`. One number counts for all n. Each must be at least `least`.
 */
int spatial_list(const struct tensor_op *op, const char *name, tensor_ints list, int n,
		 int64_t missing, int64_t least, int64_t *to);

#endif
