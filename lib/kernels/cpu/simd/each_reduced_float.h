/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes LOOPS_FILE for f16 and bf16, which are computed in f32. The macros are those of
 * each_int.h, without the limits. The includer includes base/reduced_float.h.
 */
#define T uint16_t
#define C float

#define D	 TENSOR_F16
#define SUFFIX	 f16
#define LOAD(x)	 f16_to_f32(x)
#define STORE(x) f32_to_f16(x)
#include LOOPS_FILE
#undef D
#undef SUFFIX
#undef LOAD
#undef STORE

#define D	 TENSOR_BF16
#define SUFFIX	 bf16
#define LOAD(x)	 bf16_to_f32(x)
#define STORE(x) f32_to_bf16(x)
#include LOOPS_FILE
#undef D
#undef SUFFIX
#undef LOAD
#undef STORE

#undef T
#undef C
