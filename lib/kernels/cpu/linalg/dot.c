// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * dot and vdot. Each chunk of the vectors gives a partial sum; these are added in the order of the
 * chunks. Within a chunk there are SUMS sums, which are added pairwise at the end. Integers wrap.
 */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#define SUMS 64 /* sums within a chunk: several vector registers of each element type */

struct dot {
	const char *a, *b;
	int64_t sa, sb; /* strides in elements */
	void *partial;	/* a sum for each chunk; four for complex elements */
};

#define LOOPS_FILE "kernels/cpu/linalg/dot_loops.h"
#include "kernels/cpu/simd/each_wrapping.h"
#include "kernels/cpu/simd/each_float.h"
#undef LOOPS_FILE

#define T      float
#define SUFFIX c64
#include "kernels/cpu/linalg/dot_complex_loops.h"
#undef T
#undef SUFFIX
#define T      double
#define SUFFIX c128
#include "kernels/cpu/linalg/dot_complex_loops.h"
#undef T
#undef SUFFIX

static int cpu_dot(tensor *out, const tensor *a, const tensor *b, bool conjugate);

/* to[0 .. n - 1] = the elements of t in f32. */
static void load_f32(float *to, const tensor *t)
{
	int64_t stride = t->strides[0] * itemsize(t);

	CPU_NAME(convert)(to, TENSOR_F32, sizeof(*to), t->data, t->dtype, stride, t->numel);
}

/* Dtypes narrower than f32 are summed in f32 and rounded once. */
static int reduced_float_dot(tensor *out, const tensor *a, const tensor *b)
{
	tensor *v = tensor_new(out->device, TENSOR_F32, (int64_t[]){ 2, a->numel }, 2), x, y,
	       sum = *out;
	float result;

	if (!v)
		return -thread()->error.code;
	load_f32(v->data, a);
	load_f32((float *)v->data + a->numel, b);
	x = y = *v;
	x.sizes[0] = x.numel = y.sizes[0] = y.numel = a->numel;
	x.ndim = y.ndim = x.strides[0] = y.strides[0] = 1;
	y.data = (float *)v->data + a->numel;
	sum.dtype = TENSOR_F32;
	sum.data = &result;
	cpu_dot(&sum, &x, &y, false);
	CPU_NAME(convert)(out->data, out->dtype, itemsize(out), &result, TENSOR_F32, 4, 1);
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
		return reduced_float_dot(out, a, b);
	if (!fns[out->dtype].chunk)
		return tensor_kernel_no_dtype("dot", out->dtype, "cpu");
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

CPU_KERNELS(KERNEL(dot))
