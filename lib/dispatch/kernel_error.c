// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Errors of kernels of all backends. */
#include "dispatch/kernel_error.h"

#include "core/tensor_impl.h"
#include "dispatch/fallback.h"

TENSOR_EXPORT int tensor_kernel_no_dtype(const char *name, enum tensor_dtype dtype,
					 const char *backend)
{
	return tensor_fail(EOPNOTSUPP, "%s: no kernel for dtype %s on %s", name,
			   tensor_dtype_name(dtype), backend);
}

/* Whether this thread's last error is that a device's kernel has not a dtype. */
static __thread bool refused;
static bool (*_Atomic allows)(void);

TENSOR_EXPORT int tensor_kernel_refuse_dtype(const char *name, enum tensor_dtype dtype,
					     const char *backend)
{
	refused = true;
	return tensor_kernel_no_dtype(name, dtype, backend);
}

void dispatch_set_refusal_fallback(bool (*is_allowed)(void))
{
	atomic_store(&allows, is_allowed);
}

bool dispatch_takes_refusal(void)
{
	bool (*is_allowed)(void) = atomic_load(&allows);
	const bool taken = refused && thread()->error.code == EOPNOTSUPP && is_allowed &&
			   is_allowed();

	refused = false;
	return taken;
}
