// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* TENSOR_GRADS_BATCHED: one backward for a batch of gradients of the outputs, by tensor_vmap(). */
#include "autograd/engine/batched.h"

#include "core/tensor_impl.h"

#include "family/factory.h"

#include <tensor/vmap.h>

#include <stdlib.h>

struct batched_backward {
	backward_fn backward;
	tensor_list outputs, inputs;
	unsigned flags;
	bool *found; /* whether the outputs depend on input i */
};

static tensor *zeros_like(tensor *t)
{
	return tensor_zeros((tensor_ints){ t->sizes, t->ndim },
			    TENSOR_OPTIONS(.dtype = t->dtype, .device = t->device));
}

/* One sample: the gradients of the inputs from those of the outputs. */
static int backward_sample(tensor *const *output_grads, int n, tensor **grads, int ngrads,
			   void *ctx)
{
	struct batched_backward *b = ctx;
	int err;

	(void)n;
	err = b->backward(b->outputs, output_grads, b->inputs, grads, b->flags);
	for (int i = 0; i < ngrads && !err; i++) {
		b->found[i] = grads[i];
		if (!grads[i])
			grads[i] = zeros_like(b->inputs.data[i]);
		if (!grads[i])
			err = -thread()->error.code;
	}
	return err;
}

static int check_batched(tensor_list outputs, tensor *const *output_grads, tensor_list inputs,
			 tensor **grads)
{
	if (inputs.len < 1)
		return tensor_fail(
			EINVAL, "backward: batches of gradients are returned for inputs, and are "
				"not accumulated in leaves");
	if (inputs.len > INT32_MAX || outputs.len < 1 || outputs.len > INT32_MAX || !output_grads ||
	    !grads || !outputs.data)
		return tensor_fail(
			EINVAL,
			"backward: batched gradients need outputs, their gradients and grads");
	for (int64_t i = 0; i < outputs.len; i++)
		if (!tensor_given(output_grads[i]) || output_grads[i] == tensor_none)
			return tensor_fail(
				EINVAL,
				"backward: the batch of gradients of output %lld is missing",
				(long long)i);
	return 0;
}

int backward_batched(backward_fn backward, tensor_list outputs, tensor *const *output_grads,
		     tensor_list inputs, tensor **grads, unsigned flags)
{
	struct batched_backward b = { backward, outputs, inputs, flags, NULL };
	int err = check_batched(outputs, output_grads, inputs, grads);

	if (err)
		return err;
	b.found = calloc(inputs.len, sizeof(*b.found));
	if (!b.found)
		return tensor_fail(ENOMEM, "backward: no memory");
	err = tensor_vmap(backward_sample, &b, (tensor_list){ output_grads, outputs.len }, NULL,
			  grads, (int)inputs.len, NULL, NULL);
	for (int64_t i = 0; i < inputs.len && !err; i++) {
		if (b.found[i])
			continue;
		if (!thread()->scope_depth)
			tensor_put(grads[i]);
		grads[i] = NULL;
	}
	free(b.found);
	return err;
}
