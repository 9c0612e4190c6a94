// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * sum, mean, nansum, prod, count_nonzero. The dtype of the result says in which elements are
 * added: integers of any kind as i64, the halves as f32.
 */
#include "kernels/cpu/reduce/reduce.h"

#define SUM_INT(d, T, D)     REDUCER(sum_##d, T, D, int64_t, TENSOR_I64, 0, e, x + y)
#define SUM_FLOAT(d, T, D)   REDUCER(sum_##d, T, D, T, D, 0, e, x + y)
#define SUM_COMPLEX(d, T, D) REDUCER_SCALAR(sum_##d, T, D, T, D, 0, e, x + y)
DTYPES_INT(SUM_INT)
DTYPES_FLOAT(SUM_FLOAT)
DTYPES_COMPLEX(SUM_COMPLEX)
REDUCER(sum_b8, uint8_t, TENSOR_BOOL, int64_t, TENSOR_I64, 0, e, x + y)
REDUCER_OF(BF16_, sum_bf16, uint16_t, TENSOR_BF16, float, TENSOR_F32, 0, e, e, x + y, x + y)

#define NANSUM(d, T, D)                                              \
	REDUCER_OF(SAME_, nansum_##d, T, D, T, D, 0, e == e ? e : 0, \
		   (__typeof__(e))((__typeof__(e == e))e & (e == e)), x + y, x + y)
DTYPES_FLOAT(NANSUM)

#define PROD(d, T, D) REDUCER(prod_##d, T, D, T, D, 1, e, x *y)
DTYPES_FLOAT(PROD)
PROD(i64, int64_t, TENSOR_I64)
/* Written out: the compiler's own product asks for infinities first. */
#define PROD_COMPLEX(d, T, D)                                                              \
	REDUCER_SCALAR(prod_##d, T, D, T, D, 1, e,                                         \
		       __builtin_complex(__real__ x *__real__ y - __imag__ x * __imag__ y, \
					 __real__ x * __imag__ y + __imag__ x * __real__ y))
DTYPES_COMPLEX(PROD_COMPLEX)

#define SUM(d, T, D)	 [D] = &sum_##d,
#define PROD_OF(d, T, D) [D] = &prod_##d,
static const struct reducer *const sums[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(SUM) DTYPES_COMPLEX(SUM)[TENSOR_BOOL] = &sum_b8,
	[TENSOR_F16] = &sum_f32,
	[TENSOR_F8_E4M3FN] = &sum_f32,
	[TENSOR_F8_E5M2] = &sum_f32,
	[TENSOR_BF16] = &sum_f32,
};
static const struct reducer *const prods[TENSOR_DTYPE_COUNT] = {
	DTYPES_FLOAT(PROD_OF) DTYPES_COMPLEX(PROD_OF)[TENSOR_I64] = &prod_i64,
	[TENSOR_F16] = &prod_f32,
	[TENSOR_F8_E4M3FN] = &prod_f32,
	[TENSOR_F8_E5M2] = &prod_f32,
	[TENSOR_BF16] = &prod_f32,
};

/* Integers and bf16 need no conversion to be added as such. */
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
		return kernel_no_dtype("mean", self->dtype, "cpu");
	}
	return CPU_NAME(reduce)(&mean, out, self, dims);
}

static int cpu_nansum(tensor *out, const tensor *self, uint32_t dims)
{
	struct reduction nansum = { .r = sum_of(out, self) };

	if (unlikely(dtype_is_complex(self->dtype)))
		return kernel_no_dtype("nansum", self->dtype, "cpu");
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

/* Elements become bool on their way in. */
static int cpu_count_nonzero(tensor *out, const tensor *self, uint32_t dims)
{
	const struct reduction count = { .r = &sum_b8 };

	return CPU_NAME(reduce)(&count, out, self, dims);
}

CPU_KERNELS(K(sum), K(mean), K(nansum), K(prod), K(count_nonzero))
