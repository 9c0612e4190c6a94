// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Tensors made by plugins (plugin_tensor.h) and by backends outside of the library. */
#include "core/plugin_tensor.h"

TENSOR_EXPORT tensor *tensor_plugin_new(enum tensor_dtype dtype, const int64_t *sizes, int ndim)
{
	return tensor_new(TENSOR_DEVICE_CPU, dtype, sizes, ndim);
}

TENSOR_EXPORT tensor *tensor_plugin_new_unstrided(tensor_options options, const int64_t *sizes,
						  int ndim, size_t nbytes,
						  struct tensor_extension *ext)
{
	return tensor_new_unstrided(options, sizes, ndim, nbytes, ext);
}

TENSOR_EXPORT void tensor_plugin_put(tensor *t)
{
	tensor_put(t);
}

/* For functions of backends outside of the library (include/tensor/dispatch.h). */
TENSOR_EXPORT tensor *tensor_empty_on(tensor_device device, tensor_ints size,
				      enum tensor_dtype dtype)
{
	return scope_own(thread(), tensor_new_opt(TENSOR_OPTIONS(.dtype = dtype, .device = device),
						  size.data, (int)size.len));
}
