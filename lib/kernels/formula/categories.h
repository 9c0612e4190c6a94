/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Pointwise loops for a category of dtypes from one expression in `x`, `y` and `z`, and the entries
 * of a POINTWISE table for them. UNARY_FLOAT(frac, x - trunc(x)) defines frac_f32() and frac_f64(),
 * AT_FLOAT(frac) gives their table entries.
 *
 * The includer defines UNARY_LOOP_WITH(), BINARY_LOOP_WITH() and TERNARY_LOOP_WITH(), which define
 * one loop, their forms without parameters, and NO_PARAMS(T), the declaration of those: the CPU
 * does in cpu.h and loops.h, CUDA in formula.cuh.
 */
#ifndef TENSOR_FORMULA_CATEGORIES_H
#define TENSOR_FORMULA_CATEGORIES_H

#include "kernels/formula/dtypes.h"

#define UNARY_FLOAT(N, EXPR) UNARY_FLOAT_WITH(N, NO_PARAMS, EXPR)
#define UNARY_FLOAT_WITH(N, DECL, EXPR)                           \
	UNARY_LOOP_WITH(N##_f32, float, float, DECL(float), EXPR) \
	UNARY_LOOP_WITH(N##_f64, double, double, DECL(double), EXPR)
/* _FLOATS: also loops for f16 and bf16, where the CPU has them. */
#define UNARY_FLOATS(N, EXPR) UNARY_FLOATS_WITH(N, NO_PARAMS, EXPR)
#define UNARY_FLOATS_WITH(N, DECL, EXPR) \
	UNARY_FLOAT_WITH(N, DECL, EXPR)  \
	UNARY_BF16_WITH(N, DECL, EXPR)   \
	UNARY_F16_WITH(N, DECL, EXPR)
#define UNARY_COMPLEX(N, EXPR)                              \
	UNARY_LOOP(N##_c64, complex_f32, complex_f32, EXPR) \
	UNARY_LOOP(N##_c128, complex_f64, complex_f64, EXPR)
#define UNARY_COMPLEX_REAL(N, EXPR)                   \
	UNARY_LOOP(N##_c64, complex_f32, float, EXPR) \
	UNARY_LOOP(N##_c128, complex_f64, double, EXPR)
#define UNARY_SIGNED(N, EXPR)                       \
	UNARY_LOOP(N##_i8, int8_t, int8_t, EXPR)    \
	UNARY_LOOP(N##_i16, int16_t, int16_t, EXPR) \
	UNARY_LOOP(N##_i32, int32_t, int32_t, EXPR) \
	UNARY_LOOP(N##_i64, int64_t, int64_t, EXPR)
#define UNARY_UNSIGNED(N, EXPR)                       \
	UNARY_LOOP(N##_u8, uint8_t, uint8_t, EXPR)    \
	UNARY_LOOP(N##_u16, uint16_t, uint16_t, EXPR) \
	UNARY_LOOP(N##_u32, uint32_t, uint32_t, EXPR) \
	UNARY_LOOP(N##_u64, uint64_t, uint64_t, EXPR)
#define UNARY_INT(N, EXPR) UNARY_UNSIGNED(N, EXPR) UNARY_SIGNED(N, EXPR)
/* By width in bits, where signed and unsigned elements give the same bits. */
#define UNARY_BITS(N, EXPR)                           \
	UNARY_LOOP(N##_w8, uint8_t, uint8_t, EXPR)    \
	UNARY_LOOP(N##_w16, uint16_t, uint16_t, EXPR) \
	UNARY_LOOP(N##_w32, uint32_t, uint32_t, EXPR) \
	UNARY_LOOP(N##_w64, uint64_t, uint64_t, EXPR)
/* One input, result bool. */
#define TEST_BITS(N, EXPR)                           \
	UNARY_LOOP(N##_w8, uint8_t, uint8_t, EXPR)   \
	UNARY_LOOP(N##_w16, uint16_t, uint8_t, EXPR) \
	UNARY_LOOP(N##_w32, uint32_t, uint8_t, EXPR) \
	UNARY_LOOP(N##_w64, uint64_t, uint8_t, EXPR)
#define TEST_FLOAT(N, EXPR)                       \
	UNARY_LOOP(N##_f32, float, uint8_t, EXPR) \
	UNARY_LOOP(N##_f64, double, uint8_t, EXPR)
#define TEST_COMPLEX(N, EXPR)                           \
	UNARY_LOOP(N##_c64, complex_f32, uint8_t, EXPR) \
	UNARY_LOOP(N##_c128, complex_f64, uint8_t, EXPR)

#define BINARY_FLOAT(N, EXPR) BINARY_FLOAT_WITH(N, NO_PARAMS, EXPR)
#define BINARY_FLOAT_WITH(N, DECL, EXPR)                           \
	BINARY_LOOP_WITH(N##_f32, float, float, DECL(float), EXPR) \
	BINARY_LOOP_WITH(N##_f64, double, double, DECL(double), EXPR)
#define BINARY_FLOATS(N, EXPR) \
	BINARY_FLOAT(N, EXPR)  \
	BINARY_BF16(N, EXPR)   \
	BINARY_F16(N, EXPR)
#define BINARY_COMPLEX(N, EXPR)                              \
	BINARY_LOOP(N##_c64, complex_f32, complex_f32, EXPR) \
	BINARY_LOOP(N##_c128, complex_f64, complex_f64, EXPR)
#define BINARY_INT(N, EXPR) BINARY_INT_WITH(N, NO_PARAMS, EXPR)
#define BINARY_INT_WITH(N, DECL, EXPR)                                      \
	BINARY_LOOP_WITH(N##_u8, uint8_t, uint8_t, DECL(uint8_t), EXPR)     \
	BINARY_LOOP_WITH(N##_u16, uint16_t, uint16_t, DECL(uint16_t), EXPR) \
	BINARY_LOOP_WITH(N##_u32, uint32_t, uint32_t, DECL(uint32_t), EXPR) \
	BINARY_LOOP_WITH(N##_u64, uint64_t, uint64_t, DECL(uint64_t), EXPR) \
	BINARY_LOOP_WITH(N##_i8, int8_t, int8_t, DECL(int8_t), EXPR)        \
	BINARY_LOOP_WITH(N##_i16, int16_t, int16_t, DECL(int16_t), EXPR)    \
	BINARY_LOOP_WITH(N##_i32, int32_t, int32_t, DECL(int32_t), EXPR)    \
	BINARY_LOOP_WITH(N##_i64, int64_t, int64_t, DECL(int64_t), EXPR)
#define BINARY_BITS(N, EXPR)                           \
	BINARY_LOOP(N##_w8, uint8_t, uint8_t, EXPR)    \
	BINARY_LOOP(N##_w16, uint16_t, uint16_t, EXPR) \
	BINARY_LOOP(N##_w32, uint32_t, uint32_t, EXPR) \
	BINARY_LOOP(N##_w64, uint64_t, uint64_t, EXPR)
/* Two inputs, result bool. */
#define RELATION_BITS(N, EXPR)                        \
	BINARY_LOOP(N##_w8, uint8_t, uint8_t, EXPR)   \
	BINARY_LOOP(N##_w16, uint16_t, uint8_t, EXPR) \
	BINARY_LOOP(N##_w32, uint32_t, uint8_t, EXPR) \
	BINARY_LOOP(N##_w64, uint64_t, uint8_t, EXPR)
#define RELATION_FLOAT(N, EXPR)                    \
	BINARY_LOOP(N##_f32, float, uint8_t, EXPR) \
	BINARY_LOOP(N##_f64, double, uint8_t, EXPR)
#define RELATION_COMPLEX(N, EXPR)                        \
	BINARY_LOOP(N##_c64, complex_f32, uint8_t, EXPR) \
	BINARY_LOOP(N##_c128, complex_f64, uint8_t, EXPR)

#define TERNARY_FLOAT_WITH(N, DECL, EXPR)                                  \
	TERNARY_LOOP_WITH(N##_f32, float, float, float, DECL(float), EXPR) \
	TERNARY_LOOP_WITH(N##_f64, double, double, double, DECL(double), EXPR)
#define TERNARY_FLOATS_WITH(N, DECL, EXPR) \
	TERNARY_FLOAT_WITH(N, DECL, EXPR)  \
	TERNARY_BF16_WITH(N, DECL, EXPR)   \
	TERNARY_F16_WITH(N, DECL, EXPR)
#define TERNARY_COMPLEX_WITH(N, DECL, EXPR)                                                        \
	TERNARY_LOOP_WITH(N##_c64, complex_f32, complex_f32, complex_f32, DECL(complex_f32), EXPR) \
	TERNARY_LOOP_WITH(N##_c128, complex_f64, complex_f64, complex_f64, DECL(complex_f64), EXPR)
#define TERNARY_INT_WITH(N, DECL, EXPR)                                                \
	TERNARY_LOOP_WITH(N##_u8, uint8_t, uint8_t, uint8_t, DECL(uint8_t), EXPR)      \
	TERNARY_LOOP_WITH(N##_u16, uint16_t, uint16_t, uint16_t, DECL(uint16_t), EXPR) \
	TERNARY_LOOP_WITH(N##_u32, uint32_t, uint32_t, uint32_t, DECL(uint32_t), EXPR) \
	TERNARY_LOOP_WITH(N##_u64, uint64_t, uint64_t, uint64_t, DECL(uint64_t), EXPR) \
	TERNARY_LOOP_WITH(N##_i8, int8_t, int8_t, int8_t, DECL(int8_t), EXPR)          \
	TERNARY_LOOP_WITH(N##_i16, int16_t, int16_t, int16_t, DECL(int16_t), EXPR)     \
	TERNARY_LOOP_WITH(N##_i32, int32_t, int32_t, int32_t, DECL(int32_t), EXPR)     \
	TERNARY_LOOP_WITH(N##_i64, int64_t, int64_t, int64_t, DECL(int64_t), EXPR)

/* ---- entries of a POINTWISE table ---- */

#define AT_FLOAT(N)   AT_DTYPE(TENSOR_F32, N##_f32), AT_DTYPE(TENSOR_F64, N##_f64)
#define AT_FLOATS(N)  AT_FLOAT(N), AT_REDUCED(N)
#define AT_REDUCED(N) AT_BF16(N), AT_F16(N)
#define AT_COMPLEX(N) AT_DTYPE(TENSOR_C64, N##_c64), AT_DTYPE(TENSOR_C128, N##_c128)
#define AT_BOOL(N)    AT_DTYPE(TENSOR_BOOL, N)
#define AT_SIGNED(N)                                                                               \
	AT_DTYPE(TENSOR_I8, N##_i8), AT_DTYPE(TENSOR_I16, N##_i16), AT_DTYPE(TENSOR_I32, N##_i32), \
		AT_DTYPE(TENSOR_I64, N##_i64)
#define AT_UNSIGNED(N)                                                                             \
	AT_DTYPE(TENSOR_U8, N##_u8), AT_DTYPE(TENSOR_U16, N##_u16), AT_DTYPE(TENSOR_U32, N##_u32), \
		AT_DTYPE(TENSOR_U64, N##_u64)
#define AT_INT(N) AT_UNSIGNED(N), AT_SIGNED(N)
/* Integers, for loops by width. */
#define AT_BITS(N)                                                                       \
	AT_BITS_UNSIGNED(N), AT_DTYPE(TENSOR_I8, N##_w8), AT_DTYPE(TENSOR_I16, N##_w16), \
		AT_DTYPE(TENSOR_I32, N##_w32), AT_DTYPE(TENSOR_I64, N##_w64)
#define AT_BITS_UNSIGNED(N)                                                                        \
	AT_DTYPE(TENSOR_U8, N##_w8), AT_DTYPE(TENSOR_U16, N##_w16), AT_DTYPE(TENSOR_U32, N##_w32), \
		AT_DTYPE(TENSOR_U64, N##_w64)

#endif
