/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tensors of bf16, and results that are rounded to bf16 once. */
#ifndef TENSOR_TESTS_BF16_H
#define TENSOR_TESTS_BF16_H

#include "check.h"

/* Repeatable values between -1 and 1. */
static tensor *bf16_values(tensor_ints shape)
{
	static uint32_t state = 7;
	tensor *t = ok(tensor_empty(shape, F32));
	float *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++) {
		state = state * 1664525 + 1013904223;
		p[i] = (float)(state >> 16) / 32768 - 1;
	}
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
}

static tensor *in_f64(tensor *t)
{
	return ok(tensor_to(ok(t), F64));
}

/* Whether c is `exact`, rounded to bf16 once from a sum in f32 of terms whose sizes add up to `sizes`. */
static bool is_rounded_once(tensor *c, tensor *exact, tensor *sizes)
{
	tensor *error = ok(tensor_abs(ok(tensor_sub(in_f64(c), exact))));
	tensor *rounding = ok(tensor_mul_scalar(ok(tensor_abs(exact)), TENSOR_SCALAR(1.0 / 256)));
	tensor *sums = ok(tensor_mul_scalar(sizes, TENSOR_SCALAR(1e-6)));
	double all;

	assert_int_equal(tensor_dtype(c), TENSOR_BF16);
	assert_done(tensor_item(
		ok(tensor_all(ok(tensor_le(error, ok(tensor_add(rounding, sums)))))), &all));
	return all;
}

#endif
