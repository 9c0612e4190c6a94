/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions for the generated code that records calls. */
#ifndef TENSOR_AUTOGRAD_RECORD_H
#define TENSOR_AUTOGRAD_RECORD_H

#include "autograd/graph/inplace.h"
#include "autograd/graph/saved.h"

/* Whether t makes the call one to record. Refreshes the node of a stale view; sets *err if that fails. */
static inline bool track(const struct tensor_thread *th, tensor *t, int *err)
{
	if (!th->modes.grad_enabled || !t || !needs_grad(t))
		return false;
	if (unlikely(view_stale(t)))
		*err |= view_refresh(t);
	return true;
}

static inline bool track_list(const struct tensor_thread *th, tensor_list list, int *err)
{
	bool need = false;

	for (int64_t i = 0; i < list.len; i++)
		need |= track(th, list.data[i], err);
	return need;
}

#endif
