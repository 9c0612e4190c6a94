// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Distances between rows, and their gradients. Every distance is computed from the differences of
 * the elements, not from products of rows, which would lose the digits of near points.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/distance.h"
#include "iter/parallel.h"

#include <math.h>

#define SUMS 16 /* partial sums along a row */

/* x [b, n, length], y [b, m, length]; pdist: y is x and b is 1. */
struct pairs {
	void *out;
	const void *x, *y, *grad, *distance;
	int64_t n, m, length;
	double p;
};

enum norm { NORM_0, NORM_1, NORM_2, NORM_INF };

#define LOOPS_FILE "kernels/cpu/nn/distance_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int for_rows(const char *name, const struct pairs *t, int64_t rows, enum tensor_dtype dtype,
		    parallel_fn f32, parallel_fn f64)
{
	int64_t work = t->m * t->length + 1,
		grain = ITER_GRAIN / (work < ITER_GRAIN ? work : ITER_GRAIN);

	if (dtype != TENSOR_F32 && dtype != TENSOR_F64)
		return tensor_kernel_no_dtype(name, dtype, "cpu");
	parallel_for(0, rows, grain, dtype == TENSOR_F32 ? f32 : f64, (void *)t);
	return 0;
}

static int cpu_cdist(tensor *out, const tensor *x, const tensor *y, double p)
{
	const struct pairs t = { .out = out->data,
				 .x = x->data,
				 .y = y->data,
				 .n = x->sizes[1],
				 .m = y->sizes[1],
				 .length = x->sizes[2],
				 .p = p };

	return for_rows("cdist", &t, x->sizes[0] * t.n, x->dtype, cdist_f32, cdist_f64);
}

static int cpu_cdist_backward(tensor *dx, const tensor *grad, const tensor *x, const tensor *y,
			      double p, const tensor *distance)
{
	const struct pairs t = { .out = dx->data,
				 .x = x->data,
				 .y = y->data,
				 .grad = grad->data,
				 .distance = distance->data,
				 .n = x->sizes[1],
				 .m = y->sizes[1],
				 .length = x->sizes[2],
				 .p = p };

	return for_rows("cdist_backward", &t, x->sizes[0] * t.n, x->dtype, cdist_dx_f32,
			cdist_dx_f64);
}

static int cpu_pdist(tensor *out, const tensor *x, double p)
{
	const struct pairs t = { .out = out->data,
				 .x = x->data,
				 .n = x->sizes[0],
				 .m = x->sizes[0],
				 .length = x->sizes[1],
				 .p = p };

	return for_rows("pdist", &t, t.n, x->dtype, pdist_f32, pdist_f64);
}

static int cpu_pdist_backward(tensor *dx, const tensor *grad, const tensor *x, double p,
			      const tensor *distance)
{
	const struct pairs t = { .out = dx->data,
				 .x = x->data,
				 .grad = grad->data,
				 .distance = distance->data,
				 .n = x->sizes[0],
				 .m = x->sizes[0],
				 .length = x->sizes[1],
				 .p = p };

	return for_rows("pdist_backward", &t, t.n, x->dtype, pdist_dx_f32, pdist_dx_f64);
}

CPU_KERNELS(KERNEL(cdist), KERNEL(cdist_backward), KERNEL(pdist), KERNEL(pdist_backward))
