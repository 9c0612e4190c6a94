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
	/* Nodes with this sequence number or a lower one existed before the inputs, so they lead to none and their
	 * edges are not followed. 0: all are. */
	uint64_t since;
};
/* tensor_backward_ex() with a checked call: results belong to the open scope. 0, or -errno. */
int engine_backward(const struct engine_call *call);
/* The same without checks of the tensors; results are owned. 0, or -errno. */
int engine_run(const struct engine_call *call);

/* Calls fn when the innermost backward of this thread ends, also by a failure. False outside of one, or
 * without memory. */
bool engine_at_end(void (*fn)(void *ctx), void *ctx);

#endif
