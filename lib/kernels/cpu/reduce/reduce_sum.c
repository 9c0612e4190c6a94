// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * sum, mean, nansum, prod, count_nonzero. The dtype of the result determines that of the
 * accumulators: i64 for integers, f32 for f16, bf16 and 8-bit floats.
 */
#include "kernels/cpu/reduce/reduce.h"

#define LOOPS_FILE "kernels/cpu/reduce/reducer_loops.h"

/* sum_u8 ... sum_u64, sum_b8, sum_f32, sum_f64, sum_bf16; sum_c64, sum_c128 */
#define REDUCER	  sum
#define IDENTITY  0
#define GET(e)	  (e)
#define OP(x, y)  ((x) + (y))
#define VGET(e)	  GET(e)
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/reduce/reducer_bf16.h"
#define A     int64_t
#define GIVES TENSOR_I64
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/reduce/reducer_bool.h"
#undef A
#undef GIVES
#define A     T
#define GIVES D
#include "kernels/cpu/simd/each_float.h"
#define REDUCER_SCALAR
#include "kernels/cpu/simd/each_complex.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* nansum_f32, nansum_f64 */
#define REDUCER	  nansum
#define A	  T
#define GIVES	  D
#define IDENTITY  0
#define GET(e)	  ((e) == (e) ? (e) : 0)
#define OP(x, y)  ((x) + (y))
#define VGET(e)	  ((__typeof__(e))((__typeof__((e) == (e)))(e) & ((e) == (e))))
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/reduce/reducer_end.h"

/* prod_f32, prod_f64, prod_i64 */
#define REDUCER	  prod
#define A	  T
#define GIVES	  D
#define IDENTITY  1
#define GET(e)	  (e)
#define OP(x, y)  ((x) * (y))
#define VGET(e)	  GET(e)
#define VOP(x, y) OP(x, y)
#include "kernels/cpu/simd/each_float.h"
#define T	int64_t
#define D	TENSOR_I64
#define SUFFIX	i64
#define LOAD(x) (x)
#include LOOPS_FILE
#undef T
#undef D
#undef SUFFIX
#undef LOAD
/* prod_c64, prod_c128: the product of C tests for infinities and NaN, which this one does not. */
#undef OP
#define REDUCER_SCALAR
#define OP(x, y)                                                                 \
	__builtin_complex(__real__(x) * __real__(y) - __imag__(x) * __imag__(y), \
			  __real__(x) * __imag__(y) + __imag__(x) * __real__(y))
#include "kernels/cpu/simd/each_complex.h"
#include "kernels/cpu/reduce/reducer_end.h"

#define SUM_ENTRY(d, T, D)  [D] = &sum_##d,
#define PROD_ENTRY(d, T, D) [D] = &prod_##d,
static const struct reducer *const sums[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(SUM_ENTRY) DTYPES_COMPLEX(SUM_ENTRY)[TENSOR_BOOL] = &sum_b8,
	[TENSOR_F16] = &sum_f32,
	[TENSOR_F8_E4M3FN] = &sum_f32,
	[TENSOR_F8_E5M2] = &sum_f32,
	[TENSOR_BF16] = &sum_f32,
};
static const struct reducer *const prods[TENSOR_DTYPE_COUNT] = {
	DTYPES_FLOAT(PROD_ENTRY) DTYPES_COMPLEX(PROD_ENTRY)[TENSOR_I64] = &prod_i64,
	[TENSOR_F16] = &prod_f32,
	[TENSOR_F8_E4M3FN] = &prod_f32,
	[TENSOR_F8_E5M2] = &prod_f32,
	[TENSOR_BF16] = &prod_f32,
};

/* The reducer of a sum; integers and bf16 have reducers that read them without conversion. */
static const struct reducer *sum_of(const tensor *out, const tensor *self)
{
	if (self->dtype == TENSOR_BF16 && dtype_wide(out->dtype) == TENSOR_F32)
		return &sum_bf16;
	if (out->dtype == TENSOR_BOOL || !dtype_is_integral(out->dtype))
		return sums[out->dtype];
	return sums[dtype_is_integral(self->dtype) ? self->dtype : out->dtype];
}

static int cpu_sum(tensor *out, const tensor *self, uint32_t dims)
{
	struct reduction sum = { .r = sum_of(out, self) };

	return CPU_NAME(reduce)(&sum, out, self, dims);
}

#define MEAN(d, T, D)                                                                           \
	static void mean_##d(void *result, const void *acc, int64_t n, int64_t count, double p) \
	{                                                                                       \
		for (int64_t i = 0; i < n; i++)                                                 \
			((T *)result)[i] = ((const T *)acc)[i] / (T)count;                      \
	}
DTYPES_FLOAT(MEAN)
#define MEAN_COMPLEX(d, T, R)                                                                   \
	static void mean_##d(void *result, const void *acc, int64_t n, int64_t count, double p) \
	{                                                                                       \
		for (int64_t i = 0; i < 2 * n; i++)                                             \
			((R *)result)[i] = ((const R *)acc)[i] / (R)count;                      \
	}
MEAN_COMPLEX(c64, float complex, float)
MEAN_COMPLEX(c128, double complex, double)

static int cpu_mean(tensor *out, const tensor *self, uint32_t dims)
{
	struct reduction mean = { .r = sum_of(out, self) };

	switch (mean.r->gives) {
	case TENSOR_F32:
		mean.finish = mean_f32;
		break;
	case TENSOR_F64:
		mean.finish = mean_f64;
		break;
	case TENSOR_C64:
		mean.finish = mean_c64;
		break;
	case TENSOR_C128:
		mean.finish = mean_c128;
		break;
	default:
		return tensor_kernel_no_dtype("mean", self->dtype, "cpu");
	}
	return CPU_NAME(reduce)(&mean, out, self, dims);
}

static int cpu_nansum(tensor *out, const tensor *self, uint32_t dims)
{
	struct reduction nansum = { .r = sum_of(out, self) };

	if (unlikely(dtype_is_complex(self->dtype)))
		return tensor_kernel_no_dtype("nansum", self->dtype, "cpu");
	if (nansum.r == &sum_f32 || nansum.r == &sum_bf16)
		nansum.r = &nansum_f32;
	else if (nansum.r == &sum_f64)
		nansum.r = &nansum_f64;
	return CPU_NAME(reduce)(&nansum, out, self, dims);
}

static int cpu_prod(tensor *out, const tensor *self, uint32_t dims)
{
	struct reduction prod = {
		.r = prods[dtype_is_integral(out->dtype) ? TENSOR_I64 : out->dtype]
	};

	return CPU_NAME(reduce)(&prod, out, self, dims);
}

/* Elements are converted to bool and counted. */
static int cpu_count_nonzero(tensor *out, const tensor *self, uint32_t dims)
{
	const struct reduction count = { .r = &sum_b8 };

	return CPU_NAME(reduce)(&count, out, self, dims);
}

CPU_KERNELS(KERNEL(sum), KERNEL(mean), KERNEL(nansum), KERNEL(prod), KERNEL(count_nonzero))
