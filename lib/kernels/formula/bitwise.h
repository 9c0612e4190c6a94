/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Bitwise operations on integers, and logical ones on all dtypes. */
UNARY_BITS(bitwise_not, ~x)
UNARY_LOOP(bitwise_not_b8, uint8_t, uint8_t, !x)
POINTWISE(bitwise_not, AT_BITS(bitwise_not), AT_DTYPE(TENSOR_BOOL, bitwise_not_b8))

/* All bytes of bool but 0 are true. */
#define BITWISE(f, EXPR, BOOL)                      \
	BINARY_BITS(f, EXPR)                        \
	BINARY_LOOP(f##_b8, uint8_t, uint8_t, BOOL) \
	POINTWISE(f, AT_BITS(f), AT_DTYPE(TENSOR_BOOL, f##_b8))
BITWISE(bitwise_and, x &y, (x != 0) & (y != 0))
BITWISE(bitwise_or, x | y, (x | y) != 0)
BITWISE(bitwise_xor, x ^ y, !x != !y)

/*
 * A shift by a negative number, or by the width of x or more, gives 0, or -1 where x is negative
 * and is shifted right.
 */
#define WIDTH(x)	   ((int64_t)sizeof(x) * 8)
#define OUT_OF_WIDTH(x, y) ((uint64_t)(y) >= (uint64_t)WIDTH(x))
#define SHIFT_LEFT(T, x, y) \
	(OUT_OF_WIDTH(x, y) ? (T)0 : (T)((uint64_t)(x) << ((y) & (WIDTH(x) - 1))))
#define SHIFT_RIGHT(x, y) (OUT_OF_WIDTH(x, y) ? 0 : (x) >> ((y) & (WIDTH(x) - 1)))
#define SHIFT_RIGHT_SIGNED(x, y) \
	(OUT_OF_WIDTH(x, y) ? (x) >> (WIDTH(x) - 1) : (x) >> ((y) & (WIDTH(x) - 1)))

BINARY_LOOP(left_shift_u8, uint8_t, uint8_t, SHIFT_LEFT(uint8_t, x, y))
BINARY_LOOP(left_shift_u16, uint16_t, uint16_t, SHIFT_LEFT(uint16_t, x, y))
BINARY_LOOP(left_shift_u32, uint32_t, uint32_t, SHIFT_LEFT(uint32_t, x, y))
BINARY_LOOP(left_shift_u64, uint64_t, uint64_t, SHIFT_LEFT(uint64_t, x, y))
BINARY_LOOP(left_shift_i8, int8_t, int8_t, SHIFT_LEFT(int8_t, x, y))
BINARY_LOOP(left_shift_i16, int16_t, int16_t, SHIFT_LEFT(int16_t, x, y))
BINARY_LOOP(left_shift_i32, int32_t, int32_t, SHIFT_LEFT(int32_t, x, y))
BINARY_LOOP(left_shift_i64, int64_t, int64_t, SHIFT_LEFT(int64_t, x, y))
POINTWISE(bitwise_left_shift, AT_INT(left_shift))

BINARY_LOOP(right_shift_u8, uint8_t, uint8_t, SHIFT_RIGHT(x, y))
BINARY_LOOP(right_shift_u16, uint16_t, uint16_t, SHIFT_RIGHT(x, y))
BINARY_LOOP(right_shift_u32, uint32_t, uint32_t, SHIFT_RIGHT(x, y))
BINARY_LOOP(right_shift_u64, uint64_t, uint64_t, SHIFT_RIGHT(x, y))
BINARY_LOOP(right_shift_i8, int8_t, int8_t, SHIFT_RIGHT_SIGNED(x, y))
BINARY_LOOP(right_shift_i16, int16_t, int16_t, SHIFT_RIGHT_SIGNED(x, y))
BINARY_LOOP(right_shift_i32, int32_t, int32_t, SHIFT_RIGHT_SIGNED(x, y))
BINARY_LOOP(right_shift_i64, int64_t, int64_t, SHIFT_RIGHT_SIGNED(x, y))
POINTWISE(bitwise_right_shift, AT_INT(right_shift))

#define LOGICAL(f, EXPR)          \
	RELATION_BITS(f, EXPR)    \
	RELATION_FLOAT(f, EXPR)   \
	RELATION_COMPLEX(f, EXPR) \
	PREDICATE(f, AT_BITS(f), AT_FLOAT(f), AT_COMPLEX(f), AT_DTYPE(TENSOR_BOOL, f##_w8))
LOGICAL(logical_and, (x != 0) & (y != 0))
LOGICAL(logical_or, (x != 0) | (y != 0))
LOGICAL(logical_xor, (x != 0) ^ (y != 0))
