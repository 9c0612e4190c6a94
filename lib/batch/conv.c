// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions. The same weight for all samples: their images are one batch. Another weight for each sample: the
 * channels of the samples are groups of one convolution.
 */
#include "batch/batch.h"

#include "family/conv.h"
#include "family/pointwise.h"
#include "family/shape.h"
#include "family/view.h"

/* Positions of the arguments of convolution; the backward has grad_output in front. */
struct conv_args {
	tensor_ints stride, padding, dilation, output_padding;
	bool transposed;
	int64_t groups;
};

static struct conv_args conv_args(const struct batch_call *c, int first)
{
	const tensor_value *v = c->args + first;

	return (struct conv_args){ v[0].ints, v[1].ints, v[2].ints, v[4].ints, v[3].b, v[5].i };
}

/* [batch, n, channels, ...] to [n, batch * channels, ...] */
static tensor *to_channels(const struct batch_call *c, int i)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *t = batch_full(c, i);

	if (!t)
		return NULL;
	sizes[0] = t->sizes[1];
	sizes[1] = t->sizes[0] * t->sizes[2];
	for (int k = 3; k < t->ndim; k++)
		sizes[k - 1] = t->sizes[k];
	return tensor_reshape(tensor_transpose(t, 0, 1), (tensor_ints){ sizes, t->ndim - 1 });
}

/* The inverse of to_channels(). */
static tensor *from_channels(const struct batch_call *c, tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!t)
		return NULL;
	sizes[0] = t->sizes[0];
	sizes[1] = c->size;
	sizes[2] = t->sizes[1] / c->size;
	for (int k = 2; k < t->ndim; k++)
		sizes[k + 1] = t->sizes[k];
	return tensor_transpose(tensor_reshape(t, (tensor_ints){ sizes, t->ndim + 1 }), 0, 1);
}

/* bias [batch, o] added to t [batch, n, o, ...] */
static tensor *add_bias(tensor *t, tensor *bias)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!t || !bias)
		return t;
	for (int k = 0; k < t->ndim; k++)
		sizes[k] = 1;
	sizes[0] = bias->sizes[0];
	sizes[2] = bias->sizes[1];
	return tensor_add(t, tensor_reshape(bias, (tensor_ints){ sizes, t->ndim }));
}

static tensor *one_weight(struct batch_call *c, const struct conv_args *a)
{
	bool own_bias = arg_batched(c, 2);
	tensor *t = batch_fold(batch_full(c, 0));

	t = tensor_convolution(t, c->phys[1].t,
			       own_bias ? tensor_none : or_none(arg_physical(c, 2)), a->stride,
			       a->padding, a->dilation, a->transposed, a->output_padding,
			       a->groups);
	return add_bias(batch_unfold(c, t), own_bias ? c->phys[2].t : NULL);
}

static tensor *own_weights(struct batch_call *c, const struct conv_args *a)
{
	tensor *bias = batch_full(c, 2), *t;

	t = tensor_convolution(to_channels(c, 0), batch_fold(batch_full(c, 1)), tensor_none,
			       a->stride, a->padding, a->dilation, a->transposed, a->output_padding,
			       a->groups * c->size);
	return add_bias(from_channels(c, t), bias);
}

static bool has_images(const struct batch_call *c, int input, int weight)
{
	return arg_ndim(c, input) >= 3 && arg_ndim(c, input) == arg_ndim(c, weight) &&
	       arg_ndim(c, input) < TENSOR_MAX_DIMS;
}

int batch_rule_convolution(struct batch_call *c)
{
	struct conv_args a = conv_args(c, 3);

	if (!has_images(c, 0, 1) || (arg_tensor(c, 2) && arg_ndim(c, 2) != 1))
		return batch_rule_loop(c);
	return batch_return(c, 0, arg_batched(c, 1) ? own_weights(c, &a) : one_weight(c, &a));
}

/* ---- backward ---- */

static int input_gradient(struct batch_call *c)
{
	int err;

	for (int i = 0; i < 2; i++) {
		c->phys[i].t = batch_fold(batch_full(c, i));
		if (!c->phys[i].t)
			return batch_failed();
	}
	err = batch_call_physical(c);
	if (err || c->rets[0].kind != TENSOR_VALUE_TENSOR)
		return err;
	return batch_return(c, 0, batch_unfold(c, c->rets[0].t));
}

/* The bias has as many elements as the physical output has channels. */
static void all_bias_sizes(struct batch_call *c)
{
	tensor_ints sizes = c->args[3].ints;
	int64_t *to = sizes.len == 1 ? batch_list(c) : NULL;

	if (!to)
		return;
	to[0] = sizes.data[0] * c->size;
	c->phys[3].ints.data = to;
}

static int own_gradients(struct batch_call *c)
{
	int err;

	c->phys[0].t = to_channels(c, 0);
	c->phys[1].t = to_channels(c, 1);
	c->phys[2].t = batch_fold(batch_full(c, 2));
	if (!c->phys[0].t || !c->phys[1].t || !c->phys[2].t)
		return batch_failed();
	all_bias_sizes(c);
	c->phys[9].i *= c->size;
	err = batch_call_physical(c);
	if (!err && c->rets[0].kind == TENSOR_VALUE_TENSOR)
		err = batch_return(c, 0, from_channels(c, c->rets[0].t));
	for (int i = 1; i < 3 && !err; i++)
		if (c->rets[i].kind == TENSOR_VALUE_TENSOR)
			err = batch_return(c, i, batch_unfold(c, c->rets[i].t));
	return err;
}

int batch_rule_convolution_backward(struct batch_call *c)
{
	if (!has_images(c, 1, 2) || arg_ndim(c, 0) != arg_ndim(c, 1))
		return batch_rule_loop(c);
	if (!arg_batched(c, 2) && !(c->args[10].bools & 6))
		return input_gradient(c);
	return own_gradients(c);
}
