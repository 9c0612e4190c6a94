/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Plans of cuDNN for convolutions: the operation, the engine that computes it, and its memory. */
#ifndef TENSOR_CUDA_DNN_PLAN_H
#define TENSOR_CUDA_DNN_PLAN_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/dnn/cudnn.h"

/* Which of the tensors is the result: y, x or w. */
enum dnn_kind { DNN_FORWARD, DNN_INPUT, DNN_WEIGHT };

/*
 * Tensors are contiguous: [batch, channels, ...], w [out, in / groups, ...]. All bytes, those between members too, are
 * compared: set it to zeros first.
 */
struct dnn_conv {
	int64_t x[5], w[5], y[5];
	int64_t stride[3], padding[3], dilation[3];
	int device;
	enum dnn_kind kind;
	int type;      /* cudnnDataType_t of the tensors */
	int spatial;   /* 2 or 3 */
	int alignment; /* of all tensors, in bytes */
	bool biased;   /* DNN_FORWARD: adds an element to each channel */
};

/* Identifiers of the tensors in the operation graph. */
enum { DNN_X = 1, DNN_W, DNN_Y, DNN_BIAS, DNN_VIRTUAL };

static inline bool dnn_is_out_of_memory(int status)
{
	return status == CUDNN_HOST_ALLOCATION_FAILED || status == CUDNN_DEVICE_ALLOCATION_FAILED;
}

struct dnn_plan {
	void *plan, *config;
	int64_t workspace; /* bytes */
};

/*
 * Sets *plan to that of the engine which cuDNN's heuristics prefer among those that the library can use: they give the
 * same bits in every call. Returns a status of cuDNN; CUDNN_NOT_SUPPORTED if there is no such engine.
 */
int dnn_make_plan(const struct cudnn *dnn, void *handle, const struct dnn_conv *v,
		  struct dnn_plan *plan);
void dnn_free_plan(const struct cudnn *dnn, struct dnn_plan *plan);
/* Queues the work. tensors: x, w, y and the bias; workspace: NULL if the plan needs none. */
int dnn_execute(const struct cudnn *dnn, void *handle, const struct dnn_plan *plan,
		const struct dnn_conv *v, void *const *tensors, void *workspace);

#endif
