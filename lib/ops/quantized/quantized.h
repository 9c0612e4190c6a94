/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Quantized tensors: one scale and zero point, or one of each per position of a dimension
 * (channel). The elements are u8, i8 or i32, strided, on the CPU or a CUDA device, with a dispatch key of their own,
 * QUANTIZED_CPU on both. Scales and zero points are in host memory. */
#ifndef TENSOR_OPS_QUANTIZED_H
#define TENSOR_OPS_QUANTIZED_H

#include "ops/op.h"

#include "kernels/abi/quantized.h"

#include <stdatomic.h>

struct quantizer {
	struct tensor_extension ext;
	double scale; /* per tensor */
	int64_t zero_point;
	int axis;		      /* -1: per tensor */
	tensor *scales, *zero_points; /* per channel: f64 and i64 [channels] */
	/* For kernels: f32 and i32, one or one per channel. */
	tensor *kernel_scales, *kernel_zeros;
	/* The first weights with this quantizer that a product packed, or NULL; set once. Not used once the program may write to them. */
	_Atomic(struct packed_weights *) packed;
	atomic_bool exposed;
};

/* Weights in the order of the CPU's products. */
struct packed_weights {
	tensor *plain; /* the weights; they keep their memory, so that no others have its address */
	uint32_t version; /* of plain's storage, when they were packed */
	int64_t groups;
	tensor *bytes;
};

static inline bool is_quantized(const tensor *t)
{
	return t->keys & KEY_BIT(TENSOR_KEY_QUANTIZED_CPU);
}

static inline const struct quantizer *quantizer_of(const tensor *t)
{
	return (const struct quantizer *)t->ext;
}

static inline bool is_per_tensor(const tensor *t)
{
	return quantizer_of(t)->axis < 0;
}

/* Smallest and largest value of a dtype. */
static inline int32_t quant_low(unsigned dtype)
{
	return dtype == TENSOR_U8 ? 0 : dtype == TENSOR_I8 ? -128 : INT32_MIN;
}

static inline int32_t quant_high(unsigned dtype)
{
	return dtype == TENSOR_U8 ? 255 : dtype == TENSOR_I8 ? 127 : INT32_MAX;
}

/* Owned; NULL with the error set. */
struct tensor_extension *quantizer_new(const char *op, double scale, int64_t zero_point,
				       enum tensor_dtype dtype);
/*
 * That of t for other memory. It keeps packed weights of its own: in one quantizer, a copy could not keep those of its own, and would
 * keep the memory of t.
 */
struct tensor_extension *quantizer_copy(const tensor *t);
/* New contiguous tensor. Consumes ext, also on failure. */
tensor *quantized_new(tensor_device device, enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		      struct tensor_extension *ext);
/* The integers: a strided tensor on the same memory. Owned. */
tensor *quantized_plain(tensor *self);
/* Quantized tensor on the memory of an integer tensor; consumes ext, also on failure. */
tensor *quantized_from_plain(tensor *plain, struct tensor_extension *ext);

/* x (f32, any strides) quantized with ext, which is consumed. */
tensor *quantized_make(tensor *x, enum tensor_dtype dtype, struct tensor_extension *ext);

/* The i8 weight [groups * n, channels, taps] packed for the product of the CPU: kept for the next one. Owned. */
tensor *quantized_pack(tensor *weight, int64_t groups, int64_t n, int64_t channels, int64_t taps);
void packed_weights_free(struct packed_weights *p);

/* -errno with the error set unless t is quantized per tensor with this dtype (NONE: any). */
int quantized_need(const char *op, const char *name, const tensor *t, enum tensor_dtype dtype);

#endif
