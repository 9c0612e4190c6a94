/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Generators, seen from inside: taking positions. */
#ifndef TENSOR_GENERATOR_H
#define TENSOR_GENERATOR_H

#include "core/tensor_impl.h"

/* Takes n blocks: the state with which they begin. NULL is the default generator. */
struct tensor_generator_state generator_take(tensor_generator *g, uint64_t n);

#endif
