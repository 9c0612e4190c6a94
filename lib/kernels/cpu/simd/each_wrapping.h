/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes LOOPS_FILE for the dtypes of DTYPES_WRAPPING: for loops whose result has the same bits
 * for signed and unsigned elements, so that u16, u32 and u64 use those of i16, i32 and i64. T, D
 * and SUFFIX are those of each_int.h.
 */
#define T      uint8_t
#define D      TENSOR_U8
#define SUFFIX u8
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#define T      int8_t
#define D      TENSOR_I8
#define SUFFIX i8
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#define T      int16_t
#define D      TENSOR_I16
#define SUFFIX i16
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#define T      int32_t
#define D      TENSOR_I32
#define SUFFIX i32
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX

#define T      int64_t
#define D      TENSOR_I64
#define SUFFIX i64
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
