/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Events of operators for trace_sinks. */
#ifndef TENSOR_DISPATCH_TRACE_H
#define TENSOR_DISPATCH_TRACE_H

#include <stdbool.h>

/*
 * Gives all operators the function for the profile key, or takes it away. Calls of other threads that have begun go on:
 * they are recorded by sinks that are still on. 0, or -ENOMEM with the error set.
 */
int trace_operators(bool on);

#endif
