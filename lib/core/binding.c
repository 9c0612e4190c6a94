// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Properties of tensors for bindings of other languages. */
#include "core/tensor_impl.h"

#include <tensor/binding.h>

TENSOR_EXPORT void *tensor_binding(const tensor *t)
{
	return tensor_given(t) ? atomic_load_explicit(&t->binding, memory_order_relaxed) : NULL;
}

TENSOR_EXPORT void tensor_set_binding(tensor *t, void *object)
{
	if (tensor_given(t) && t != tensor_none)
		atomic_store_explicit(&t->binding, object, memory_order_relaxed);
}

TENSOR_EXPORT int64_t tensor_use_count(const tensor *t)
{
	/* The lower half counts references, those of views included. */
	return tensor_given(t) ? (uint32_t)atomic_load_explicit(&t->refs, memory_order_relaxed) : 0;
}
