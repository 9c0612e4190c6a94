// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Copies of sources of bf16, for the gradient of the weights by pairs of positions. See conv_copy.h. */
#define T	uint16_t
#define CONV(x) CPU_NAME(x##_bf16)

#include "kernels/cpu/nn/conv/conv.h"

#include "kernels/cpu/simd/vec_reduced_float.h"

#include "iter/parallel.h"

#ifdef VEC_PAIRS
/* Pairs of adjacent elements, of which the first ones are stored; the last pair is only one element. */
static void second_elements(uint16_t *to, const uint16_t *in, int64_t n)
{
	for (int64_t i = 0; i < n; i += VEC_F32) {
		int64_t count = min64(n - i, VEC_F32);
		vec_u32 pairs = (vec_u32)vec_load_pairs(in + 2 * i, 2 * count - 1);

		vec_store_reduced_float(to + i, vec_upper_u16(pairs << 16), count);
	}
}
#define COPY_SECOND second_elements
#endif

#define COPY_BY_ELEMENTS
#include "kernels/cpu/nn/conv/conv_copy.h"
