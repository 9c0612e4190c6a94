/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The functions of libtensor_onednn.so, the only ones that create and read blocked tensors. The ops
 * (lib/ops/) have checked the arguments; `op` is the name for error messages. Tensors that are
 * not blocked are contiguous. Results are owned, or NULL with the error recorded.
 *
 * If a function accepts blocked and dense tensors, the result has the layout of the first one.
 */
#ifndef TENSOR_KERNELS_ONEDNN_H
#define TENSOR_KERNELS_ONEDNN_H

#include "core/tensor_impl.h"

#include "kernels/abi/spatial.h"

struct onednn_plugin {
	/* A blocked copy in row-major order, converted to dtype. */
	tensor *(*from_dense)(const char *op, const tensor *dense, enum tensor_dtype dtype);
	int (*to_dense)(const char *op, tensor *dense, const tensor *self);
	/* An uninitialized blocked tensor in row-major order. */
	tensor *(*empty)(const char *op, enum tensor_dtype dtype, const int64_t *sizes, int ndim);
	/* Whether self is in row-major order. */
	bool (*is_plain)(const tensor *self);
	/* Copies. permutation[i] is the dimension of self that becomes dimension i. */
	tensor *(*clone)(const char *op, const tensor *self);
	tensor *(*reshape)(const char *op, const tensor *self, const int64_t *sizes, int ndim);
	tensor *(*permute)(const char *op, const tensor *self, const int *permutation);

	/*
	 * other, which has the sizes of self, in the memory format of self: a copy unless it has
	 * it.
	 */
	tensor *(*as_order)(const char *op, tensor *other, const tensor *self);
	/*
	 * Writes zeros to the padding of blocks. To be called after writing to all bytes of self.
	 */
	int (*zero_padding)(const char *op, tensor *self);

	/* sizes are those of the result. bias may be NULL. */
	tensor *(*convolution)(const char *op, const tensor *input, const tensor *weight,
			       const tensor *bias, const int64_t *sizes,
			       const struct conv_params *p);
	tensor *(*linear)(const char *op, const tensor *input, const tensor *weight,
			  const tensor *bias);
	/* Copies of weights in the format that oneDNN prefers for an input of these sizes. */
	tensor *(*convolution_weight)(const char *op, const tensor *weight,
				      const int64_t *input_sizes, const int64_t *sizes,
				      const struct conv_params *p);
	tensor *(*linear_weight)(const char *op, const tensor *weight, int64_t rows);

	tensor *(*pool)(const char *op, const tensor *self, const int64_t *sizes,
			const struct pool_params *p, bool max);
	tensor *(*softmax)(const char *op, const tensor *self, int dim);
	/* weight, bias, mean and var are f32 [channels]; weight and bias may be NULL. */
	tensor *(*batch_norm)(const char *op, const tensor *self, const tensor *weight,
			      const tensor *bias, const tensor *mean, const tensor *var, float eps);
};

/* Called by the constructor of the plugin, with its table, or with NULL and the reason. */
int tensor_register_onednn(const struct onednn_plugin *plugin, const char *error);

#endif
