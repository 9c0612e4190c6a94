// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A step of Adam, of descent with momentum and of Adagrad: each block of the parameter, its
 * gradient and its state is read and written once. Halves are computed as f32 and rounded at the
 * end of a block.
 */
#include "kernels/abi/optimizer.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#include <math.h>

#define BLOCK 256

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

/* n elements at position i of a tensor of a narrower float to f32 or back; NULL passes. */
static float *unpack(float *to, const void *from, enum tensor_dtype dtype, int64_t i, int64_t n)
{
	int64_t size = dtype_sizes[dtype];

	if (!from)
		return NULL;
	CPU_NAME(convert)
	(to, TENSOR_F32, sizeof(float), (const char *)from + i * size, dtype, size, n);
	return to;
}

static void pack(void *to, const float *from, enum tensor_dtype dtype, int64_t i, int64_t n)
{
	int64_t size = dtype_sizes[dtype];

	if (to)
		CPU_NAME(convert)
	((char *)to + i * size, dtype, size, from, TENSOR_F32, sizeof(float), n);
}

static void range_narrow(int64_t begin, int64_t end, void *ctx)
{
	const struct optimizer_step *s = ctx;
	float param[BLOCK], grad[BLOCK], states[OPTIMIZER_STATES][BLOCK], *state[OPTIMIZER_STATES];

	for (int64_t i = begin; i < end; i += BLOCK) {
		int64_t n = end - i < BLOCK ? end - i : BLOCK;

		unpack(param, s->param, s->dtype, i, n);
		unpack(grad, s->grad, s->dtype, i, n);
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			state[k] = unpack(states[k], s->state[k], s->dtype, i, n);
		block_f32(s, param, grad, state, n);
		pack(s->param, param, s->dtype, i, n);
		if (s->scale != 1)
			pack(s->grad, grad, s->dtype, i, n);
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			pack(s->state[k], state[k], s->dtype, i, n);
	}
}

static int cpu_optimizer(const struct optimizer_step *s)
{
	parallel_fn fn = s->dtype == TENSOR_F64 ? range_f64 :
			 s->dtype == TENSOR_F32 ? range_f32 :
						  range_narrow;

	parallel_for(0, s->n, 1 << 14, fn, (void *)s);
	return 0;
}

CPU_KERNELS(K(optimizer))
