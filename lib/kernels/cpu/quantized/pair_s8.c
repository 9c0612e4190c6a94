// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sums and products of two quantized tensors, in one pass. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/quantized.h"
#include "kernels/formula/quantize.h"

#define T	uint8_t
#define SUFFIX	u8
#define LOWEST	0
#define HIGHEST UINT8_MAX
#include "kernels/cpu/quantized/pair_s8_loops.h"
#undef T
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

#define T	int8_t
#define SUFFIX	i8
#define LOWEST	INT8_MIN
#define HIGHEST INT8_MAX
#include "kernels/cpu/quantized/pair_s8_loops.h"
#undef T
#undef SUFFIX
#undef LOWEST
#undef HIGHEST

static int cpu_pair_s8(const struct pair_s8 *p)
{
	parallel_fn fn = p->product   ? (p->is_signed ? product_i8 : product_u8) :
			 p->is_signed ? sum_i8 :
					sum_u8;

	parallel_for(0, p->n, ITER_GRAIN, fn, (void *)p);
	return 0;
}

CPU_KERNELS(KERNEL(pair_s8))
