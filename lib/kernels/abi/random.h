/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The C types of the kernels of random operators. See kernels.h. */
#ifndef TENSOR_KERNELS_RANDOM_H
#define TENSOR_KERNELS_RANDOM_H

#include "kernels/abi/kernels.h"

/*
 * Random numbers (base/philox.h). out is contiguous; element i is computed from random number i
 * after block at.offset. The numbers have 64 bits if `wide` (f64, c128, integers of large ranges),
 * else 32. A complex element takes two.
 */
struct random_params {
	struct tensor_generator_state at;
	bool wide;
	double a, b;  /* uniform: begin, length; normal: mean, deviation; else: rate, chance */
	double limit; /* uniform: the largest value; normal: the mean of imaginary parts */
	int64_t from; /* integers: from + [0, range); a range of 0 is 2^64 */
	uint64_t range;
};
/* randperm: out (i64) is 0, 1, ... in random order; range is not read. */
typedef int (*random_kernel)(tensor *out, const struct random_params *params);
extern random_kernel type_of_bernoulli, type_of_exponential, type_of_normal, type_of_randint,
	type_of_randperm, type_of_uniform;
/*
 * out (bool) is true with the probability in p (contiguous, f32 or f64). Fails with EINVAL if one
 * is outside [0, 1].
 */
typedef int (*random_each_kernel)(tensor *out, const tensor *p, const struct random_params *params);
extern random_each_kernel type_of_bernoulli_each;
/*
 * out (i64 [rows, k]) is k indices for each row of weights (f64 [rows, n], contiguous). work (f64)
 * is scratch memory, with the shape of weights with replacement, with that of out without. Fails
 * with EINVAL if weights are negative or not finite, or if a row has fewer than k above zero
 * without replacement.
 */
typedef int (*multinomial_kernel)(tensor *out, const tensor *weights, tensor *work,
				  bool replacement, const struct random_params *params);
extern multinomial_kernel type_of_multinomial;
/* mask (bool) is true with the probability a, out = input * mask * b; all contiguous. */
typedef int (*dropout_kernel)(tensor *out, tensor *mask, const tensor *input,
			      const struct random_params *params);
extern dropout_kernel type_of_native_dropout;

#endif
