// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of f16 and bf16 matrices, widened to f32 while they are packed. See
 * matmul_reduced_float.h.
 */
#include "kernels/cpu/linalg/matmul_f32.h"

#define UNIT 1

#include "kernels/cpu/linalg/matmul_reduced_float.h"

int CPU_NAME(matmul_f16)(const struct product *p)
{
	return reduced_float_product(p, true);
}

int CPU_NAME(matmul_bf16)(const struct product *p)
{
	product_fn pairs = CPU_NAME(matmul_pairs)(p);

	return pairs ? pairs(p) : reduced_float_product(p, false);
}

size_t CPU_NAME(matmul_f16_pack)(const struct product *p, void *to)
{
	return reduced_float_pack(p, true, to);
}

size_t CPU_NAME(matmul_bf16_pack)(const struct product *p, void *to)
{
	return CPU_NAME(matmul_pairs)(p) ? CPU_NAME(matmul_pairs_pack)(p, to) :
					   reduced_float_pack(p, false, to);
}
