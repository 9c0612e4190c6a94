// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Comparisons (result bool) and where, which chooses by one. */
#include "cpu.h"

#define COMPARE(d, T, D)                                                                          \
	BINARY_LOOP(eq_##d, T, uint8_t, x == y)                                                   \
	BINARY_LOOP(ne_##d, T, uint8_t, x != y)                                                   \
	BINARY_LOOP(lt_##d, T, uint8_t, x < y)                                                    \
	BINARY_LOOP(le_##d, T, uint8_t, x <= y)                                                   \
	BINARY_LOOP(gt_##d, T, uint8_t, x > y)                                                    \
	BINARY_LOOP(ge_##d, T, uint8_t, x >= y)
DTYPES_ALL(COMPARE)

#define EQ(d, T, D) [D] = eq_##d,
#define NE(d, T, D) [D] = ne_##d,
#define LT(d, T, D) [D] = lt_##d,
#define LE(d, T, D) [D] = le_##d,
#define GT(d, T, D) [D] = gt_##d,
#define GE(d, T, D) [D] = ge_##d,

POINTWISE(eq, DTYPES_ALL(EQ))
POINTWISE(ne, DTYPES_ALL(NE))
POINTWISE(lt, DTYPES_ALL(LT))
POINTWISE(le, DTYPES_ALL(LE))
POINTWISE(gt, DTYPES_ALL(GT))
POINTWISE(ge, DTYPES_ALL(GE))

/* Operands: out, condition (bool), self, other. */
#define WHERE(d, T, D)                                                                            \
	static void where_##d(char *const *data, const int64_t *s0, const int64_t *s1,            \
			      int64_t n0, int64_t n1, const void *params)                         \
	{                                                                                         \
		char *o = data[0];                                                                \
		const char *c = data[1], *a = data[2], *b = data[3];                              \
                                                                                                  \
		for (int64_t j = 0; j < n1; j++) {                                                \
			if (s0[0] == sizeof(T) && s0[1] == 1 && s0[2] == sizeof(T) &&             \
			    s0[3] == sizeof(T)) {                                                 \
				IVDEP for (int64_t i = 0; i < n0; i++)                            \
				{                                                                 \
					T x = ((const T *)a)[i], y = ((const T *)b)[i];           \
					((T *)o)[i] = c[i] ? x : y;                               \
				}                                                                 \
			} else {                                                                  \
				for (int64_t i = 0; i < n0; i++)                                  \
					*(T *)(o + i * s0[0]) =                                   \
						c[i * s0[1]] ? *(const T *)(a + i * s0[2]) :      \
							       *(const T *)(b + i * s0[3]);       \
			}                                                                         \
			o += s1[0];                                                               \
			c += s1[1];                                                               \
			a += s1[2];                                                               \
			b += s1[3];                                                               \
		}                                                                                 \
	}
DTYPES_ALL(WHERE)

#define W(d, T, D) [D] = where_##d,
POINTWISE(where, DTYPES_ALL(W))

CPU_KERNELS(K(eq), K(ne), K(lt), K(le), K(gt), K(ge), K(where))
