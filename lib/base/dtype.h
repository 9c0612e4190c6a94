/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Element types, scalars and promotion. */
#ifndef TENSOR_BASE_DTYPE_H
#define TENSOR_BASE_DTYPE_H

#include "base/compiler.h"

extern const uint8_t dtype_sizes[TENSOR_DTYPE_COUNT]; /* bytes */

static inline bool dtype_is_float(unsigned d)
{
	return (d >= TENSOR_F16 && d <= TENSOR_F64) || d == TENSOR_F8_E4M3FN || d == TENSOR_F8_E5M2;
}

/* Floats of 8 bits are storage formats: elementwise operators compute them as f32, and promotion
 * refuses them. */
static inline bool dtype_is_f8(unsigned d)
{
	return d == TENSOR_F8_E4M3FN || d == TENSOR_F8_E5M2;
}

static inline bool dtype_is_complex(unsigned d)
{
	return d == TENSOR_C64 || d == TENSOR_C128;
}

static inline bool dtype_is_reduced_float(unsigned d)
{
	return d == TENSOR_F16 || d == TENSOR_BF16;
}

/* The dtype in which kernels compute: f32 for floats of less than 32 bits. */
static inline enum tensor_dtype dtype_wide(unsigned d)
{
	return dtype_is_reduced_float(d) || dtype_is_f8(d) ? TENSOR_F32 : (enum tensor_dtype)d;
}

/* f32, f64, c64, c128: what LAPACK and the FFT compute in. */
static inline bool dtype_is_full(unsigned d)
{
	return d >= TENSOR_F32 && d <= TENSOR_C128;
}

/* The dtype of the real part, and of the absolute value, of d. */
static inline enum tensor_dtype dtype_real(unsigned d)
{
	return d == TENSOR_C64 ? TENSOR_F32 : d == TENSOR_C128 ? TENSOR_F64 : (enum tensor_dtype)d;
}

static inline bool dtype_is_int(unsigned d)
{
	return (d >= TENSOR_U8 && d <= TENSOR_I64) || (d >= TENSOR_U16 && d <= TENSOR_U64);
}

static inline bool dtype_is_unsigned(unsigned d)
{
	return d == TENSOR_U8 || (d >= TENSOR_U16 && d <= TENSOR_U64);
}

/* Integers and bool. */
static inline bool dtype_is_integral(unsigned d)
{
	return d == TENSOR_BOOL || dtype_is_int(d);
}

/* Promotes a with an operand of lower rank (a scalar, or a 0-d tensor beside one with dimensions),
 * which counts only if its category (bool, integer, float, complex) is higher. */
enum tensor_dtype promote_lower_rank(enum tensor_dtype a, enum tensor_dtype b);
/* The dtype of a scalar without context: bool, i64, u64, f32 or c64. */
enum tensor_dtype scalar_dtype(tensor_scalar s);
/* The range of an integer dtype within i64: u64 ends at INT64_MAX. */
int64_t dtype_least(enum tensor_dtype d);
int64_t dtype_greatest(enum tensor_dtype d);
/* f32 for integers and bool, d itself for others. */
enum tensor_dtype dtype_to_float(enum tensor_dtype d);

static inline double scalar_double(tensor_scalar s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT	      ? s.d :
	       unlikely(s.kind == TENSOR_SCALAR_UINT) ? (double)s.u :
							(double)s.i;
}

/* Not for a scalar of kind TENSOR_SCALAR_UINT. */
static inline int64_t scalar_int(tensor_scalar s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT ? (int64_t)s.d : s.i;
}

static inline double scalar_imag(tensor_scalar s)
{
	return s.kind == TENSOR_SCALAR_COMPLEX ? s.imag : 0;
}

/*
 * Converts between an element in memory and a scalar. -EOPNOTSUPP for an unknown dtype, -EOVERFLOW for an
 * integer above INT64_MAX and a dtype of integers other than u64. No error record.
 */
int element_load(const void *p, enum tensor_dtype dtype, tensor_scalar *value);
int tensor_element_store(void *p, enum tensor_dtype dtype, tensor_scalar value);

#endif
