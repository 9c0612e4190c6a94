// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The greatest and the least: max, min, amax, amin; any and all. */
#include "reduce.h"

#include <math.h>

/* A NaN wins, and stays. */
#define MAX(d, T, D, LOWEST)  REDUCER(max_##d, T, D, T, D, LOWEST, 1, e, ((y > x) | (y != y)) ? y : x)
#define MIN(d, T, D, HIGHEST) REDUCER(min_##d, T, D, T, D, HIGHEST, 1, e, ((y < x) | (y != y)) ? y : x)
MAX(u8, uint8_t, TENSOR_U8, 0)
MAX(i8, int8_t, TENSOR_I8, INT8_MIN)
MAX(i16, int16_t, TENSOR_I16, INT16_MIN)
MAX(i32, int32_t, TENSOR_I32, INT32_MIN)
MAX(i64, int64_t, TENSOR_I64, INT64_MIN)
MAX(f32, float, TENSOR_F32, -INFINITY)
MAX(f64, double, TENSOR_F64, -INFINITY)
MIN(u8, uint8_t, TENSOR_U8, UINT8_MAX)
MIN(i8, int8_t, TENSOR_I8, INT8_MAX)
MIN(i16, int16_t, TENSOR_I16, INT16_MAX)
MIN(i32, int32_t, TENSOR_I32, INT32_MAX)
MIN(i64, int64_t, TENSOR_I64, INT64_MAX)
MIN(f32, float, TENSOR_F32, INFINITY)
MIN(f64, double, TENSOR_F64, INFINITY)
REDUCER(any, uint8_t, TENSOR_BOOL, uint8_t, TENSOR_BOOL, 0, 8, e, x | y)
REDUCER(all, uint8_t, TENSOR_BOOL, uint8_t, TENSOR_BOOL, 1, 8, e, x &y)

#define MAX_OF(d, T, D) [D] = &max_##d,
#define MIN_OF(d, T, D) [D] = &min_##d,
static const struct reducer *const maxima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MAX_OF)[TENSOR_BOOL] = &any,
	[TENSOR_F16] = &max_f32,
	[TENSOR_BF16] = &max_f32,
};
static const struct reducer *const minima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MIN_OF)[TENSOR_BOOL] = &all,
	[TENSOR_F16] = &min_f32,
	[TENSOR_BF16] = &min_f32,
};

static int run(const char *name, const struct reducer *r, tensor *out, const tensor *self,
	       uint32_t dims)
{
	const struct reduction what = {.r = r};

	return likely(r) ? CPU_NAME(reduce)(&what, out, self, dims) :
			   kernel_no_dtype(name, self->dtype, "cpu");
}

static int cpu_max_all(tensor *out, const tensor *self, uint32_t dims)
{
	return run("max", maxima[self->dtype], out, self, dims);
}

static int cpu_min_all(tensor *out, const tensor *self, uint32_t dims)
{
	return run("min", minima[self->dtype], out, self, dims);
}

/* Elements become bool on their way in; the result may be u8. */
static int cpu_any(tensor *out, const tensor *self, uint32_t dims)
{
	return run("any", &any, out, self, dims);
}

static int cpu_all(tensor *out, const tensor *self, uint32_t dims)
{
	return run("all", &all, out, self, dims);
}

CPU_KERNELS(K(max_all), K(min_all), K(any), K(all))
