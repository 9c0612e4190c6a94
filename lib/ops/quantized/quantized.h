/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What a quantised tensor has: one scale and zero point, or one of each for every position of a
 * dimension. Its numbers are u8, i8 or i32, strided like any others, behind a key of their own.
 */
#ifndef TENSOR_OPS_QUANTIZED_H
#define TENSOR_OPS_QUANTIZED_H

#include "ops/op.h"

#include "kernels/abi/quantized.h"

struct quantizer {
	struct tensor_extension ext;
	double scale; /* per tensor */
	int64_t zero_point;
	int axis;		      /* -1: per tensor */
	tensor *scales, *zero_points; /* per channel: f64 and i64 [channels] */
	/* What kernels read: f32 and i32, one or a channel's each. */
	tensor *kernel_scales, *kernel_zeros;
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

/* The least and the greatest number of a dtype. */
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
/* New memory, contiguous. Takes over the reference to ext, also on failure. */
tensor *quantized_new(enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		      struct tensor_extension *ext);
/* The numbers themselves: a strided tensor on the same memory, owned. */
tensor *quantized_plain(tensor *self);
/* A quantised tensor on the memory of plain numbers; takes over ext, also on failure. */
tensor *quantized_from_plain(tensor *plain, struct tensor_extension *ext);

/* x (f32, any strides) quantised as ext says; takes over the reference. */
tensor *quantized_make(tensor *x, enum tensor_dtype dtype, struct tensor_extension *ext);

/* 0, or -errno with the error set unless t is per tensor of this dtype (NONE: any). */
int quantized_need(const char *op, const char *name, const tensor *t, enum tensor_dtype dtype);

#endif
