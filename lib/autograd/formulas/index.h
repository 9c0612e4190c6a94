/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions of the formulas of indexing operators. See formulas.h. */
#ifndef TENSOR_AUTOGRAD_INDEX_FORMULAS_H
#define TENSOR_AUTOGRAD_INDEX_FORMULAS_H

#include <tensor/types.h>

tensor *index_put_self_backward(tensor *grad, tensor *at, tensor_ints dims, bool accumulate);
tensor *masked_select_backward(tensor *grad, tensor_ints sizes, tensor *mask);
tensor *index_copy_source_backward(tensor *grad, tensor_ints sizes, int64_t dim, tensor *index);
tensor *index_fill_value_backward(tensor *grad, int64_t dim, tensor *index);

tensor *select_scatter_backward(tensor *grad, int64_t dim, int64_t index);
tensor *slice_scatter_backward(tensor *grad, int64_t dim, int64_t start, int64_t end, int64_t step);
tensor *diagonal_scatter_backward(tensor *grad, int64_t offset, int64_t dim1, int64_t dim2);
/* Sizes, strides and offset of a tensor in its storage; the offset of a part may be TENSOR_NONE, that of self. */
struct formula_geometry {
	tensor_ints sizes, strides;
	int64_t offset;
};
static inline struct formula_geometry formula_geometry(tensor_ints sizes, tensor_ints strides,
						       int64_t offset)
{
	return (struct formula_geometry){ sizes, strides, offset };
}

tensor *as_strided_scatter_backward(tensor *grad, struct formula_geometry self,
				    struct formula_geometry part);
tensor *as_strided_scatter_src_backward(tensor *grad, struct formula_geometry self,
					struct formula_geometry part);

/* Elements of src that were not read get zeros. */
tensor *scatter_src_backward(tensor *grad, tensor_ints sizes, int64_t dim, tensor *index);
/* Fails: not differentiable. */
tensor *scatter_reduce_self_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				     tensor *src, const char *reduce, bool include_self,
				     tensor *result);
tensor *scatter_reduce_src_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				    tensor *src, const char *reduce, bool include_self,
				    tensor *result);
tensor *index_reduce_self_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				   tensor *source, const char *reduce, bool include_self,
				   tensor *result);
tensor *index_reduce_source_backward(tensor *grad, tensor *self, int64_t dim, tensor *index,
				     tensor *source, const char *reduce, bool include_self,
				     tensor *result);

/* ---- moved elements: move.c ---- */
tensor *roll_backward(tensor *grad, tensor_ints shifts, tensor_ints dims);
tensor *repeat_backward(tensor *grad, tensor_ints sizes, tensor_ints repeats);
tensor *constant_pad_backward(tensor *grad, tensor_ints pad);
tensor *unfold_view_backward(tensor *grad, tensor_ints sizes, int64_t dim, int64_t size,
			     int64_t step);
/* Fails: not differentiable. */

#endif
