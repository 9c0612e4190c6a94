// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Modes of the calling thread. Grad mode: whether calls are recorded. Inference mode: nothing is recorded, functions of
 * autograd are not even called, and new tensors are marked, because views without history must not be changed later.
 * Anomaly mode: see autograd/engine/anomaly.h.
 */
#include "core/tensor_impl.h"

#include <tensor/autograd.h>

TENSOR_EXPORT bool tensor_set_grad_enabled(bool enabled)
{
	struct tensor_thread *th = thread();
	bool before = th->modes.grad_enabled;

	th->modes.grad_enabled = enabled;
	return before;
}

TENSOR_EXPORT bool tensor_is_grad_enabled(void)
{
	return thread()->modes.grad_enabled;
}

TENSOR_EXPORT bool tensor_is_inference_mode_enabled(void)
{
	return thread()->modes.inference;
}

TENSOR_EXPORT bool tensor_is_anomaly_mode_enabled(void)
{
	return thread()->modes.anomaly;
}

TENSOR_EXPORT bool tensor_is_inference(const tensor *t)
{
	return tensor_given(t) && t->inference;
}

static struct tensor_grad_guard now(const struct tensor_thread *th)
{
	return (struct tensor_grad_guard){ .grad = th->modes.grad_enabled,
					   .inference = th->modes.inference,
					   .anomaly = th->modes.anomaly,
					   .excluded = th->modes.exclude & AUTOGRAD_BIT };
}

TENSOR_EXPORT struct tensor_grad_guard tensor_grad_enter(bool enabled)
{
	struct tensor_thread *th = thread();
	struct tensor_grad_guard guard = now(th);

	th->modes.grad_enabled = enabled;
	return guard;
}

TENSOR_EXPORT struct tensor_grad_guard tensor_inference_enter(bool enabled)
{
	struct tensor_thread *th = thread();
	struct tensor_grad_guard guard = now(th);

	th->modes.grad_enabled = !enabled;
	th->modes.inference = enabled;
	th->modes.exclude = enabled ? th->modes.exclude | AUTOGRAD_BIT :
				      th->modes.exclude & ~AUTOGRAD_BIT;
	return guard;
}

TENSOR_EXPORT struct tensor_grad_guard tensor_anomaly_enter(bool enabled)
{
	struct tensor_thread *th = thread();
	struct tensor_grad_guard guard = now(th);

	th->modes.anomaly = enabled;
	return guard;
}

TENSOR_EXPORT void tensor_grad_leave(struct tensor_grad_guard *guard)
{
	struct tensor_thread *th = thread();

	th->modes.grad_enabled = guard->grad;
	th->modes.inference = guard->inference;
	th->modes.anomaly = guard->anomaly;
	th->modes.exclude = guard->excluded ? th->modes.exclude | AUTOGRAD_BIT :
					      th->modes.exclude & ~AUTOGRAD_BIT;
}
