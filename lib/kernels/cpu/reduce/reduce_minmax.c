// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Greatest and least element: max, min, amax, amin; any and all, those of bool elements. */
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/simd/vec_minmax_int.h"

#include <math.h>

#define LOOPS_FILE "kernels/cpu/reduce/reducer_loops.h"

/* max_u8 ... max_u64, max_f32, max_f64, max_bf16; the result is NaN if an element is. */
#define REDUCER	  max
#define GET(e)	  (e)
#define VGET(e)	  GET(e)
#define IDENTITY  LOWEST
#define OP(x, y)  ((((y) > (x)) | ((y) != (y))) ? (y) : (x))
#define VOP(x, y) CPU_PASTE(vec_max, SUFFIX)(x, y)
#define A	  T
#define GIVES	  D
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#undef A
#undef GIVES
#undef IDENTITY
#undef VOP
#define IDENTITY  (-INFINITY)
#define VOP(x, y) vec_max_f32(x, y)
#include "kernels/cpu/reduce/reducer_bf16.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* min_u8 ... min_u64, min_f32, min_f64, min_bf16; the result is NaN if an element is. */
#define REDUCER	  min
#define GET(e)	  (e)
#define VGET(e)	  GET(e)
#define IDENTITY  HIGHEST
#define OP(x, y)  ((((y) < (x)) | ((y) != (y))) ? (y) : (x))
#define VOP(x, y) CPU_PASTE(vec_min, SUFFIX)(x, y)
#define A	  T
#define GIVES	  D
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#undef A
#undef GIVES
#undef IDENTITY
#undef VOP
#define IDENTITY  INFINITY
#define VOP(x, y) vec_min_f32(x, y)
#include "kernels/cpu/reduce/reducer_bf16.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* any_b8 */
#define REDUCER	  any
#define A	  T
#define GIVES	  D
#define IDENTITY  0
#define GET(e)	  (e)
#define OP(x, y)  ((x) | (y))
#define VGET(e)	  GET(e)
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/reduce/reducer_bool.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* all_b8 */
#define REDUCER	  all
#define A	  T
#define GIVES	  D
#define IDENTITY  1
#define GET(e)	  (e)
#define OP(x, y)  ((x) & (y))
#define VGET(e)	  GET(e)
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/reduce/reducer_bool.h"
#include "kernels/cpu/reduce/reducer_end.h"

#define MAX_ENTRY(d, T, D) [D] = &max_##d,
#define MIN_ENTRY(d, T, D) [D] = &min_##d,
static const struct reducer *const maxima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MAX_ENTRY)[TENSOR_BOOL] = &any_b8,
	[TENSOR_F16] = &max_f32,
	[TENSOR_F8_E4M3FN] = &max_f32,
	[TENSOR_F8_E5M2] = &max_f32,
	[TENSOR_BF16] = &max_bf16,
};
static const struct reducer *const minima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MIN_ENTRY)[TENSOR_BOOL] = &all_b8,
	[TENSOR_F16] = &min_f32,
	[TENSOR_F8_E4M3FN] = &min_f32,
	[TENSOR_F8_E5M2] = &min_f32,
	[TENSOR_BF16] = &min_bf16,
};

static int reduce_with(const char *name, const struct reducer *r, tensor *out, const tensor *self,
		       uint32_t dims)
{
	const struct reduction what = { .r = r };

	return likely(r) ? CPU_NAME(reduce)(&what, out, self, dims) :
			   tensor_kernel_no_dtype(name, self->dtype, "cpu");
}

static int cpu_max_all(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce_with("max", maxima[self->dtype], out, self, dims);
}

static int cpu_min_all(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce_with("min", minima[self->dtype], out, self, dims);
}

/* Elements are converted to bool; the result may be u8. */
static int cpu_any(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce_with("any", &any_b8, out, self, dims);
}

static int cpu_all(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce_with("all", &all_b8, out, self, dims);
}

CPU_KERNELS(KERNEL(max_all), KERNEL(min_all), KERNEL(any), KERNEL(all))
