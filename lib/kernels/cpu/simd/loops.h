/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Pointwise loops for a category of dtypes from one expression in `x`, `y` and `z`, and the entries
 * of a POINTWISE table for them. UNARY_FLOAT(frac, x - trunc(x)) defines frac_f32() and frac_f64(),
 * AT_FLOAT(frac) gives their table entries. Expressions use <tgmath.h>.
 */
#ifndef TENSOR_CPU_LOOPS_H
#define TENSOR_CPU_LOOPS_H

#include "base/reduced_float.h"
#include "kernels/cpu/simd/cpu.h"

#include <math.h>

/* A scalar parameter of the call (a, b or c of struct pointwise_params), converted to type T. */
#define PARAM(params, which) (((const struct pointwise_params *)(params))->which)
#define PARAM_F(T, params, which) \
	((T)CMPLX(scalar_double(PARAM(params, which)), scalar_imag(PARAM(params, which))))
#define PARAM_I(T, params, which) ((T)scalar_int(PARAM(params, which)))

/* ---- three inputs: x of type A, y and z of type T ---- */

#define TERNARY_LOOP_WITH(NAME, A, T, R, DECL, EXPR)                                               \
	ITER_LOOP(NAME)                                                                            \
	{                                                                                          \
		int64_t so = s0[0], sa = s0[1], sb = s0[2], sc = s0[3];                            \
		char *o = data[0], *a = data[1], *b = data[2], *c = data[3];                       \
		bool dense = so == sizeof(R) && sa == sizeof(A) && sb == sizeof(T) &&              \
			     sc == sizeof(T);                                                      \
		DECL;                                                                              \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1], b += s1[2], c += s1[3]) { \
			const A *pa = (const A *)a;                                                \
			const T *pb = (const T *)b, *pc = (const T *)c;                            \
			if (dense)                                                                 \
				ROW_DENSE(i, n0, , A x = pa[i]; T y = pb[i];                       \
					  T z = pc[i], ((R *)o)[i], EXPR)                          \
			else                                                                       \
				ROW_STRIDED(i, n0, INPUT(A, x, a, i *sa); INPUT(T, y, b, i * sb);  \
					    INPUT(T, z, c, i * sc), R, o, so, EXPR)                \
		}                                                                                  \
	}

/* ---- loops for a category of dtypes ---- */

/* The DECL of loops without parameters. */
#define NO_PARAMS(T) (void)params

