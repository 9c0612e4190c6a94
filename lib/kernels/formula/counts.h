/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* divide_counts: the division of a mean by its counts, where the count is not 0. Integers round down. */
#define FLOOR_DIVIDE(d, T, D)                \
	BINARY_LOOP(divide_counts_##d, T, T, \
		    !y ? x : (T)(x / y - (T)(x % y != 0 && NEGATIVE(x) != NEGATIVE(y))))
#define DIVIDE(d, T, D) BINARY_LOOP(divide_counts_##d, T, T, y == 0 ? x : x / y)
DTYPES_INT(FLOOR_DIVIDE)
DTYPES_FLOAT(DIVIDE)
DTYPES_COMPLEX(DIVIDE)

#define COUNTS_ENTRY(d, T, D) AT_DTYPE(D, divide_counts_##d),
POINTWISE(divide_counts, DTYPES_NUMBER(COUNTS_ENTRY) DTYPES_COMPLEX(COUNTS_ENTRY))
