/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels of random numbers and ranges. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_RANDOM_H
#define TENSOR_CUDA_LAUNCH_RANDOM_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- random numbers, in contiguous memory; one of 32 bits is true if it is at most `last` ---- */

struct cuda_random {
	int64_t n;
	uint64_t seed, offset; /* of Philox: the key, the first block */
	const uint64_t *at; /* if not NULL: the key, and what is added to offset, on the device */
	uint32_t last;
	bool never; /* no number is true */
};
/* out = input * mask * scale */
int cuda_launch_dropout(const struct cuda_random *r, void *out, uint8_t *mask, const void *in,
			double scale, int dtype, cudaStream_t stream);
int cuda_launch_bernoulli(const struct cuda_random *r, void *out, int dtype, cudaStream_t stream);

/* Parameters as those of struct random_params; n numbers, in contiguous memory. */
struct cuda_fill {
	int64_t n;
	uint64_t seed, offset;
	const uint64_t *at;
	double a, b, limit;
	int64_t from;
	uint64_t range;
	bool wide;
};
int cuda_launch_uniform(const struct cuda_fill *f, void *out, int dtype, cudaStream_t stream);
int cuda_launch_normal(const struct cuda_fill *f, void *out, int dtype, cudaStream_t stream);
int cuda_launch_exponential(const struct cuda_fill *f, void *out, int dtype, cudaStream_t stream);
int cuda_launch_randint(const struct cuda_fill *f, void *out, int dtype, cudaStream_t stream);
/* out is true with the probabilities p, of f32 or f64, and false where one is not within [0, 1]. */
int cuda_launch_bernoulli_each(const struct cuda_fill *f, uint8_t *out, const void *p,
			       const struct cuda_report *bad, int dtype, cudaStream_t stream);

/* Ranges of n elements, `stride` elements apart. */
int cuda_launch_arange(void *out, int64_t n, int64_t stride, tensor_scalar start,
		       tensor_scalar step, int dtype, cudaStream_t stream);
int cuda_launch_linspace(void *out, int64_t n, tensor_scalar start, tensor_scalar end, int dtype,
			 cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