#define UNARY_FLOAT(N, EXPR) UNARY_FLOAT_WITH(N, NO_PARAMS, EXPR)
#define UNARY_FLOAT_WITH(N, DECL, EXPR)                           \
	UNARY_LOOP_WITH(N##_f32, float, float, DECL(float), EXPR) \
	UNARY_LOOP_WITH(N##_f64, double, double, DECL(double), EXPR)
#define UNARY_COMPLEX(N, EXPR)                                  \
	UNARY_LOOP(N##_c64, float complex, float complex, EXPR) \
	UNARY_LOOP(N##_c128, double complex, double complex, EXPR)
#define UNARY_COMPLEX_REAL(N, EXPR)                     \
	UNARY_LOOP(N##_c64, float complex, float, EXPR) \
	UNARY_LOOP(N##_c128, double complex, double, EXPR)
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
#define TEST_COMPLEX(N, EXPR)                             \
	UNARY_LOOP(N##_c64, float complex, uint8_t, EXPR) \
	UNARY_LOOP(N##_c128, double complex, uint8_t, EXPR)

#define BINARY_FLOAT(N, EXPR) BINARY_FLOAT_WITH(N, NO_PARAMS, EXPR)
#define BINARY_FLOAT_WITH(N, DECL, EXPR)                           \
	BINARY_LOOP_WITH(N##_f32, float, float, DECL(float), EXPR) \
	BINARY_LOOP_WITH(N##_f64, double, double, DECL(double), EXPR)
#define BINARY_COMPLEX(N, EXPR)                                  \
	BINARY_LOOP(N##_c64, float complex, float complex, EXPR) \
	BINARY_LOOP(N##_c128, double complex, double complex, EXPR)
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
#define RELATION_COMPLEX(N, EXPR)                          \
	BINARY_LOOP(N##_c64, float complex, uint8_t, EXPR) \
	BINARY_LOOP(N##_c128, double complex, uint8_t, EXPR)

#define TERNARY_FLOAT_WITH(N, DECL, EXPR)                                  \
	TERNARY_LOOP_WITH(N##_f32, float, float, float, DECL(float), EXPR) \
	TERNARY_LOOP_WITH(N##_f64, double, double, double, DECL(double), EXPR)
#define TERNARY_COMPLEX_WITH(N, DECL, EXPR)                                         \
	TERNARY_LOOP_WITH(N##_c64, float complex, float complex, float complex,     \
			  DECL(float complex), EXPR)                                \
	TERNARY_LOOP_WITH(N##_c128, double complex, double complex, double complex, \
			  DECL(double complex), EXPR)
#define TERNARY_INT_WITH(N, DECL, EXPR)                                                \
	TERNARY_LOOP_WITH(N##_u8, uint8_t, uint8_t, uint8_t, DECL(uint8_t), EXPR)      \
	TERNARY_LOOP_WITH(N##_u16, uint16_t, uint16_t, uint16_t, DECL(uint16_t), EXPR) \
	TERNARY_LOOP_WITH(N##_u32, uint32_t, uint32_t, uint32_t, DECL(uint32_t), EXPR) \
	TERNARY_LOOP_WITH(N##_u64, uint64_t, uint64_t, uint64_t, DECL(uint64_t), EXPR) \
	TERNARY_LOOP_WITH(N##_i8, int8_t, int8_t, int8_t, DECL(int8_t), EXPR)          \
	TERNARY_LOOP_WITH(N##_i16, int16_t, int16_t, int16_t, DECL(int16_t), EXPR)     \
	TERNARY_LOOP_WITH(N##_i32, int32_t, int32_t, int32_t, DECL(int32_t), EXPR)     \
	TERNARY_LOOP_WITH(N##_i64, int64_t, int64_t, int64_t, DECL(int64_t), EXPR)
#define NO_DECL(T) (void)params

/* A pointwise kernel whose result is real for complex inputs. */
#define POINTWISE_REAL(NAME, ...)                                                             \
	static int cpu_##NAME(struct tensor_iter *it, const struct pointwise_params *params)  \
	{                                                                                     \
		static const iter_loop loops[TENSOR_DTYPE_COUNT] = { __VA_ARGS__ };           \
		bool complex_ = dtype_is_complex(it->dtype);                                  \
                                                                                              \
		return CPU_NAME(pointwise_run)(#NAME, it, loops,                              \
					       complex_ ? dtype_real(it->dtype) : 0, params); \
	}

/*
 * ---- bf16 without a conversion of the operands: for calls whose operands are all bf16 ----
 *
 * x and y are float. An input of stride 0 points to a float: a scalar need not be exact in bf16.
 */

#define UNARY_BF16_WITH(NAME, DECL, EXPR)                                               \
	ITER_LOOP(NAME##_bf16)                                                          \
	{                                                                               \
		int64_t so = s0[0], sa = s0[1];                                         \
		DECL;                                                                   \
		for (int64_t j = 0; j < n1; j++) {                                      \
			char *o = data[0] + j * s1[0], *a = data[1] + j * s1[1];        \
			uint16_t *po = (uint16_t *)o;                                   \
			const uint16_t *pa = (const uint16_t *)a;                       \
			if (so == 2 && sa == 2)                                         \
				ROW_DENSE(i, n0, , float x = bf16_to_f32(pa[i]), po[i], \
					  f32_to_bf16(EXPR))                            \
			else                                                            \
				ROW_STRIDED(i, n0, INPUT(uint16_t, u, a, i *sa);        \
					    float x = bf16_to_f32(u), uint16_t, o, so,  \
					    f32_to_bf16(EXPR))                          \
		}                                                                       \
	}
#define UNARY_BF16(NAME, EXPR) UNARY_BF16_WITH(NAME, (void)params, EXPR)

/* An element of an input, which is a float if the input has stride 0. */
static inline float bf16_or_f32(const char *p, int64_t stride, int64_t i)
{
	return stride ? bf16_to_f32(*(const uint16_t *)(p + i * stride)) : *(const float *)p;
}

/* The row of two inputs at a and b: see BINARY_BF16_TO(). */
#define BINARY_BF16_ROW(R, o, so, a, sa, b, sb, n, VALUE)                                \
	{                                                                                \
		bool dense = (so) == sizeof(R), da = (sa) == 2, db = (sb) == 2;          \
		const uint16_t *pa = (const uint16_t *)(a), *pb = (const uint16_t *)(b); \
		R *po = (R *)(o);                                                        \
		if (dense && da && db)                                                   \
			ROW_DENSE(i, n, , float x = bf16_to_f32(pa[i]);                  \
				  float y = bf16_to_f32(pb[i]), po[i], VALUE)            \
		else if (dense && da && !(sb))                                           \
			ROW_DENSE(i, n, float y = *(const float *)(b),                   \
				  float x = bf16_to_f32(pa[i]), po[i], VALUE)            \
		else if (dense && db && !(sa))                                           \
			ROW_DENSE(i, n, float x = *(const float *)(a),                   \
				  float y = bf16_to_f32(pb[i]), po[i], VALUE)            \
		else                                                                     \
			ROW_STRIDED(i, n, float x = bf16_or_f32(a, sa, i);               \
				    float y = bf16_or_f32(b, sb, i), R, o, so, VALUE)    \
	}

/* Two inputs; VALUE, of type R, is an expression in x and y. */
#define BINARY_BF16_TO(NAME, R, VALUE)                                                 \
	ITER_LOOP(NAME##_bf16)                                                         \
	{                                                                              \
		int64_t so = s0[0], sa = s0[1], sb = s0[2];                            \
		for (int64_t j = 0; j < n1; j++) {                                     \
			char *o = data[0] + j * s1[0];                                 \
			const char *a = data[1] + j * s1[1], *b = data[2] + j * s1[2]; \
			BINARY_BF16_ROW(R, o, so, a, sa, b, sb, n0, VALUE)             \
		}                                                                      \
	}
#define BINARY_BF16(NAME, EXPR)	  BINARY_BF16_TO(NAME, uint16_t, f32_to_bf16(EXPR))
#define RELATION_BF16(NAME, EXPR) BINARY_BF16_TO(NAME, uint8_t, EXPR)

/* The row of three inputs: a call with an input of stride 0 does not come here. */
#define TERNARY_BF16_ROW(o, so, a, sa, b, sb, c, sc, n, VALUE)                               \
	{                                                                                    \
		bool dense = (so) == 2 && (sa) == 2 && (sb) == 2 && (sc) == 2;               \
		const uint16_t *pa = (const uint16_t *)(a), *pb = (const uint16_t *)(b);     \
		const uint16_t *pc = (const uint16_t *)(c);                                  \
		uint16_t *po = (uint16_t *)(o);                                              \
		if (dense)                                                                   \
			ROW_DENSE(i, n, , float x = bf16_to_f32(pa[i]);                      \
				  float y = bf16_to_f32(pb[i]);                              \
				  float z = bf16_to_f32(pc[i]), po[i], VALUE)                \
		else                                                                         \
			ROW_STRIDED(i, n, float x = bf16_or_f32(a, sa, i);                   \
				    float y = bf16_or_f32(b, sb, i);                         \
				    float z = bf16_or_f32(c, sc, i), uint16_t, o, so, VALUE) \
	}
#define TERNARY_BF16_WITH(NAME, DECL, EXPR)                                                 \
	ITER_LOOP(NAME##_bf16)                                                              \
	{                                                                                   \
		int64_t so = s0[0], sa = s0[1], sb = s0[2], sc = s0[3];                     \
		DECL(float);                                                                \
		for (int64_t j = 0; j < n1; j++) {                                          \
			char *o = data[0] + j * s1[0];                                      \
			const char *a = data[1] + j * s1[1], *b = data[2] + j * s1[2];      \
			const char *c = data[3] + j * s1[3];                                \
			TERNARY_BF16_ROW(o, so, a, sa, b, sb, c, sc, n0, f32_to_bf16(EXPR)) \
		}                                                                           \
	}

/* ---- entries of a POINTWISE table ---- */

#define AT_BF16(N) [TENSOR_BF16] = N##_bf16

#define AT_FLOAT(N)   [TENSOR_F32] = N##_f32, [TENSOR_F64] = N##_f64
#define AT_COMPLEX(N) [TENSOR_C64] = N##_c64, [TENSOR_C128] = N##_c128
#define AT_BOOL(N)    [TENSOR_BOOL] = N
#define AT_SIGNED(N) \
	[TENSOR_I8] = N##_i8, [TENSOR_I16] = N##_i16, [TENSOR_I32] = N##_i32, [TENSOR_I64] = N##_i64
#define AT_UNSIGNED(N) \
	[TENSOR_U8] = N##_u8, [TENSOR_U16] = N##_u16, [TENSOR_U32] = N##_u32, [TENSOR_U64] = N##_u64
#define AT_INT(N) AT_UNSIGNED(N), AT_SIGNED(N)
/* Integers, for loops by width. */
#define AT_BITS(N)                                                                                 \
	AT_BITS_UNSIGNED(N), [TENSOR_I8] = N##_w8, [TENSOR_I16] = N##_w16, [TENSOR_I32] = N##_w32, \
			     [TENSOR_I64] = N##_w64
#define AT_BITS_UNSIGNED(N) \
	[TENSOR_U8] = N##_w8, [TENSOR_U16] = N##_w16, [TENSOR_U32] = N##_w32, [TENSOR_U64] = N##_w64

#endif
