// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Allocation of autograd's state of a thread; engine/task.c frees it at the thread's exit. */
#include "autograd/graph/state.h"

#include "base/error.h"

#include <stdlib.h>

struct autograd_thread *autograd_thread_init(struct tensor_thread *th)
{
	th->autograd = calloc(1, sizeof(struct autograd_thread));
	if (!th->autograd)
		tensor_fail(ENOMEM, "autograd: no memory for the thread's state");
	return th->autograd;
}
