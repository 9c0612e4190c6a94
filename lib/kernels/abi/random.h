/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Kernels of random operators, as kernels.h has those of others. */
#ifndef TENSOR_KERNELS_RANDOM_H
#define TENSOR_KERNELS_RANDOM_H

#include "kernels/abi/kernels.h"

/*
 * Random numbers (philox.h). out is contiguous, and its element i is made of number i counted from
 * block at.offset: of 64 bits where `wide`, as it is for f64, c128 and integers of large ranges,
 * else of 32. Complex elements are two numbers.
 */
struct random_params {
	struct tensor_generator_state at;
	bool wide;
	double a, b;  /* uniform: begin, length. normal: mean, deviation. else: rate, chance */
	double limit; /* uniform: the largest value. normal: the mean of imaginary parts */
	int64_t from; /* integers: from + [0, range); 0 is 2^64 */
	uint64_t range;
};
/* randperm: out (i64) is 0, 1 ... in random order; range is not read. */
typedef int (*random_kernel)(tensor *out, const struct random_params *params);
/* out (bool) is true with the probability in p (contiguous, f32 or f64). EINVAL for one outside
 * of [0, 1]. */
typedef int (*random_each_kernel)(tensor *out, const tensor *p, const struct random_params *params);
/*
 * out (i64 [rows, k]): k positions for each row of weights (f64 [rows, n], contiguous). work has
 * the weights' shape with replacement, out's without; f64. EINVAL for weights that are none, and
 * for fewer than k above zero without replacement.
 */
typedef int (*multinomial_kernel)(tensor *out, const tensor *weights, tensor *work,
				  bool replacement, const struct random_params *params);
/* mask (bool) is true with the probability a, out = input * mask * b; all contiguous. */
typedef int (*dropout_kernel)(tensor *out, tensor *mask, const tensor *input,
			      const struct random_params *params);

#endif
