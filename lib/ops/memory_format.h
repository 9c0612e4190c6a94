/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The order of dimensions in the memory of results, by PyTorch's rules: channels that are the
 * innermost dimension of an input ("channels last") are that of the result, too. Dimensions of size
 * 1 have strides that no element tells; they count, because they tell [n, 1, h, w] with its
 * channels last from one without.
 */
#ifndef TENSOR_OPS_MEMORY_FORMAT_H
#define TENSOR_OPS_MEMORY_FORMAT_H

#include "core/memory_format.h"

/*
 * Strides without gaps for an elementwise result of these sizes: its dimensions follow each other
 * as those of the inputs do; the first input that tells two dimensions apart decides, a dimension
 * that it repeats says nothing. NULL inputs are skipped. False: row-major, strides is not written.
 */
bool memory_order_of(const tensor *const *inputs, int ninputs, const int64_t *sizes, int ndim,
		     int64_t *strides);

/* An uninitialised tensor of t's sizes with these options, whose dimensions are in t's order. */
tensor *memory_new_like(const tensor *t, tensor_options options);

#endif
