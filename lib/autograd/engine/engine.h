/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* One backward: what to differentiate and where the gradients go. */
#ifndef TENSOR_AUTOGRAD_ENGINE_H
#define TENSOR_AUTOGRAD_ENGINE_H

#include "autograd/graph/node.h"

struct engine_call {
	tensor_list outputs, inputs;
	tensor *const *output_grads;
	tensor **grads; /* results, owned */
	bool keep;	/* saved tensors stay */
	bool record;	/* the backward is recorded */
};
/* 0, or -errno. */
int engine_run(const struct engine_call *call);

/* Calls fn when the innermost backward of this thread ends, also by a failure. False outside of one, or
 * without memory. */
bool engine_at_end(void (*fn)(void *ctx), void *ctx);

#endif
