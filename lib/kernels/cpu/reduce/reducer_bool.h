/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Includes reducer_loops.h for bool elements. */
#define T	uint8_t
#define D	TENSOR_BOOL
#define SUFFIX	b8
#define LOAD(x) (x)
#include "kernels/cpu/reduce/reducer_loops.h"
#undef T
#undef D
#undef SUFFIX
#undef LOAD
