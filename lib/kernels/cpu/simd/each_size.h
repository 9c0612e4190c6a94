/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes LOOPS_FILE once for each size of an element in bytes, for loops that copy elements:
 * T is a type of that size, SUFFIX the size as the end of function names.
 */
#define T      uint8_t
#define SUFFIX 1
#include LOOPS_FILE
#undef T
#undef SUFFIX

#define T      uint16_t
#define SUFFIX 2
#include LOOPS_FILE
#undef T
#undef SUFFIX

#define T      uint32_t
#define SUFFIX 4
#include LOOPS_FILE
#undef T
#undef SUFFIX

#define T      uint64_t
#define SUFFIX 8
#include LOOPS_FILE
#undef T
#undef SUFFIX

#define T      struct bytes16
#define SUFFIX 16
#include LOOPS_FILE
#undef T
#undef SUFFIX
