// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of bf16 matrices by an instruction that adds the products of pairs. No instruction-set
 * level includes it: cpu_pairs() tests for it. See matmul_reduced_float.h.
 */
#include "kernels/cpu/linalg/matmul.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#ifdef VEC_PAIRS
#include "kernels/cpu/linalg/matmul_f32.h"

#define UNIT	     2
#define MULADD	     vec_add_pairs
#define BROADCAST(x) vec_broadcast_pair(&(x))

#define SMALL_PRODUCT (1 << 13) /* multiplications up to which PAIRS_SMALL uses pairs */

#include "kernels/cpu/linalg/matmul_reduced_float.h"

static int product_of_pairs(const struct product *p)
{
	return reduced_float_product(p, false);
}
#endif

size_t CPU_NAME(matmul_pairs_pack)(const struct product *p, void *to)
{
#ifdef VEC_PAIRS
	return reduced_float_pack(p, false, to);
#else
	return 0;
#endif
}

#ifdef VEC_PAIRS
/* Few rows or columns: converted operands would not be used often enough, or b is read in place. */
static bool is_small(const struct product *p)
{
	return p->m <= DOT_ROWS || p->n <= DOT_ROWS || p->m * p->n * p->k <= SMALL_PRODUCT;
}
#endif

product_fn CPU_NAME(matmul_pairs)(const struct product *p)
{
#ifdef VEC_PAIRS
	enum cpu_pairs pairs = cpu_pairs();

	if (pairs == PAIRS_ALL || (pairs == PAIRS_SMALL && is_small(p)))
		return product_of_pairs;
#endif
	return NULL;
}
