/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tensors in the events of TENSOR_TRACE. */
#ifndef TENSOR_CORE_TRACE_H
#define TENSOR_CORE_TRACE_H

#include "base/trace.h"
#include "core/tensor_impl.h"

/* Appends "f32[2, 3]", or "none"; false if it does not fit. */
bool trace_add_tensor(struct trace_span *span, const tensor *t);
void trace_add_storage(struct trace_span *span, const tensor *t);

/* Adds the tensor of a sharing event, which may be NULL. */
static inline void trace_tensor(struct trace_span *span, const tensor *t)
{
	if (unlikely(span->start >= 0) && t && trace_describes(span))
		trace_add_storage(span, t);
}

#endif
