// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * dot and vdot. Chunks of the vectors give partial sums, which are added in their order; within a
 * chunk there are as many sums as fill the registers, then they are added pairwise. Integers wrap.
 */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#define SUMS 64 /* partial sums of a chunk: several registers of each element type */

struct dot {
	const char *a, *b;
	int64_t sa, sb; /* elements */
	void *partial;
};

#define DOT(d, T, D)                                                                     \
	static T contiguous_##d(const T *a, const T *b, int64_t n)                       \
	{                                                                                \
		T sum[SUMS] = { 0 };                                                     \
		int64_t i = 0;                                                           \
                                                                                         \
		for (; i + SUMS <= n; i += SUMS)                                         \
			for (int j = 0; j < SUMS; j++)                                   \
				sum[j] = (T)(sum[j] + a[i + j] * b[i + j]);              \
		for (int j = 0; i + j < n; j++)                                          \
			sum[j] = (T)(sum[j] + a[i + j] * b[i + j]);                      \
		for (int s = SUMS / 2; s; s /= 2)                                        \
			for (int j = 0; j < s; j++)                                      \
				sum[j] = (T)(sum[j] + sum[j + s]);                       \
		return sum[0];                                                           \
	}                                                                                \
	static void dot_##d(int64_t begin, int64_t end, void *ctx)                       \
	{                                                                                \
		const struct dot *t = ctx;                                               \
		const T *a = (const T *)t->a + begin * t->sa;                            \
		const T *b = (const T *)t->b + begin * t->sb;                            \
		T *to = (T *)t->partial + begin / ITER_GRAIN, x[SUMS], y[SUMS], sum = 0; \
                                                                                         \
		if (t->sa == 1 && t->sb == 1) {                                          \
			*to = contiguous_##d(a, b, end - begin);                         \
			return;                                                          \
		}                                                                        \
		for (int64_t i = begin; i < end; i += SUMS) {                            \
			int64_t n = end - i < SUMS ? end - i : SUMS;                     \
                                                                                         \
			for (int64_t j = 0; j < n; j++, a += t->sa, b += t->sb)          \
				x[j] = *a, y[j] = *b;                                    \
			sum = (T)(sum + contiguous_##d(x, y, n));                        \
		}                                                                        \
		*to = sum;                                                               \
	}
DTYPES_WRAPPING(DOT)
DTYPES_FLOAT(DOT)

/* Real and imaginary part of a chunk, summed in f64. */
#define DOT_COMPLEX(d, T, D)                                                            \
	static void dot_##d(int64_t begin, int64_t end, void *ctx)                      \
	{                                                                               \
		const struct dot *t = ctx;                                              \
		const T *a = (const T *)t->a + 2 * begin * t->sa;                       \
		const T *b = (const T *)t->b + 2 * begin * t->sb;                       \
		T *to = (T *)t->partial + begin / ITER_GRAIN * 4;                       \
		double rr = 0, ii = 0, ri = 0, ir = 0;                                  \
                                                                                        \
		for (int64_t i = begin; i < end; i++, a += 2 * t->sa, b += 2 * t->sb) { \
			rr += (double)a[0] * b[0];                                      \
			ii += (double)a[1] * b[1];                                      \
			ri += (double)a[0] * b[1];                                      \
			ir += (double)a[1] * b[0];                                      \
		}                                                                       \
		to[0] = (T)rr, to[1] = (T)ii, to[2] = (T)ri, to[3] = (T)ir;             \
	}
DOT_COMPLEX(c64, float, TENSOR_C64)
DOT_COMPLEX(c128, double, TENSOR_C128)

/* Adds the partial sums. */
#define TOTAL(d, T, D)                                                                   \
	static void total_##d(void *out, const void *partial, int64_t n, bool conjugate) \
	{                                                                                \
		T sum = 0;                                                               \
                                                                                         \
		for (int64_t i = 0; i < n; i++)                                          \
			sum = (T)(sum + ((const T *)partial)[i]);                        \
		*(T *)out = sum;                                                         \
	}
DTYPES_WRAPPING(TOTAL)
DTYPES_FLOAT(TOTAL)
#define TOTAL_COMPLEX(d, T, D)                                                           \
	static void total_##d(void *out, const void *partial, int64_t n, bool conjugate) \
	{                                                                                \
		const T *p = partial;                                                    \
		T re = 0, im = 0;                                                        \
                                                                                         \
		for (int64_t i = 0; i < n; i++, p += 4) {                                \
			re += conjugate ? p[0] + p[1] : p[0] - p[1];                     \
			im += conjugate ? p[2] - p[3] : p[2] + p[3];                     \
		}                                                                        \
		((T *)out)[0] = re;                                                      \
		((T *)out)[1] = im;                                                      \
	}
TOTAL_COMPLEX(c64, float, TENSOR_C64)
TOTAL_COMPLEX(c128, double, TENSOR_C128)

static int cpu_dot(tensor *out, const tensor *a, const tensor *b, bool conjugate);

/* What is narrower than f32 is summed as that and rounded once. */
static int half_dot(tensor *out, const tensor *a, const tensor *b)
{
	tensor *v = tensor_new(out->device, TENSOR_F32, (int64_t[]){ 2, a->numel }, 2), x, y,
	       sum = *out;
	float result;

	if (!v)
		return -thread()->error.code;
	CPU_NAME(convert)
	(v->data, TENSOR_F32, sizeof(float), a->data, a->dtype, a->strides[0] * itemsize(a),
	 a->numel);
	CPU_NAME(convert)
	((float *)v->data + a->numel, TENSOR_F32, sizeof(float), b->data, b->dtype,
	 b->strides[0] * itemsize(b), a->numel);
	x = y = *v;
	x.sizes[0] = x.numel = y.sizes[0] = y.numel = a->numel;
	x.ndim = y.ndim = x.strides[0] = y.strides[0] = 1;
	y.data = (float *)v->data + a->numel;
	sum.dtype = TENSOR_F32;
	sum.data = &result;
	cpu_dot(&sum, &x, &y, false);
	CPU_NAME(convert)
	(out->data, out->dtype, itemsize(out), &result, TENSOR_F32, sizeof(float), 1);
	tensor_put(v);
	return 0;
}

static int cpu_dot(tensor *out, const tensor *a, const tensor *b, bool conjugate)
{
	static const struct {
		parallel_fn chunk;
		void (*total)(void *, const void *, int64_t, bool);
	} fns[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = { dot_##d, total_##d },
		DTYPES_WRAPPING(ENTRY) DTYPES_FLOAT(ENTRY) ENTRY(i16, uint16_t, TENSOR_U16)
			ENTRY(i32, uint32_t, TENSOR_U32) ENTRY(i64, uint64_t, TENSOR_U64)
				ENTRY(c64, float, TENSOR_C64) ENTRY(c128, double, TENSOR_C128)
#undef ENTRY
	};
	int64_t chunks = (a->numel + ITER_GRAIN - 1) / ITER_GRAIN;
	char few[256];
	struct dot t = { .a = a->data, .b = b->data, .sa = a->strides[0], .sb = b->strides[0] };
	struct tensor_storage *s = NULL;

	if (dtype_wide(out->dtype) != out->dtype)
		return half_dot(out, a, b);
	if (!fns[out->dtype].chunk)
		return kernel_no_dtype("dot", out->dtype, "cpu");
	t.partial = few;
	if (chunks * 32 > (int64_t)sizeof(few)) {
		s = storage_alloc(TENSOR_DEVICE_CPU, chunks * 32, false);
		if (!s)
			return -thread()->error.code;
		t.partial = s->data;
	}
	parallel_for(0, a->numel, ITER_GRAIN, fns[out->dtype].chunk, &t);
	fns[out->dtype].total(out->data, t.partial, chunks, conjugate);
	if (s)
		storage_put(s);
	return 0;
}

CPU_KERNELS(K(dot))
