// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Vector norms of any order p, of absolute values: p = 2 adds squares, 1 adds values, 0 counts the
 * elements that are not zero, infinity and -infinity take the greatest and the least, any other p
 * adds powers.
 */
#include "kernels/cpu/reduce/reduce.h"

#include <tgmath.h>

/* Clears the sign bits of a vector. */
#define VEC_ABS(e) \
	((__typeof__(e))((__typeof__(e == e))(e) & ~(__typeof__(e == e))-(__typeof__(e)){ 0 }))

#define LOOPS_FILE "kernels/cpu/reduce/reducer_loops.h"

/* squares_f32, squares_f64 */
#define REDUCER	  squares
#define A	  T
#define GIVES	  D
#define IDENTITY  0
#define GET(e)	  ((e) * (e))
#define VGET(e)	  GET(e)
#define OP(x, y)  ((x) + (y))
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* abs_values_f32, abs_values_f64 */
#define REDUCER	  abs_values
#define A	  T
#define GIVES	  D
#define IDENTITY  0
#define GET(e)	  fabs(e)
#define VGET(e)	  VEC_ABS(e)
#define OP(x, y)  ((x) + (y))
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* nonzero_f32, nonzero_f64 */
#define REDUCER	  nonzero
#define A	  T
#define GIVES	  D
#define IDENTITY  0
#define GET(e)	  ((T)((e) != 0))
#define VGET(e)	  __builtin_convertvector(-((e) != 0), __typeof__(e))
#define OP(x, y)  ((x) + (y))
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* max_abs_f32, max_abs_f64 */
#define REDUCER	  max_abs
#define A	  T
#define GIVES	  D
#define IDENTITY  0
#define GET(e)	  fabs(e)
#define VGET(e)	  VEC_ABS(e)
#define OP(x, y)  ((((y) > (x)) | ((y) != (y))) ? (y) : (x))
#define VOP(x, y) CPU_PASTE(vec_max, SUFFIX)(x, y)
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* min_abs_f32, min_abs_f64 */
#define REDUCER	  min_abs
#define A	  T
#define GIVES	  D
#define IDENTITY  INFINITY
#define GET(e)	  fabs(e)
#define VGET(e)	  VEC_ABS(e)
#define OP(x, y)  ((((y) < (x)) | ((y) != (y))) ? (y) : (x))
#define VOP(x, y) CPU_PASTE(vec_min, SUFFIX)(x, y)
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/reduce/reducer_end.h"

#undef LOOPS_FILE

/* Converts elements to real numbers, complex ones to their absolute values. */
static void magnitudes(void *to, const char *from, enum tensor_dtype dtype, int64_t stride,
		       int64_t n, double p)
{
	enum tensor_dtype real = dtype_wide(dtype_real(dtype));

	if (dtype == TENSOR_C64)
		for (int64_t i = 0; i < n; i++, from += stride)
			((float *)to)[i] =
				hypotf(((const float *)from)[0], ((const float *)from)[1]);
	else if (dtype == TENSOR_C128)
		for (int64_t i = 0; i < n; i++, from += stride)
			((double *)to)[i] =
				hypot(((const double *)from)[0], ((const double *)from)[1]);
	else
		CPU_NAME(convert)(to, real, dtype_sizes[real], from, dtype, stride, n);
}

#define LOOPS_FILE "kernels/cpu/reduce/reduce_norm_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int cpu_norm(tensor *out, const tensor *self, uint32_t dims, double p)
{
	enum tensor_dtype real = dtype_wide(dtype_real(self->dtype));
	bool wide = real == TENSOR_F64;
	struct reduction norm = { .p = p };

	if (unlikely(real != TENSOR_F32 && !wide))
		return tensor_kernel_no_dtype("norm", self->dtype, "cpu");
	if (p == 2)
		norm.r = wide ? &squares_f64 : &squares_f32;
	else if (p == 0)
		norm.r = wide ? &nonzero_f64 : &nonzero_f32;
	else if (p == INFINITY)
		norm.r = wide ? &max_abs_f64 : &max_abs_f32;
	else if (p == -INFINITY)
		norm.r = wide ? &min_abs_f64 : &min_abs_f32;
	else
		norm.r = wide ? &abs_values_f64 : &abs_values_f32;
	if (dtype_is_complex(self->dtype))
		norm.fetch = magnitudes;
	if (p != 0 && p != 1 && isfinite(p)) {
		norm.finish = wide ? root_f64 : root_f32;
		if (p != 2)
			norm.fetch = wide ? powers_f64 : powers_f32;
	}
	return CPU_NAME(reduce)(&norm, out, self, dims);
}

CPU_KERNELS(KERNEL(norm))
