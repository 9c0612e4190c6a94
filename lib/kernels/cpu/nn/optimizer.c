// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A step of Adam, of SGD with momentum and of Adagrad: each block of the parameter, its gradient
 * and its state is read and written once. f16 and bf16 are computed in f32 and rounded at the end
 * of a block.
 */
#include "kernels/abi/optimizer.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#include <math.h>

#define BLOCK 256 /* elements */

#define T	   float
#define SQRT	   sqrtf
#define LOOP(name) name##_f32
#include "kernels/cpu/nn/optimizer_loops.h"
#undef T
#undef SQRT
#undef LOOP
#define T	   double
#define SQRT	   sqrt
#define LOOP(name) name##_f64
#include "kernels/cpu/nn/optimizer_loops.h"

/* Converts n elements from index i on to f32. Returns to, or NULL if `from` is NULL. */
static float *load_f32(float *to, const void *from, enum tensor_dtype dtype, int64_t i, int64_t n)
{
	int64_t size = dtype_sizes[dtype];

	if (!from)
		return NULL;
	from = (const char *)from + i * size;
	CPU_NAME(convert)(to, TENSOR_F32, sizeof(*to), from, dtype, size, n);
	return to;
}

/* Converts n elements back, unless `to` is NULL. */
static void store_f32(void *to, const float *from, enum tensor_dtype dtype, int64_t i, int64_t n)
{
	int64_t size = dtype_sizes[dtype];

	if (!to)
		return;
	to = (char *)to + i * size;
	CPU_NAME(convert)(to, dtype, size, from, TENSOR_F32, sizeof(*from), n);
}

static void range_reduced_float(int64_t begin, int64_t end, void *ctx)
{
	const struct optimizer_step *s = ctx;
	float param[BLOCK], grad[BLOCK], states[OPTIMIZER_STATES][BLOCK], *state[OPTIMIZER_STATES];

	for (int64_t i = begin; i < end; i += BLOCK) {
		int64_t n = end - i < BLOCK ? end - i : BLOCK;

		load_f32(param, s->param, s->dtype, i, n);
		load_f32(grad, s->grad, s->dtype, i, n);
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			state[k] = load_f32(states[k], s->state[k], s->dtype, i, n);
		block_f32(s, param, grad, state, n);
		store_f32(s->param, param, s->dtype, i, n);
		if (s->scale != 1)
			store_f32(s->grad, grad, s->dtype, i, n);
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			store_f32(s->state[k], state[k], s->dtype, i, n);
	}
}

static int cpu_optimizer(const struct optimizer_step *s)
{
	parallel_fn fn = s->dtype == TENSOR_F64 ? range_f64 :
			 s->dtype == TENSOR_F32 ? range_f32 :
						  range_reduced_float;

	parallel_for(0, s->n, 1 << 14, fn, (void *)s);
	return 0;
}

CPU_KERNELS(KERNEL(optimizer))
