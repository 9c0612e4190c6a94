/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Includes put_loops.h for bool elements, which are 0 or 1 in COMBINE(y, x). */
#define T	 uint8_t
#define C	 int
#define SUFFIX	 b8
#define LOAD(x)	 ((x) != 0)
#define STORE(x) ((uint8_t)((x) != 0))
#include "kernels/cpu/index/put_loops.h"
#undef T
#undef C
#undef SUFFIX
#undef LOAD
#undef STORE
