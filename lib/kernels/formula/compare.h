/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Comparisons, whose result is bool, and where. */
#define EQUAL(d, T, D)                          \
	BINARY_LOOP(eq_##d, T, uint8_t, x == y) \
	BINARY_LOOP(ne_##d, T, uint8_t, x != y)
DTYPES_NUMBER(EQUAL)
DTYPES_COMPLEX(EQUAL)
RELATION_BF16(eq, x == y)
RELATION_F16(eq, x == y)
RELATION_BF16(ne, x != y)
RELATION_F16(ne, x != y)
#define COMPARE(d, T, D)                        \
	BINARY_LOOP(lt_##d, T, uint8_t, x < y)  \
	BINARY_LOOP(le_##d, T, uint8_t, x <= y) \
	BINARY_LOOP(gt_##d, T, uint8_t, x > y)  \
	BINARY_LOOP(ge_##d, T, uint8_t, x >= y)
DTYPES_NUMBER(COMPARE)
RELATION_BF16(lt, x < y)
RELATION_F16(lt, x < y)
RELATION_BF16(le, x <= y)
RELATION_F16(le, x <= y)
RELATION_BF16(gt, x > y)
RELATION_F16(gt, x > y)
RELATION_BF16(ge, x >= y)
RELATION_F16(ge, x >= y)

/* All bytes of bool but 0 are true. */
BINARY_LOOP(eq_b8, uint8_t, uint8_t, !x == !y)
BINARY_LOOP(ne_b8, uint8_t, uint8_t, !x != !y)
BINARY_LOOP(lt_b8, uint8_t, uint8_t, !x & (y != 0))
BINARY_LOOP(le_b8, uint8_t, uint8_t, !x | (y != 0))
BINARY_LOOP(gt_b8, uint8_t, uint8_t, (x != 0) & !y)
BINARY_LOOP(ge_b8, uint8_t, uint8_t, (x != 0) | !y)

#define EQ(d, T, D) AT_DTYPE(D, eq_##d),
#define NE(d, T, D) AT_DTYPE(D, ne_##d),
#define LT(d, T, D) AT_DTYPE(D, lt_##d),
#define LE(d, T, D) AT_DTYPE(D, le_##d),
#define GT(d, T, D) AT_DTYPE(D, gt_##d),
#define GE(d, T, D) AT_DTYPE(D, ge_##d),

PREDICATE(eq, DTYPES_ALL(EQ) AT_REDUCED(eq))
PREDICATE(ne, DTYPES_ALL(NE) AT_REDUCED(ne))
PREDICATE(lt, DTYPES_REAL(LT) AT_REDUCED(lt))
PREDICATE(le, DTYPES_REAL(LE) AT_REDUCED(le))
PREDICATE(gt, DTYPES_REAL(GT) AT_REDUCED(gt))
PREDICATE(ge, DTYPES_REAL(GE) AT_REDUCED(ge))

/* By element size. Operands: out, condition (bool), self, other. */
TERNARY_LOOP_WITH(where_1, uint8_t, uint8_t, uint8_t, NO_PARAMS(bool), x ? y : z)
TERNARY_LOOP_WITH(where_2, uint8_t, uint16_t, uint16_t, NO_PARAMS(bool), x ? y : z)
TERNARY_LOOP_WITH(where_4, uint8_t, uint32_t, uint32_t, NO_PARAMS(bool), x ? y : z)
TERNARY_LOOP_WITH(where_8, uint8_t, uint64_t, uint64_t, NO_PARAMS(bool), x ? y : z)
TERNARY_LOOP_WITH(where_16, uint8_t, complex_f64, complex_f64, NO_PARAMS(bool), x ? y : z)
