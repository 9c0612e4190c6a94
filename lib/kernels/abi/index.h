/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C types of kernels that read or write by index or mask. See kernels.h. */
#ifndef TENSOR_INDEX_KERNELS_H
#define TENSOR_INDEX_KERNELS_H

#include "kernels/abi/kernels.h"

/*
 * scatter: out[index[i][j]][j] = source[i][j] for dim 0, or the combination of both. Elements with
 * equal indices are processed in the order of the source. A vector index with a source of more
 * dimensions applies to each line of it, as in index_add. op: the operator's name, for errors; it is kept.
 */
enum scatter_mode { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN };
typedef int (*scatter_kernel)(const char *op, tensor *out, int dim, const tensor *index,
			      const tensor *source, enum scatter_mode mode);
extern scatter_kernel type_of_scatter;
/*
 * index_take: out = self[..., i, j, ...] for the indices at[0], at[1], ... (i64) of the n
 * dimensions in dims. Negative indices count from the end. index_put writes values, which have the
 * shape of that, to the same elements of out.
 */
typedef int (*index_take_kernel)(tensor *out, const tensor *self, const tensor *at, const int *dims,
				 int n);
extern index_take_kernel type_of_index_take;
typedef int (*index_put_kernel)(const char *op, tensor *out, const tensor *at, const int *dims,
				int n, const tensor *values, enum scatter_mode mode);
extern index_put_kernel type_of_index_put;

/*
 * The mask is bool or u8. All tensors are contiguous; self and out have the shape of the mask. The
 * size of the result of nonzero and masked_select is not known before: the kernel allocates it and
 * returns it owned, or NULL. nonzero returns i64 [n, dimensions] in column-major order.
 */
typedef tensor *(*nonzero_kernel)(const tensor *mask);
extern nonzero_kernel type_of_nonzero;
typedef tensor *(*masked_select_kernel)(const tensor *self, const tensor *mask);
extern masked_select_kernel type_of_masked_select;
typedef int (*masked_scatter_kernel)(tensor *out, const tensor *mask, const tensor *source);
extern masked_scatter_kernel type_of_masked_scatter;

#endif
