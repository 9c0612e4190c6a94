// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Bits of integers, and logic on any dtype. */
#include "kernels/cpu/simd/loops.h"

UNARY_BITS(bitwise_not, ~x)
UNARY_LOOP(bitwise_not_b8, uint8_t, uint8_t, !x)
POINTWISE(bitwise_not, AT_BITS(bitwise_not), [TENSOR_BOOL] = bitwise_not_b8)

#define BITWISE(f, EXPR)     \
	BINARY_BITS(f, EXPR) \
	POINTWISE(f, AT_BITS(f), [TENSOR_BOOL] = f##_w8)
BITWISE(bitwise_and, x &y)
BITWISE(bitwise_or, x | y)
BITWISE(bitwise_xor, x ^ y)

/* A shift by less than nothing or more than there is moves everything out; sign bits come in. */
#define WIDTH		  ((int64_t)sizeof(x) * 8)
#define OUTSIDE(y)	  ((uint64_t)(y) >= (uint64_t)WIDTH)
#define SHIFT_LEFT(T)	  OUTSIDE(y) ? (T)0 : (T)((uint64_t)x << (y & (WIDTH - 1)))
#define SHIFT_RIGHT(last) OUTSIDE(y) ? x >> (last) : x >> (y & (WIDTH - 1))

BINARY_LOOP(left_shift_u8, uint8_t, uint8_t, SHIFT_LEFT(uint8_t))
BINARY_LOOP(left_shift_u16, uint16_t, uint16_t, SHIFT_LEFT(uint16_t))
BINARY_LOOP(left_shift_u32, uint32_t, uint32_t, SHIFT_LEFT(uint32_t))
BINARY_LOOP(left_shift_u64, uint64_t, uint64_t, SHIFT_LEFT(uint64_t))
BINARY_LOOP(left_shift_i8, int8_t, int8_t, SHIFT_LEFT(int8_t))
BINARY_LOOP(left_shift_i16, int16_t, int16_t, SHIFT_LEFT(int16_t))
BINARY_LOOP(left_shift_i32, int32_t, int32_t, SHIFT_LEFT(int32_t))
BINARY_LOOP(left_shift_i64, int64_t, int64_t, SHIFT_LEFT(int64_t))
POINTWISE(bitwise_left_shift, AT_INT(left_shift))

BINARY_LOOP(right_shift_u8, uint8_t, uint8_t, OUTSIDE(y) ? 0 : x >> (y & 7))
BINARY_LOOP(right_shift_u16, uint16_t, uint16_t, OUTSIDE(y) ? 0 : x >> (y & 15))
BINARY_LOOP(right_shift_u32, uint32_t, uint32_t, OUTSIDE(y) ? 0 : x >> (y & 31))
BINARY_LOOP(right_shift_u64, uint64_t, uint64_t, OUTSIDE(y) ? 0 : x >> (y & 63))
BINARY_LOOP(right_shift_i8, int8_t, int8_t, SHIFT_RIGHT(7))
BINARY_LOOP(right_shift_i16, int16_t, int16_t, SHIFT_RIGHT(15))
BINARY_LOOP(right_shift_i32, int32_t, int32_t, SHIFT_RIGHT(31))
BINARY_LOOP(right_shift_i64, int64_t, int64_t, SHIFT_RIGHT(63))
POINTWISE(bitwise_right_shift, AT_INT(right_shift))

#define LOGICAL(f, EXPR)          \
	RELATION_BITS(f, EXPR)    \
	RELATION_FLOAT(f, EXPR)   \
	RELATION_COMPLEX(f, EXPR) \
	PREDICATE(f, AT_BITS(f), AT_FLOAT(f), AT_COMPLEX(f), [TENSOR_BOOL] = f##_w8)
LOGICAL(logical_and, (x != 0) & (y != 0))
LOGICAL(logical_or, (x != 0) | (y != 0))
LOGICAL(logical_xor, (x != 0) ^ (y != 0))

CPU_KERNELS(K(bitwise_not), K(bitwise_and), K(bitwise_or), K(bitwise_xor), K(bitwise_left_shift),
	    K(bitwise_right_shift), K(logical_and), K(logical_or), K(logical_xor))
