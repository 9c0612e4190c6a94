/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What libtensor_onednn.so brings: the only functions that make and read blocked tensors. Their
 * arguments were checked by the fronts (lib/ops/blocked*.c); `op` is for messages. Tensors that
 * are not blocked are contiguous. Results are owned, NULL with the error set.
 *
 * Where both kinds are allowed the result is of the first tensor's.
 */
#ifndef TENSOR_KERNELS_ONEDNN_H
#define TENSOR_KERNELS_ONEDNN_H

#include "core/tensor_impl.h"

#include "kernels/abi/spatial.h"

struct onednn_plugin {
	/* A blocked copy in row-major order, of this dtype; of sizes that have as many elements. */
	tensor *(*from_dense)(const char *op, const tensor *dense, enum tensor_dtype dtype);
	int (*to_dense)(const char *op, tensor *dense, const tensor *self);
	/* In row-major order: uninitialised; whether self is. */
	tensor *(*empty)(const char *op, enum tensor_dtype dtype, const int64_t *sizes, int ndim);
	bool (*is_plain)(const tensor *self);
	/* Copies. permutation[i] is the dimension of self that becomes dimension i. */
	tensor *(*clone)(const char *op, const tensor *self);
	tensor *(*reshape)(const char *op, const tensor *self, const int64_t *sizes, int ndim);
	tensor *(*permute)(const char *op, const tensor *self, const int *permutation);

	/* other, of self's sizes, in self's order: a copy where it is not so. */
	tensor *(*as_order)(const char *op, tensor *other, const tensor *self);
	/* Blocks are padded with zeros; who wrote to all bytes has this done. */
	int (*zero_padding)(const char *op, tensor *self);

	/* sizes are the result's. bias may be NULL. */
	tensor *(*convolution)(const char *op, const tensor *input, const tensor *weight,
			       const tensor *bias, const int64_t *sizes,
			       const struct conv_params *p);
	tensor *(*linear)(const char *op, const tensor *input, const tensor *weight,
			  const tensor *bias);
	/* Weights in the order that the products of such an input want. */
	tensor *(*convolution_weight)(const char *op, const tensor *weight,
				      const int64_t *input_sizes, const int64_t *sizes,
				      const struct conv_params *p);
	tensor *(*linear_weight)(const char *op, const tensor *weight, int64_t rows);

	tensor *(*pool)(const char *op, const tensor *self, const int64_t *sizes,
			const struct pool_params *p, bool max);
	tensor *(*softmax)(const char *op, const tensor *self, int dim);
	/* The four are f32 [channels], contiguous. */
	tensor *(*batch_norm)(const char *op, const tensor *self, const tensor *weight,
			      const tensor *bias, const tensor *mean, const tensor *var, float eps);
};

/* For the plugin's constructor: its table, or NULL and why. */
int tensor_register_onednn(const struct onednn_plugin *plugin, const char *error);

#endif
