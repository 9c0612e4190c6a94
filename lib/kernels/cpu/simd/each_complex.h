/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Includes LOOPS_FILE for c64 and c128. The macros are those of each_int.h, without the limits. */
#define LOAD(x)	 (x)
#define STORE(x) (x)

#define T      float complex
#define C      float complex
#define D      TENSOR_C64
#define SUFFIX c64
#include LOOPS_FILE
#undef T
#undef C
#undef D
#undef SUFFIX

#define T      double complex
#define C      double complex
#define D      TENSOR_C128
#define SUFFIX c128
#include LOOPS_FILE
#undef T
#undef C
#undef D
#undef SUFFIX

#undef LOAD
#undef STORE
