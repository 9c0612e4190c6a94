// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Errors of kernels of all backends. */
#include "dispatch/kernel_error.h"

#include "base/thread.h"
#include "core/tensor_impl.h"

#include <string.h>

TENSOR_EXPORT int tensor_kernel_missing(const char *name, const char *why)
{
	tensor_fail(EOPNOTSUPP, "%s: %s", name, why);
	thread()->no_kernel = true;
	return -EOPNOTSUPP;
}

TENSOR_EXPORT int tensor_kernel_no_dtype(const char *name, enum tensor_dtype dtype,
					 const char *backend)
{
	tensor_fail(EOPNOTSUPP, "%s: no kernel for dtype %s on %s", name, tensor_dtype_name(dtype),
		    backend);
	thread()->no_kernel = strcmp(backend, "cpu") != 0;
	return -EOPNOTSUPP;
}
