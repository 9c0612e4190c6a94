// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of f16 and bf16 matrices, widened to f32 while they are packed. See matmul_half.h. */
#include "vec.h"

#define T	 float
#define VEC	 vec_f32
typedef int32_t mask_f32 __attribute__((vector_size(VEC_BYTES)));
#define MASK	 mask_f32
#define PART(n)	 vec_part_f32(n)
#define LOAD	 vec_load_f32
#define STORE	 vec_store_f32
#define LANES	 VEC_F32
#define UNIT	 1

#include "matmul_half.h"

int CPU_NAME(matmul_f16)(const struct product *p)
{
	return half_product(p, true);
}

int CPU_NAME(matmul_bf16)(const struct product *p)
{
	product_fn pairs = CPU_NAME(matmul_pairs)();

	return pairs ? pairs(p) : half_product(p, false);
}
