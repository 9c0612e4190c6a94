// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tensors as text without characters that JSON escapes. */
#include "core/trace.h"

bool trace_add_tensor(struct trace_span *span, const tensor *t)
{
	char text[SHAPE_TEXT];

	if (!t || t == tensor_none)
		return trace_add(span, "none");
	return trace_add(span, "%s%s", tensor_dtype_name(t->dtype),
			 format_sizes(t->sizes, t->ndim, text, sizeof(text)));
}

void trace_add_storage(struct trace_span *span, const tensor *t)
{
	if (trace_add(span, "\"tensor\":\"") && trace_add_tensor(span, t))
		trace_add(span, "\",\"storage_bytes\":%zu", t->storage->nbytes);
}
