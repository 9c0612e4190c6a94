/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Includes reducer_loops.h for bool elements. All bytes but 0 are true, as in NumPy. */
#define T	uint8_t
#define D	TENSOR_BOOL
#define SUFFIX	b8
#define LOAD(x) ((x) != 0)
#undef VLOAD
#define VLOAD(V, e) __builtin_convertvector((__typeof__(e))((e) != 0) & 1, V)
#include "kernels/cpu/reduce/reducer_loops.h"
#undef T
#undef D
#undef SUFFIX
#undef LOAD
#undef VLOAD
#define VLOAD(V, e) __builtin_convertvector(e, V)
