/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared functions of random operators. */
#ifndef TENSOR_OPS_RANDOM_H
#define TENSOR_OPS_RANDOM_H

#include "base/generator.h"
#include "base/philox.h"
#include "kernels/abi/random.h"
#include "ops/op.h"
#include "storage/devices.h"

/* Take the state for n numbers, which t's device computes, from the generator. 0, or -errno: not in this capture. */
static inline int random_take(struct random_params *p, const tensor *t, tensor_generator *g,
			      int64_t n)
{
	int64_t group = p->wide ? PHILOX_WORDS / 2 : PHILOX_WORDS;

	uint64_t blocks = (uint64_t)((n + group - 1) / group) * PHILOX_BLOCKS;
	int captured =
		t->device.type == TENSOR_CPU ? 0 : device_take_random(t->device, g, blocks, &p->at);

	if (!captured)
		p->at = generator_take(g, blocks);
	return captured < 0 ? captured : 0;
}

/* Fill a contiguous t with the backend's kernel. */
int random_draw(const struct tensor_op *op, const struct tensor_kernel_table *kernels, tensor *t,
		struct random_params *p, tensor_generator *g);
/* Operator function that fills self, or a new tensor like it. */
int random_op(const struct tensor_op *op, tensor **out, tensor *self, struct random_params *p,
	      tensor_generator *g);
/* As random_draw(), for a factory. Consumes t. */
tensor *random_filled(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		      tensor *t, struct random_params *p, tensor_generator *g);

/* Binary digits of a floating dtype's significand, including the implicit one; 0 for other dtypes.
 */
int random_digits(enum tensor_dtype dtype);
/* Check arguments and set the kernel's parameters. 0 or -errno. */
int random_uniform(const char *op, enum tensor_dtype dtype, double from, double to,
		   struct random_params *p);
int random_normal(const char *op, enum tensor_dtype dtype, double mean, double std,
		  struct random_params *p);
int random_integers(const char *op, enum tensor_dtype dtype, int64_t from, int64_t to,
		    struct random_params *p);

#endif
