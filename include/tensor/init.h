/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Initial values of parameters. Each function fills t, a floating or complex tensor, in place and
 * without recording it, also if it requires a gradient, and returns it; NULL with the error set.
 * `generator` NULL is the process's default one. Distributions are those of torch.nn.init; the
 * numbers differ, because the generator does.
 *
 * fan_in and fan_out are the sizes 1 and 0 of t times the elements of the dimensions after them; t
 * has at least 2 dimensions where they are used.
 */
#ifndef TENSOR_INIT_H
#define TENSOR_INIT_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tensor_fan {
	TENSOR_FAN_IN = 0, /* keeps the variance in the forward pass */
	TENSOR_FAN_OUT,	   /* in the backward pass */
};

enum tensor_nonlinearity {
	TENSOR_NONLINEARITY_LEAKY_RELU = 0, /* its parameter is the slope below zero */
	TENSOR_NONLINEARITY_RELU,
	TENSOR_NONLINEARITY_LINEAR, /* also convolution and sigmoid */
	TENSOR_NONLINEARITY_TANH,
	TENSOR_NONLINEARITY_SELU,
};

/* The factor of the standard deviation for a nonlinearity, "gain" below. NaN with the error set for an
 * unknown one. */
double tensor_init_gain(enum tensor_nonlinearity nonlinearity, double parameter);
/* 0 or -errno. */
int tensor_init_fan(const tensor *t, int64_t *fan_in, int64_t *fan_out);

tensor *tensor_init_constant(tensor *t, double value);
tensor *tensor_init_zeros(tensor *t);
tensor *tensor_init_ones(tensor *t);
/* t [n, m]: ones on the diagonal. */
tensor *tensor_init_eye(tensor *t);
/* t [out, in, *], 1 to 3 dimensions after the channels: a convolution with it keeps its channels; out is
 * a multiple of groups. */
tensor *tensor_init_dirac(tensor *t, int64_t groups);
/* In [low, high). */
tensor *tensor_init_uniform(tensor *t, double low, double high, tensor_generator *generator);
tensor *tensor_init_normal(tensor *t, double mean, double std, tensor_generator *generator);
/* Normal, restricted to low..high. */
tensor *tensor_init_trunc_normal(tensor *t, double mean, double std, double low, double high,
				 tensor_generator *generator);
/* Standard deviation gain * sqrt(2 / (fan_in + fan_out)); uniform: in +-sqrt(3) times it.
 * X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010. */
tensor *tensor_init_xavier_uniform(tensor *t, double gain, tensor_generator *generator);
tensor *tensor_init_xavier_normal(tensor *t, double gain, tensor_generator *generator);
/* Standard deviation gain(nonlinearity, a) / sqrt(fan); uniform: in +-sqrt(3) times it.
 * K. He et al., arXiv:1502.01852. */
tensor *tensor_init_kaiming_uniform(tensor *t, double a, enum tensor_fan fan,
				    enum tensor_nonlinearity nonlinearity,
				    tensor_generator *generator);
tensor *tensor_init_kaiming_normal(tensor *t, double a, enum tensor_fan fan,
				   enum tensor_nonlinearity nonlinearity,
				   tensor_generator *generator);
/* gain times a matrix of size 0 by all others with orthonormal rows or columns, uniform over these.
 * Needs LAPACK: ENOSYS without it. A. M. Saxe et al., arXiv:1312.6120. */
tensor *tensor_init_orthogonal(tensor *t, double gain, tensor_generator *generator);

#ifdef __cplusplus
}
#endif
#endif
