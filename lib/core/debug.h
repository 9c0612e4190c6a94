/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Uses of tensors that were released. See storage/debug.h for their memory. */
#ifndef TENSOR_CORE_DEBUG_H
#define TENSOR_CORE_DEBUG_H

#include "core/tensor_impl.h"

/* Reports that t was released before `function` got it, and ends the program. */
void debug_dead(const tensor *t, const char *function) __attribute__((noreturn, cold));

#endif
