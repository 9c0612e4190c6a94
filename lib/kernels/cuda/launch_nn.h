/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels of normalization, losses and optimizers. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_NN_H
#define TENSOR_CUDA_LAUNCH_NN_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layer_norm: contiguous rows of n elements; weight and bias may be NULL ---- */

/* x, grad and out are f32, f64, f16 or bf16; all else is f32 or f64. */

struct cuda_layer {
	int64_t rows, n;
	const void *x, *grad, *weight, *bias;
	void *out, *mean, *rstd; /* out: the gradient of x in the backward */
	double eps;
};
int cuda_launch_layer_norm(const struct cuda_layer *l, int dtype, cudaStream_t stream);
/* The gradient of x, to out. */
int cuda_launch_layer_norm_dx(const struct cuda_layer *l, int dtype, cudaStream_t stream);
/* Those of weight and bias, either may be NULL. `partial` has 2 * chunks * n elements. */
int cuda_launch_layer_norm_dweight(const struct cuda_layer *l, void *dweight, void *dbias,
				   void *partial, int chunks, int dtype, cudaStream_t stream);

/* ---- batch_norm and group_norm ---- */

/*
 * x and grad: [batch, channels, inner], f32, f64, f16 or bf16; all else has an element for each
 * channel, of f32 or f64. A group of group_norm is one channel for its statistics (batch 1), and
 * `group` channels of it have the same statistics for all else; for batch_norm `group` is 1.
 */
struct cuda_channels {
	int64_t batch, channels, inner, group;
	bool wide; /* positions need 64 bits */
	const void *x, *grad, *mean;
	int dtype; /* of x and grad */
};
#define CUDA_CHANNEL_PARTIAL 24 /* bytes of a partial result of a channel */
/* Blocks for each channel: partial results for launches that take `split`. */
int cuda_channel_split(const struct cuda_channels *c);
/* Partial moments of each channel. */
int cuda_launch_channel_stats(const struct cuda_channels *c, void *partial, int split,
			      cudaStream_t stream);
/* Mean, and variance or, with rstd, 1 / sqrt(variance + eps). */
int cuda_launch_channel_stats_end(const struct cuda_channels *c, void *mean, void *var, bool rstd,
				  double eps, const void *partial, int split, cudaStream_t stream);
/* Partial sums of grad and of grad (x - mean). */
int cuda_launch_channel_sums(const struct cuda_channels *c, void *partial, int split,
			     cudaStream_t stream);

/* Factors of a channel: out = (x - mean) scale + plus, or with `grad`
 * dx = (grad weight - plus - (x - mean) centred) scale. */
#define CUDA_CHANNEL_FACTORS 5
struct cuda_channel_factors {
	const void *mean, *rstd, *weight,
		*bias;	/* of channels / group; the last two of groups * group */
	int64_t groups; /* weights repeat after that many groups */
	bool train;
	void *dweight, *dbias, *row_sums;
};
int cuda_launch_channel_affine(const struct cuda_channels *c, const struct cuda_channel_factors *f,
			       void *factors, void *out, cudaStream_t stream);
/* Gradients of batch_norm, from the sums: dweight and dbias may be NULL; factors: NULL without dx. */
int cuda_launch_batch_sums_end(const struct cuda_channels *c, const struct cuda_channel_factors *f,
			       const void *partial, int split, void *factors, cudaStream_t stream);
/* Those of group_norm. row_sums has two f64 for each group. */
int cuda_launch_group_sums_end(const struct cuda_channels *c, const struct cuda_channel_factors *f,
			       const void *partial, int split, void *factors, cudaStream_t stream);
/* read_x: also subtracts what depends on x. */
int cuda_launch_channel_dx(const struct cuda_channels *c, const void *factors, bool read_x,
			   void *dx, cudaStream_t stream);

/* ---- nll_loss; strides are elements ---- */

struct cuda_nll {
	const int64_t *target;
	const void *weight; /* NULL: 1 */
	int64_t rows, classes, ignore_index, target_stride, weight_stride;
	int64_t row_stride, class_stride, out_stride;
	bool mean;
	bool each; /* a loss for each row */
	struct cuda_report bad;
};
/* `sums` (f64) has two elements for each of `blocks`. */
int cuda_launch_nll(const struct cuda_nll *l, void *out, void *total, const void *self,
		    double *sums, int blocks, int dtype, cudaStream_t stream);
/* out is zero; grad has stride out_stride, total is one element. */
int cuda_launch_nll_backward(const struct cuda_nll *l, void *out, const void *grad,
			     const void *total, int dtype, cudaStream_t stream);

/* ---- optimizers: kernels/abi/optimizer.h describes the methods and states ---- */

#define CUDA_STEP_ITEMS	 24
#define CUDA_STEP_STATES 3

enum cuda_step_method { CUDA_ADAM, CUDA_SGD, CUDA_ADAGRAD, CUDA_RMSPROP };

struct cuda_step_item {
	int64_t n;
	void *param, *grad, *state[CUDA_STEP_STATES];
	/* Adam: lr / (1 - beta1^step), 1 / sqrt(1 - beta2^step); Adagrad: its rate. */
	double size, root;
};

/* One launch: items of one dtype. */
struct cuda_step {
	enum cuda_step_method method;
	double lr, weight_decay, eps, scale, beta1, beta2, momentum, dampening, alpha;
	bool maximize, nesterov, first, decoupled;
	int n;
	const double *rates; /* on the device, if not NULL: size and root of each item */
	struct cuda_step_item item[CUDA_STEP_ITEMS];
};
int cuda_launch_step(const struct cuda_step *s, int dtype, cudaStream_t stream);

/* ---- tril and triu: rows of operand 0 from rows of operand 1; strides are elements ---- */

struct cuda_triangle {
	struct cuda_dims rows; /* all dimensions but the last, of which the first is that of rows */
	int64_t height, width, k, step[2];
	bool upper;
	void *data[2];
};
int cuda_launch_triangle(const struct cuda_triangle *t, int itemsize, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
