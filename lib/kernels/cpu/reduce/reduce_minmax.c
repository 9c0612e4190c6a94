// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The greatest and the least: max, min, amax, amin; any and all. */
#include "kernels/cpu/reduce/reduce.h"

#include <math.h>

/* A NaN wins, and stays. */
#define MAX_AS(FORM, d, T, D, A, G, LOWEST, VMAX) \
	REDUCER_OF(FORM, max_##d, T, D, A, G, LOWEST, e, e, ((y > x) | (y != y)) ? y : x, VMAX)
#define MIN_AS(FORM, d, T, D, A, G, HIGHEST, VMIN) \
	REDUCER_OF(FORM, min_##d, T, D, A, G, HIGHEST, e, e, ((y < x) | (y != y)) ? y : x, VMIN)
#define MAX(d, T, D, LOWEST)  MAX_AS(SAME_, d, T, D, T, D, LOWEST, PICK(y > x, y, x))
#define MIN(d, T, D, HIGHEST) MIN_AS(SAME_, d, T, D, T, D, HIGHEST, PICK(y < x, y, x))
MAX(u8, uint8_t, TENSOR_U8, 0)
MAX(i8, int8_t, TENSOR_I8, INT8_MIN)
MAX(i16, int16_t, TENSOR_I16, INT16_MIN)
MAX(i32, int32_t, TENSOR_I32, INT32_MIN)
MAX(u16, uint16_t, TENSOR_U16, 0)
MAX(u32, uint32_t, TENSOR_U32, 0)
MAX(u64, uint64_t, TENSOR_U64, 0)
MAX(i64, int64_t, TENSOR_I64, INT64_MIN)
MAX_AS(SAME_, f32, float, TENSOR_F32, float, TENSOR_F32, -INFINITY, vec_max_f32(x, y))
MAX_AS(SAME_, f64, double, TENSOR_F64, double, TENSOR_F64, -INFINITY, vec_max_f64(x, y))
MIN(u8, uint8_t, TENSOR_U8, UINT8_MAX)
MIN(i8, int8_t, TENSOR_I8, INT8_MAX)
MIN(i16, int16_t, TENSOR_I16, INT16_MAX)
MIN(i32, int32_t, TENSOR_I32, INT32_MAX)
MIN(u16, uint16_t, TENSOR_U16, UINT16_MAX)
MIN(u32, uint32_t, TENSOR_U32, UINT32_MAX)
MIN(u64, uint64_t, TENSOR_U64, UINT64_MAX)
MIN(i64, int64_t, TENSOR_I64, INT64_MAX)
MIN_AS(SAME_, f32, float, TENSOR_F32, float, TENSOR_F32, INFINITY, vec_min_f32(x, y))
MIN_AS(SAME_, f64, double, TENSOR_F64, double, TENSOR_F64, INFINITY, vec_min_f64(x, y))
MAX_AS(BF16_, bf16, uint16_t, TENSOR_BF16, float, TENSOR_F32, -INFINITY, vec_max_f32(x, y))
MIN_AS(BF16_, bf16, uint16_t, TENSOR_BF16, float, TENSOR_F32, INFINITY, vec_min_f32(x, y))
REDUCER(any, uint8_t, TENSOR_BOOL, uint8_t, TENSOR_BOOL, 0, e, x | y)
REDUCER(all, uint8_t, TENSOR_BOOL, uint8_t, TENSOR_BOOL, 1, e, x &y)

#define MAX_OF(d, T, D) [D] = &max_##d,
#define MIN_OF(d, T, D) [D] = &min_##d,
static const struct reducer *const maxima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MAX_OF)[TENSOR_BOOL] = &any,
	[TENSOR_F16] = &max_f32,
	[TENSOR_F8_E4M3FN] = &max_f32,
	[TENSOR_F8_E5M2] = &max_f32,
	[TENSOR_BF16] = &max_bf16,
};
static const struct reducer *const minima[TENSOR_DTYPE_COUNT] = {
	DTYPES_NUMBER(MIN_OF)[TENSOR_BOOL] = &all,
	[TENSOR_F16] = &min_f32,
	[TENSOR_F8_E4M3FN] = &min_f32,
	[TENSOR_F8_E5M2] = &min_f32,
	[TENSOR_BF16] = &min_bf16,
};

static int run(const char *name, const struct reducer *r, tensor *out, const tensor *self,
	       uint32_t dims)
{
	const struct reduction what = { .r = r };

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
