/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes LOOPS_FILE once for each integer dtype, with these macros defined:
 *
 *   T, D, SUFFIX       element type, dtype, and the end of function names (i32)
 *   LOWEST, HIGHEST    limits of T
 *   C                  the type that elements are computed in
 *   LOAD(x), STORE(x)  conversions from T to C and from C to T
 */
#define LOAD(x)	 (x)
#define STORE(x) ((T)(x))

#define C	int64_t
#define T	uint8_t
#define D	TENSOR_U8
#define SUFFIX	u8
#define LOWEST	0
#define HIGHEST UINT8_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	int8_t
#define D	TENSOR_I8
#define SUFFIX	i8
#define LOWEST	INT8_MIN
#define HIGHEST INT8_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	int16_t
#define D	TENSOR_I16
#define SUFFIX	i16
#define LOWEST	INT16_MIN
#define HIGHEST INT16_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	int32_t
#define D	TENSOR_I32
#define SUFFIX	i32
#define LOWEST	INT32_MIN
#define HIGHEST INT32_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	int64_t
#define D	TENSOR_I64
#define SUFFIX	i64
#define LOWEST	INT64_MIN
#define HIGHEST INT64_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	uint16_t
#define D	TENSOR_U16
#define SUFFIX	u16
#define LOWEST	0
#define HIGHEST UINT16_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	uint32_t
#define D	TENSOR_U32
#define SUFFIX	u32
#define LOWEST	0
#define HIGHEST UINT32_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#undef C
#define C	uint64_t
#define T	uint64_t
#define D	TENSOR_U64
#define SUFFIX	u64
#define LOWEST	0
#define HIGHEST UINT64_MAX
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#undef C
#undef LOAD
#undef STORE
