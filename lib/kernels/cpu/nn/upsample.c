// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Interpolation, one dimension after the other: each output position of a dimension is a weighted
 * sum of one, two or four input positions, which a table lists. Rows are interpolated along the
 * last dimension first, then summed for the other dimensions; the gradient reverses both steps.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

#include <math.h>

#define TAPS 4

struct upsample {
	int64_t planes, in[3], out[3];
	int taps;
	int64_t *at[3];	 /* [out * taps] */
	void *weight[3]; /* the same, of the dtype */
	void *to;
	const void *from;
	_Atomic bool failed;
};

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* floor(x), limited to least .. in - 1. x may be infinite or NaN, depending on the scale. */
static int64_t position(double x, int64_t least, int64_t in)
{
	return x >= (double)(in - 1) ? in - 1 : x >= (double)least ? (int64_t)floor(x) : least;
}

/* A dimension that is not interpolated has one tap, with weight 1. */
static int64_t taps_of(const struct upsample *u, int d)
{
	return u->in[d] == 1 && u->out[d] == 1 ? 1 : u->taps;
}

#define LOOPS_FILE "kernels/cpu/nn/upsample_loops.h"
#include "kernels/cpu/simd/each_float.h"

#define T      uint8_t
#define SUFFIX u8
#include "kernels/cpu/nn/upsample_nearest_loops.h"
#undef T
#undef SUFFIX

#define T      uint32_t
#define SUFFIX u32
#include "kernels/cpu/nn/upsample_nearest_loops.h"
#undef T
#undef SUFFIX

#define T      uint64_t
#define SUFFIX u64
#include "kernels/cpu/nn/upsample_nearest_loops.h"
#undef T
#undef SUFFIX

static int64_t size_of(const tensor *t, int d, int spatial)
{
	return d < 3 - spatial ? 1 : t->sizes[t->ndim - 3 + d];
}

/* `in` and `out` are those of the forward. */
static int interpolate(const char *name, tensor *to, const tensor *from, const tensor *in,
		       const tensor *out, const struct upsample_params *p, bool backward)
{
	struct upsample u = { .planes = in->sizes[0] * in->sizes[1],
			      .to = to->data,
			      .from = from->data };
	bool wide = in->dtype == TENSOR_F64;
	int64_t n = 0, work = 1;
	struct tensor_storage *table;
	parallel_fn fn;

	u.taps = p->mode == UPSAMPLE_CUBIC ? 4 : p->mode == UPSAMPLE_LINEAR ? 2 : 1;
	if (in->dtype != TENSOR_F32 && !wide && (in->dtype != TENSOR_U8 || u.taps > 1 || backward))
		return tensor_kernel_no_dtype(name, in->dtype, "cpu");
	if (!u.planes)
		return 0;
	for (int d = 0; d < 3; d++) {
		u.in[d] = size_of(in, d, p->spatial);
		u.out[d] = size_of(out, d, p->spatial);
		n += u.out[d] * u.taps;
		work *= u.in[d] > u.out[d] ? u.in[d] : u.out[d];
	}
	table = storage_alloc(TENSOR_DEVICE_CPU, 2 * n * sizeof(int64_t), false);
	if (!table)
		return -thread()->error.code;
	u.at[0] = table->data;
	u.weight[0] = u.at[0] + n;
	for (int d = 0; d < 3; d++) {
		if (d) {
			u.at[d] = u.at[d - 1] + u.out[d - 1] * u.taps;
			u.weight[d] = (int64_t *)u.weight[d - 1] + u.out[d - 1] * u.taps;
		}
		wide ? table_f64(&u, d, p) : table_f32(&u, d, p);
	}
	fn = backward ? (wide ? backward_f64 : backward_f32) : wide ? forward_f64 : forward_f32;
	if (!backward && u.taps == 1)
		fn = wide ? select_u64 : in->dtype == TENSOR_U8 ? select_u8 : select_u32;
	parallel_for(0, u.planes, work < ITER_GRAIN ? ITER_GRAIN / work : 1, fn, &u);
	storage_put(table);
	return u.failed ? tensor_fail(ENOMEM, "%s: no memory for rows", name) : 0;
}

static int cpu_upsample(tensor *out, const tensor *in, const struct upsample_params *params)
{
	return interpolate("upsample", out, in, in, out, params, false);
}

static int cpu_upsample_backward(tensor *out, const tensor *grad,
				 const struct upsample_params *params)
{
	return interpolate("upsample_backward", out, grad, out, grad, params, true);
}

CPU_KERNELS(KERNEL(upsample), KERNEL(upsample_backward))
