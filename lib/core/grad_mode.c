// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Grad mode: whether the calling thread records its calls. */
#include "base/thread.h"

#include <tensor/autograd.h>

TENSOR_EXPORT bool tensor_set_grad_enabled(bool enabled)
{
	struct tensor_thread *th = thread();
	bool before = th->grad_enabled;

	th->grad_enabled = enabled;
	return before;
}

TENSOR_EXPORT bool tensor_is_grad_enabled(void)
{
	return thread()->grad_enabled;
}

TENSOR_EXPORT struct tensor_grad_guard tensor_grad_enter(bool enabled)
{
	return (struct tensor_grad_guard){ .before = tensor_set_grad_enabled(enabled) };
}

TENSOR_EXPORT void tensor_grad_leave(struct tensor_grad_guard *guard)
{
	thread()->grad_enabled = guard->before;
}
