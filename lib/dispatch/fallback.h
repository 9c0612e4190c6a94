/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Fallbacks for some of the operators. */
#ifndef TENSOR_FALLBACK_H
#define TENSOR_FALLBACK_H

#include "dispatch/dispatch.h"

/* As tensor_register_fallback(), for the operators that `chosen` accepts; NULL: all. 0 or -errno. */
int dispatch_register_fallback(enum tensor_key key, tensor_fallback fn, void *ctx,
			       bool (*chosen)(const struct tensor_op *op));
/* The same for the library's own functions that `missing` accepts, which it replaces: operators whose
 * kernels a backend has not. The fallback must not be registered before. */
int dispatch_replace_missing(enum tensor_key key, tensor_fallback fn, void *ctx,
			     bool (*missing)(const struct tensor_op *op));

/* As tensor_kernel_no_dtype(), of a backend whose operators have a fallback for other dtypes. */
int tensor_kernel_refuse_dtype(const char *name, enum tensor_dtype dtype, const char *backend)
	__attribute__((cold));
/*
 * Operators whose kernel has refused a dtype (tensor_kernel_refuse_dtype()) call the fallback of the key, while
 * is_allowed() returns true. The kernel has not begun to work then.
 */
void dispatch_set_refusal_fallback(bool (*is_allowed)(void));

#endif
