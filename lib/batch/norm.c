// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Normalisations: a weight of each sample is applied after the operator. */
#include "batch/batch.h"

#include "family/norm.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/shape.h"
#include "family/view.h"

/* weight and bias, NULL or with the batch in front, are aligned with the last dimensions of t. */
static tensor *scale_and_shift(tensor *t, tensor *weight, tensor *bias)
{
	if (t && weight)
		t = tensor_mul(t, batch_pad(weight, t->ndim - weight->ndim));
	if (t && bias)
		t = tensor_add(t, batch_pad(bias, t->ndim - bias->ndim));
	return t;
}

static bool fits(const struct batch_call *c, int t, int64_t ndim)
{
	return !arg_tensor(c, t) || arg_ndim(c, t) == ndim;
}

/* The arguments a and b have the dtype of the input, argument 0. */
static bool one_dtype(const struct batch_call *c, int a, int b)
{
	enum tensor_dtype dtype = c->phys[0].t->dtype;

	return (!arg_tensor(c, a) || c->phys[a].t->dtype == dtype) &&
	       (!arg_tensor(c, b) || c->phys[b].t->dtype == dtype);
}

int batch_rule_native_layer_norm(struct batch_call *c)
{
	bool own = arg_batched(c, 2) || arg_batched(c, 3);
	int64_t last = c->args[1].ints.len;
	tensor *weight, *bias;

	if (last > arg_ndim(c, 0) || !fits(c, 2, last) || !fits(c, 3, last) ||
	    (own && !one_dtype(c, 2, 3)))
		return batch_rule_loop(c);
	c->phys[0].t = batch_full(c, 0);
	if (!c->phys[0].t)
		return batch_failed();
	if (!own)
		return batch_call_physical(c);
	weight = batch_full(c, 2);
	bias = batch_full(c, 3);
	c->phys[2] = c->phys[3] = (tensor_value){ 0 };
	return batch_call_physical(c) ?:
		       batch_return(c, 0, scale_and_shift(c->rets[0].t, weight, bias));
}

/* ---- backward of layer norm ---- */

/* The sum over the dimensions of a sample in front of the normalised ones. */
static tensor *sum_leading(tensor *t, int64_t last)
{
	int64_t dims[TENSOR_MAX_DIMS];
	int n = 0;

	if (!t)
		return NULL;
	for (int i = 1; i < t->ndim - last; i++)
		dims[n++] = i;
	return n ? tensor_sum_dim(t, (tensor_ints){ dims, n }, false) : t;
}

/* Arguments: grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask. */
static int layer_norm_input(struct batch_call *c)
{
	tensor_value args[8], rets[3] = { 0 };

	memcpy(args, c->phys, sizeof(args));
	if (arg_batched(c, 5)) {
		args[0].t = scale_and_shift(args[0].t, c->phys[5].t, NULL);
		args[5] = (tensor_value){ 0 };
	}
	args[6] = (tensor_value){ 0 };
	args[7] = (tensor_value){ .kind = TENSOR_VALUE_BOOLS, .bools = 1 };
	if (!args[0].t || tensor_op_call(c->op, args, 8, rets, 3) < 0)
		return batch_failed();
	return batch_return(c, 0, rets[0].t);
}

int batch_rule_native_layer_norm_backward(struct batch_call *c)
{
	uint64_t mask = c->args[7].bools;
	int64_t last = c->args[2].ints.len;
	tensor *normal;
	int err = 0;

	if (last > arg_ndim(c, 1) || !fits(c, 5, last))
		return batch_rule_loop(c);
	for (int i = 0; i < 5; i++) {
		if (!arg_tensor(c, i))
			continue;
		c->phys[i].t = batch_full(c, i);
		if (!c->phys[i].t)
			return batch_failed();
	}
	if (mask & 1)
		err = layer_norm_input(c);
	if (!err && mask & 2) {
		normal = tensor_mul(tensor_sub(c->phys[1].t, c->phys[3].t), c->phys[4].t);
		err = batch_return(c, 1, sum_leading(tensor_mul(c->phys[0].t, normal), last));
	}
	if (!err && mask & 4)
		err = batch_return(c, 2, sum_leading(c->phys[0].t, last));
	return err;
}

/* ---- group norm: images of all samples are one batch ---- */

/* [batch, channels] to [batch, channels, 1, ...], for a t of samples [n, channels, ...] */
static tensor *channels_of(tensor *weight, const tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!weight || !t)
		return NULL;
	for (int i = 0; i < t->ndim; i++)
		sizes[i] = 1;
	sizes[0] = weight->sizes[0];
	sizes[2] = weight->sizes[1];
	return tensor_reshape(weight, (tensor_ints){ sizes, t->ndim });
}

int batch_rule_native_group_norm(struct batch_call *c)
{
	bool own = arg_batched(c, 1) || arg_batched(c, 2);
	tensor *weight = own ? batch_full(c, 1) : NULL, *bias = own ? batch_full(c, 2) : NULL, *t;
	int err;

	if (arg_ndim(c, 0) < 2 || !fits(c, 1, 1) || !fits(c, 2, 1) || (own && !one_dtype(c, 1, 2)))
		return batch_rule_loop(c);
	c->phys[0].t = batch_fold(batch_full(c, 0));
	if (!c->phys[0].t)
		return batch_failed();
	if (own)
		c->phys[1] = c->phys[2] = (tensor_value){ 0 };
	c->phys[3].i *= c->size;
	err = batch_call_physical(c);
	for (int i = 0; i < 3 && !err; i++)
		err = batch_return(c, i, batch_unfold(c, c->rets[i].t));
	if (err || !own)
		return err;
	t = c->rets[0].t;
	if (weight)
		t = tensor_mul(t, channels_of(weight, t));
	if (bias)
		t = tensor_add(t, channels_of(bias, t));
	return batch_return(c, 0, t);
}
