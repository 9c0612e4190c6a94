/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Includes reducer_loops.h for bf16 elements, with accumulators and a result of f32. */
#define T	uint16_t
#define A	float
#define D	TENSOR_BF16
#define GIVES	TENSOR_F32
#define SUFFIX	bf16
#define LOAD(x) bf16_to_f32(x)
#undef VLOAD
#define VLOAD(V, e) ((V)(vec_widen_u16(e) << 16))
#include "kernels/cpu/reduce/reducer_loops.h"
#undef T
#undef A
#undef D
#undef GIVES
#undef SUFFIX
#undef LOAD
#undef VLOAD
#define VLOAD(V, e) __builtin_convertvector(e, V)
