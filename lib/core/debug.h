/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Reports of tensors that are used after their release; storage/debug.h reports misuse of their
 * memory.
 */
#ifndef TENSOR_CORE_DEBUG_H
#define TENSOR_CORE_DEBUG_H

#include "core/tensor_impl.h"

/* Reports that function was called with t, which was released before, and ends the program. */
void debug_dead(const tensor *t, const char *function) __attribute__((noreturn, cold));

#endif
