/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What fronts hand to kernels that read or write by index or mask. See kernels.h. */
#ifndef TENSOR_INDEX_KERNELS_H
#define TENSOR_INDEX_KERNELS_H

#include "kernels/abi/kernels.h"

/* scatter: out[index[i][j]][j] = source[i][j] for dim 0, or combined with it; in the order of the
 * source where several go to one place. A vector index with a source of more dimensions is meant for
 * each line of that, as in index_add. */
enum scatter_mode { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN };
typedef int (*scatter_kernel)(tensor *out, int dim, const tensor *index, const tensor *source,
			      enum scatter_mode mode);
/* self[..., i, j, ...] for the indices at[0], at[1] (i64) of the dimensions in dims; see
 * indexed.h. Negative ones count from the end. values have the shape of that. */
typedef int (*index_take_kernel)(tensor *out, const tensor *self, const tensor *at, const int *dims,
				 int n);
typedef int (*index_put_kernel)(tensor *out, const tensor *at, const int *dims, int n,
				const tensor *values, enum scatter_mode mode);

/* Over a contiguous mask (bool or u8); self, out and source are contiguous too, the former two of
 * the mask's shape. nonzero gives i64 [n, dimensions], column after column in memory. What there is
 * space for is only known afterwards, so the kernel makes the result: owned, or NULL. */
typedef tensor *(*nonzero_kernel)(const tensor *mask);
typedef tensor *(*masked_select_kernel)(const tensor *self, const tensor *mask);
typedef int (*masked_scatter_kernel)(tensor *out, const tensor *mask, const tensor *source);

#endif
