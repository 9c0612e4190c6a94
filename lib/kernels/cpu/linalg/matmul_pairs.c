// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of bf16 matrices by an instruction that adds the products of pairs. No instruction-set
 * level includes it, so it is used only if pairs_for() is true. See matmul_reduced_float.h.
 */
#include "kernels/cpu/linalg/matmul.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#ifdef VEC_PAIRS
#include "kernels/cpu/linalg/matmul_f32.h"

#define UNIT	     2
#define MULADD	     vec_add_pairs
#define BROADCAST(x) vec_broadcast_pair(&(x))

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

product_fn CPU_NAME(matmul_pairs)(int64_t m)
{
#ifdef VEC_PAIRS
	if (pairs_for(m))
		return product_of_pairs;
#endif
	return NULL;
}
