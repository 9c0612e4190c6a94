// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * logsumexp. An accumulator holds the greatest element, max, and the sum of exp(x - max). A
 * block is read twice while it is in the cache.
 */
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/simd/vecmath.h"

#include <tgmath.h>

#define CHUNK	   2048	       /* elements that stay in the cache between two readings */
#define COLUMNS	   (CHUNK / 4) /* contiguous columns that are reduced together */
#define STRIP_ROWS 16	       /* rows of strided columns that are copied together */

static inline vec_f32 vec_exp_f32(vec_f32 x)
{
	return exp_f32v(x);
}

static inline vec_f64 vec_exp_f64(vec_f64 x)
{
	return exp_f64v(x);
}

static inline vec_f32 vec_log_f32(vec_f32 x)
{
	return log_f32v(x);
}

static inline vec_f64 vec_log_f64(vec_f64 x)
{
	return log_f64v(x);
}

#define LOOPS_FILE "kernels/cpu/reduce/reduce_logsumexp_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int cpu_logsumexp(tensor *out, const tensor *self, uint32_t dims)
{
	static const struct reduction f32 = { .r = &logsumexp_f32, .finish = logsumexp_finish_f32 };
	static const struct reduction f64 = { .r = &logsumexp_f64, .finish = logsumexp_finish_f64 };

	if (unlikely(dtype_is_complex(self->dtype)))
		return tensor_kernel_no_dtype("logsumexp", self->dtype, "cpu");
	return CPU_NAME(reduce)(out->dtype == TENSOR_F64 ? &f64 : &f32, out, self, dims);
}

CPU_KERNELS(KERNEL(logsumexp))
