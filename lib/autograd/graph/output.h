/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shapes, dtypes, layouts and devices that tensors of the graph must have. */
#ifndef TENSOR_AUTOGRAD_OUTPUT_H
#define TENSOR_AUTOGRAD_OUTPUT_H

#include "autograd/graph/stream.h"
#include "core/tensor_impl.h"

/* The properties of an output of a node, which its gradient must have. The stream of the gradient is the output's. */
struct output {
	const int64_t *sizes;
	uint8_t dtype, ndim, layout;
	tensor_device device;
	uint16_t stream; /* number of the stream that computed it, see stream.h */
};

/* The sizes stay those of t. */
static inline struct output output_like(const tensor *t)
{
	return (struct output){
		t->sizes, t->dtype, t->ndim, t->layout, t->device, stream_of_new(t)
	};
}

static inline bool output_same_shape(const struct output *o, const tensor *t)
{
	if (t->ndim != o->ndim)
		return false;
	for (int i = 0; i < t->ndim; i++)
		if (t->sizes[i] != o->sizes[i])
			return false;
	return true;
}

#define LAYOUT_BIT(layout) (1u << (layout))
#define LAYOUTS_ALL	   (LAYOUT_BIT(TENSOR_LAYOUT_COUNT) - 1)
#define ALSO_INFERENCE	   LAYOUT_BIT(TENSOR_LAYOUT_COUNT)
#define ALSO_DUAL	   LAYOUT_BIT(TENSOR_LAYOUT_COUNT + 1)

/*
 * Checks a tensor of the program that takes the place of one like o: same shape, dtype and device, and a layout of
 * `accept`, LAYOUT_BIT()s; not made in inference mode, unless that has ALSO_INFERENCE, and no tangent, unless it has
 * ALSO_DUAL. The text names it: "set_grad: the gradient must be". 0, or -EINVAL.
 */
int output_check(const struct output *o, unsigned accept, const tensor *t, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
