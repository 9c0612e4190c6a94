// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Comparisons (result bool) and where, which chooses by one. */
#include "kernels/cpu/simd/loops.h"

#define EQUAL(d, T, D)                          \
	BINARY_LOOP(eq_##d, T, uint8_t, x == y) \
	BINARY_LOOP(ne_##d, T, uint8_t, x != y)
DTYPES_ALL(EQUAL)
#define COMPARE(d, T, D)                        \
	BINARY_LOOP(lt_##d, T, uint8_t, x < y)  \
	BINARY_LOOP(le_##d, T, uint8_t, x <= y) \
	BINARY_LOOP(gt_##d, T, uint8_t, x > y)  \
	BINARY_LOOP(ge_##d, T, uint8_t, x >= y)
DTYPES_REAL(COMPARE)

#define EQ(d, T, D) [D] = eq_##d,
#define NE(d, T, D) [D] = ne_##d,
#define LT(d, T, D) [D] = lt_##d,
#define LE(d, T, D) [D] = le_##d,
#define GT(d, T, D) [D] = gt_##d,
#define GE(d, T, D) [D] = ge_##d,

RELATION_BF16(eq, x == y)
RELATION_BF16(ne, x != y)
RELATION_BF16(lt, x < y)
RELATION_BF16(le, x <= y)
RELATION_BF16(gt, x > y)
RELATION_BF16(ge, x >= y)
PREDICATE(eq, DTYPES_ALL(EQ) AT_BF16(eq))
PREDICATE(ne, DTYPES_ALL(NE) AT_BF16(ne))
PREDICATE(lt, DTYPES_REAL(LT) AT_BF16(lt))
PREDICATE(le, DTYPES_REAL(LE) AT_BF16(le))
PREDICATE(gt, DTYPES_REAL(GT) AT_BF16(gt))
PREDICATE(ge, DTYPES_REAL(GE) AT_BF16(ge))

/* Operands: out, condition (bool), self, other. The choice moves bits of any dtype. */
#define WHERE(d, T)                                                                                \
	static void where_##d(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			      int64_t n1, const void *params)                                      \
	{                                                                                          \
		int64_t so = s0[0], sc = s0[1], sa = s0[2], sb = s0[3];                            \
		char *o = data[0];                                                                 \
		const char *c = data[1], *a = data[2], *b = data[3];                               \
                                                                                                   \
		for (int64_t j = 0; j < n1; j++) {                                                 \
			if (so == sizeof(T) && sc == 1 && sa == sizeof(T) && sb == sizeof(T)) {    \
				IVDEP for (int64_t i = 0; i < n0; i++)                             \
				{                                                                  \
					T x = ((const T *)a)[i], y = ((const T *)b)[i];            \
					((T *)o)[i] = c[i] ? x : y;                                \
				}                                                                  \
			} else {                                                                   \
				for (int64_t i = 0; i < n0; i++) {                                 \
					T x = *(const T *)(a + i * sa);                            \
					T y = *(const T *)(b + i * sb);                            \
					ONE_BY_ONE;                                                \
					*(T *)(o + i * so) = c[i * sc] ? x : y;                    \
				}                                                                  \
			}                                                                          \
			o += s1[0];                                                                \
			c += s1[1];                                                                \
			a += s1[2];                                                                \
			b += s1[3];                                                                \
		}                                                                                  \
	}
WHERE(1, uint8_t)
WHERE(2, uint16_t)
WHERE(4, uint32_t)
WHERE(8, uint64_t)
WHERE(16, double complex)

static int cpu_where(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const iter_loop loops[] = {
		[1] = where_1, [2] = where_2, [4] = where_4, [8] = where_8, [16] = where_16
	};
	const uint8_t want[] = { it->dtype, TENSOR_BOOL, it->dtype, it->dtype };

	return CPU_NAME(pointwise_run_as)("where", it, loops[dtype_sizes[it->dtype]], want, params);
}

CPU_KERNELS(K(eq), K(ne), K(lt), K(le), K(gt), K(ge), K(where))
