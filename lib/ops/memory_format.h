/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Order of a result's dimensions in memory, by PyTorch's rules: if the channels of an input are its
 * innermost dimension ("channels last"), so are those of the result. Strides of dimensions of size
 * 1 address nothing but count here: only they distinguish [n, 1, h, w] in channels-last order from
 * row-major order.
 */
#ifndef TENSOR_OPS_MEMORY_FORMAT_H
#define TENSOR_OPS_MEMORY_FORMAT_H

#include "core/memory_format.h"

/*
 * Strides without gaps for an elementwise result of these sizes, in the order of the inputs'
 * dimensions. The first input with different strides in two dimensions decides their order; a
 * dimension expanded in an input does not count. NULL inputs are skipped. Returns false for
 * row-major order; strides is not written then.
 */
bool memory_order_of(const tensor *const *inputs, int ninputs, const int64_t *sizes, int ndim,
		     int64_t *strides);

/* Uninitialized tensor of t's sizes with these options and t's order of dimensions. */
tensor *memory_new_like(const tensor *t, tensor_options options);

/* Options with self's dtype and device where they are not given. */
static inline tensor_options memory_options_like(const tensor *self, tensor_options o)
{
	if (!o.dtype)
		o.dtype = self->dtype;
	if (!o.device.type)
		o.device = self->device;
	return o;
}

/* clone() of a tensor that is not strided: EOPNOTSUPP for a memory format other than preserve. */
int memory_check_clone(enum tensor_memory_format format);

#endif
