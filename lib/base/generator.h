/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Random number generators: reserving positions of the counter. */
#ifndef TENSOR_GENERATOR_H
#define TENSOR_GENERATOR_H

#include "base/compiler.h"

/* Reserves n blocks and returns the state at the first one. g == NULL: the default generator. */
TENSOR_EXPORT struct tensor_generator_state generator_take(tensor_generator *g, uint64_t n);

#endif
