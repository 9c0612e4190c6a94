/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Convolutions by cuDNN, for conv.c. */
#ifndef TENSOR_CUDA_DNN_CONVOLVE_H
#define TENSOR_CUDA_DNN_CONVOLVE_H

#include "kernels/cuda/dnn/plan.h"
#include "kernels/cuda/launch_spatial.h"

/* Contiguous memory of the tensors. */
struct dnn_operands {
	void *x, *w, *y, *bias; /* bias: of the channels of the result, or NULL */
	enum tensor_dtype dtype;
};

/*
 * Queues the convolution and returns 1; or returns 0 without an error if cuDNN is absent or has no engine that gives the
 * same bits in every call; or -errno with the error set. No operand is empty.
 */
int dnn_convolve(const struct cuda_call *c, enum dnn_kind kind, const struct cuda_conv *conv,
		 const struct dnn_operands *o);

#endif
