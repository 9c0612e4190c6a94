/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Lists of dtypes with their C types, for the CPU and for CUDA. The includer defines AT_DTYPE(), and the
 * types complex_f32 and complex_f64 before it uses a list with them.
 */
#ifndef TENSOR_FORMULA_DTYPES_H
#define TENSOR_FORMULA_DTYPES_H

/* Begins a function that formulas call. */
#ifdef __cplusplus
#define FORMULA static __device__ inline
#else
#define FORMULA static inline
#endif

/*
 * Lists of dtypes: X(suffix, C type, dtype). DTYPES_WRAPPING is for loops whose result has the same
 * bits for signed and unsigned elements; AT_WRAPPED() gives their table entries for u16, u32, u64.
 */
#define DTYPES_WRAPPING(X)          \
	X(u8, uint8_t, TENSOR_U8)   \
	X(i8, int8_t, TENSOR_I8)    \
	X(i16, int16_t, TENSOR_I16) \
	X(i32, int32_t, TENSOR_I32) \
	X(i64, int64_t, TENSOR_I64)
#define AT_WRAPPED(N) \
	AT_DTYPE(TENSOR_U16, N##_i16), AT_DTYPE(TENSOR_U32, N##_i32), AT_DTYPE(TENSOR_U64, N##_i64),
#define DTYPES_INT(X)                \
	DTYPES_WRAPPING(X)           \
	X(u16, uint16_t, TENSOR_U16) \
	X(u32, uint32_t, TENSOR_U32) \
	X(u64, uint64_t, TENSOR_U64)
#define DTYPES_FLOAT(X)           \
	X(f32, float, TENSOR_F32) \
	X(f64, double, TENSOR_F64)
#define DTYPES_COMPLEX(X)               \
	X(c64, complex_f32, TENSOR_C64) \
	X(c128, complex_f64, TENSOR_C128)
/* f16, bf16 and the 8-bit floats are in no list: they are computed in f32, see pointwise_run(). */
#define DTYPES_NUMBER(X) DTYPES_INT(X) DTYPES_FLOAT(X)
#define DTYPES_REAL(X)	 X(b8, uint8_t, TENSOR_BOOL) DTYPES_NUMBER(X)
#define DTYPES_ALL(X)	 DTYPES_REAL(X) DTYPES_COMPLEX(X)

/* x is NaN; also for vectors, and for integers without the compiler's warning. */
#define IS_NAN(x) ((x) != (x))

/* x < 0, without the compiler's warning for unsigned x. */
#define NEGATIVE(x) (((x) < 1) & ((x) != 0))

#endif
