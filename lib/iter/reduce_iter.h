/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of an operator that works along some dimensions and repeats that for the others:
 * reductions, softmax. "Along" are the dimensions in a mask, "kept" the rest; either kind is
 * sorted by the input's strides, smallest first, and merged where neighbours are one run for
 * every operand. There is always at least one of each kind (of size 1 when none is left).
 */
#ifndef TENSOR_REDUCE_ITER_H
#define TENSOR_REDUCE_ITER_H

#include "core/tensor_impl.h"

#define NEST_OPERANDS 3

struct reduce_iter_dims {
	int n;
	int64_t count; /* positions: the product of the sizes */
	int64_t size[TENSOR_MAX_DIMS];
	int64_t stride[NEST_OPERANDS][TENSOR_MAX_DIMS]; /* bytes */
};

struct reduce_iter {
	int nops;
	char *data[NEST_OPERANDS];
	struct reduce_iter_dims kept, along;
};

/* Operands of one shape, except that the output of a reduction, op[0], has size 1 and stride 0
 * in the dimensions of the mask. op[1], an input, says the shape and the order. */
void reduce_iter_build(struct reduce_iter *t, const tensor *const *op, int nops, uint32_t along);

/* Pointers of all operands at a position of the kept dimensions, counted innermost first. */
void reduce_iter_seek(const struct reduce_iter *t, int64_t index, char **data);

#endif
