/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Iteration of operators that work along some dimensions and repeat this for the others:
 * reductions, softmax. `along` are the dimensions in a mask, `kept` the others. Both are sorted by
 * the input's strides, smallest first, and merged where the elements of every operand are evenly
 * spaced across two adjacent dimensions. Each has at least one dimension, of size 1 if none is
 * left.
 */
#ifndef TENSOR_REDUCE_ITER_H
#define TENSOR_REDUCE_ITER_H

#include "core/tensor_impl.h"

#define REDUCE_ITER_OPERANDS 3

struct reduce_iter_dims {
	int n;
	int64_t count; /* product of the sizes */
	int64_t size[TENSOR_MAX_DIMS];
	int64_t stride[REDUCE_ITER_OPERANDS][TENSOR_MAX_DIMS]; /* in bytes */
};

struct reduce_iter {
	int nops;
	char *data[REDUCE_ITER_OPERANDS];
	struct reduce_iter_dims kept, along;
};

/* Build the iteration over operands of one shape; the output of a reduction, op[0], has size 1 and
 * stride 0 in the dimensions of the mask. op[1], an input, gives the shape and the order. */
void reduce_iter_build(struct reduce_iter *t, const tensor *const *op, int nops, uint32_t along);

/* Set data[] to every operand's element at position `index` of the kept dimensions, where dimension
 * 0 varies fastest. */
void reduce_iter_seek(const struct reduce_iter *t, int64_t index, char **data);

#endif
