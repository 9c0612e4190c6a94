// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* backward as callers see it: checks what they pass, and says where the gradients go. */
#include "autograd/graph/autograd.h"

static int check_tracked(const char *what, tensor_list list)
{
	for (int64_t i = 0; i < list.len; i++) {
		tensor *t = list.data[i];

		if (!tensor_given(t) || t == tensor_none)
			return null_argument_code("backward");
		if (!needs_grad(t))
			return tensor_fail(EINVAL, "backward: %s %lld does not require a gradient",
					   what, (long long)i);
		if (view_stale(t) && view_refresh(t) < 0)
			return -thread()->error.code;
	}
	return 0;
}

TENSOR_EXPORT int tensor_backward_ex(tensor_list outputs, tensor *const *output_grads,
				     tensor_list inputs, tensor **grads, unsigned flags)
{
	struct engine_call call = {
		.outputs = outputs,
		.inputs = inputs,
		.output_grads = output_grads,
		.grads = grads,
		.record = flags & TENSOR_CREATE_GRAPH,
		.keep = flags & (TENSOR_RETAIN_GRAPH | TENSOR_CREATE_GRAPH),
	};
	int err;

	if (flags & ~(TENSOR_RETAIN_GRAPH | TENSOR_CREATE_GRAPH))
		return tensor_fail(EINVAL, "backward: unknown flags %#x", flags);
	if (outputs.len < 1 || outputs.len > INT32_MAX || inputs.len > INT32_MAX)
		return tensor_fail(EINVAL, "backward: %lld outputs, %lld inputs",
				   (long long)outputs.len, (long long)inputs.len);
	if (inputs.len > 0 && !grads)
		return tensor_fail(EINVAL, "backward: grads is NULL, but there are inputs");
	for (int64_t i = 0; i < inputs.len; i++)
		grads[i] = NULL;
	err = check_tracked("output", outputs);
	if (!err)
		err = check_tracked("input", inputs);
	if (!err)
		err = engine_run(&call);
	if (!err)
		return scope_own_list(grads, inputs.len);
	for (int64_t i = 0; i < inputs.len; i++) {
		tensor_put(grads[i]);
		grads[i] = NULL;
	}
	return err;
}

TENSOR_EXPORT int tensor_backward(tensor *output)
{
	return tensor_backward_ex((tensor_list){ &output, 1 }, NULL, (tensor_list){ NULL, 0 }, NULL,
				  0);
}
