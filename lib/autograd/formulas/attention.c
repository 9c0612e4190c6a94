// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The gradients of attention: one kernel computes those of query, key and value. A gradient that is differentiated again,
 * that of the mask, and one of logsumexp come from the composition.
 */
#include "autograd/formulas/formulas.h"

#include "ops/nn/attention.h"

#include "family/attention.h"

struct composition {
	tensor *mask; /* NULL, or a mask that has no gradient */
	bool causal, sums;
	double scale;
};

static tensor *given(tensor *t)
{
	return t == tensor_none ? NULL : t;
}

/* in: query, key, value and a mask that is not in ctx. */
static int without_mask(tensor *const *in, tensor **out, const void *ctx)
{
	const struct composition *c = ctx;

	out[1] = tensor_none;
	return attention_composed(in[0], in[1], in[2], c->mask, c->causal, c->scale, c->sums, out);
}

static int with_mask(tensor *const *in, tensor **out, const void *ctx)
{
	const struct composition *c = ctx;

	out[1] = tensor_none;
	return attention_composed(in[0], in[1], in[2], in[3], c->causal, c->scale, c->sums, out);
}

tensor *attention_mask_backward(tensor *const *grads, tensor *attn_mask, tensor_list inputs,
				bool is_causal, double scale)
{
	const struct composition c = { NULL, is_causal, given(grads[1]), scale };

	return formula_vjp(with_mask, &c,
			   TENSOR_LIST(inputs.data[0], inputs.data[1], inputs.data[2], attn_mask),
			   grads, 2, 3);
}

static int composed_backward(tensor **out, tensor *const *grads, tensor *mask, tensor_list inputs,
			     bool is_causal, double scale)
{
	struct composition c = { mask, is_causal, given(grads[1]), scale };
	tensor *all[4];
	int err;

	/* A mask with a gradient has to be an argument of the composition. */
	if (!mask || mask->dtype == TENSOR_BOOL)
		return formula_vjp_all(without_mask, &c, inputs, grads, 2, out);
	err = formula_vjp_all(with_mask, &c,
			      TENSOR_LIST(inputs.data[0], inputs.data[1], inputs.data[2], mask),
			      grads, 2, all);
	if (!err)
		memcpy(out, all, 3 * sizeof(*out));
	return err;
}

int attention_backward(tensor **out, tensor *const *grads, tensor *attn_mask, tensor_list inputs,
		       tensor *output, tensor *logsumexp, bool is_causal, double scale)
{
	tensor *grad = given(grads[0]);

	if (!grad || given(grads[1]) || formula_is_differentiated())
		return composed_backward(out, grads, given(attn_mask), inputs, is_causal, scale);
	return tensor__attention_backward(grad, inputs.data[0], inputs.data[1], inputs.data[2],
					  attn_mask, output, logsumexp, is_causal, scale, &out[0],
					  &out[1], &out[2]);
}
