/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What the fronts of random operators share. */
#ifndef TENSOR_OPS_RANDOM_H
#define TENSOR_OPS_RANDOM_H

#include "base/generator.h"
#include "base/philox.h"
#include "kernels/abi/random.h"
#include "ops/op.h"

/* Takes what n numbers need from the generator. */
static inline void random_take(struct random_params *p, tensor_generator *g, int64_t n)
{
	int64_t group = p->wide ? PHILOX_WORDS / 2 : PHILOX_WORDS;

	p->at = generator_take(g, (uint64_t)((n + group - 1) / group) * PHILOX_BLOCKS);
}

/* Fills t, which is contiguous, with the loop of its backend. */
int random_draw(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor *t,
		struct random_params *p, tensor_generator *g);
/* The same for a front of self that fills it, or a new tensor like it. */
int random_op(const struct tensor_op *op, tensor **out, tensor *self, struct random_params *p,
	      tensor_generator *g);
/* And for a factory. Consumes t. */
tensor *random_filled(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor *t, struct random_params *p, tensor_generator *g);

/* Binary digits of a float dtype's fraction, the hidden one included; 0 for others. */
int random_digits(enum tensor_dtype dtype);
/* Parameters after their checks: 0 or -errno. */
int random_uniform(const char *op, enum tensor_dtype dtype, double from, double to,
		   struct random_params *p);
int random_normal(const char *op, enum tensor_dtype dtype, double mean, double std,
		  struct random_params *p);
int random_integers(const char *op, enum tensor_dtype dtype, int64_t from, int64_t to,
		    struct random_params *p);

#endif
