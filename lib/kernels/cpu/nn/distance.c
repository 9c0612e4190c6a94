// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Distances between rows, and their gradients. Every distance is computed from the differences of
 * the elements, not from products of rows, which would lose the digits of near points. The usual
 * norms of many pairs are computed in tiles, the others one pair at a time.
 */
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"

#include "kernels/abi/distance.h"
#include "iter/parallel.h"

#include <math.h>

#define SUMS	    16	/* partial sums along a row */
#define TILE_ROWS   64	/* rows of x in a tile */
#define PANEL_BYTES 256 /* an element of the rows of y in a tile */
#define DEPTH	    64	/* elements of rows in a sum */

/* Sums that fit the registers: rows of x by vectors of y. */
#define GROUP_ROWS 4
#if VEC_BYTES == 64
#define GROUP_VECTORS 4
#else
#define GROUP_VECTORS 2
#endif

/* x [b, n, length], y [b, m, length]; pdist: y is x, b is 1, and out has the pairs i < j. */
struct pairs {
	void *out;
	const void *x, *y, *grad, *distance;
	int64_t n, m, length;
	double p;
	bool triangle;
};

enum norm { NORM_0, NORM_1, NORM_2, NORM_INF };

static inline float root_f32(float x)
{
	return sqrtf(x);
}

static inline double root_f64(double x)
{
	return sqrt(x);
}

/* |v|^p for p > 0; powers of small integers are products. */
static inline vec_f64 power_of_size(vec_f64 v, double p)
{
	vec_f64 size = VEC_PICK(v < 0, -v, v), power = size;

	if (p > 8 || p != (int)p)
		return (vec_f64)SLEEF_F64(pow)((sleef_f64)size, (sleef_f64)(p - (vec_f64){ 0 }));
	for (int i = 1; i < (int)p; i++)
		power *= size;
	return power;
}

#define LOOPS_FILE "kernels/cpu/nn/distance_tile_loops.h"
#include "kernels/cpu/simd/each_float.h"
#undef LOOPS_FILE
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

/* Whether pairs are computed in tiles: a row of x alone is not worth the transposed panel. */
static bool in_tiles(const struct pairs *t)
{
	return (t->p == 0 || t->p == 1 || t->p == 2 || isinf(t->p)) &&
	       (t->n >= GROUP_ROWS || t->length < SUMS);
}

static int for_tiles(const char *name, const struct pairs *t, int64_t batch,
		     enum tensor_dtype dtype)
{
	int64_t panel = PANEL_BYTES / dtype_sizes[dtype];
	int64_t rows = t->n < TILE_ROWS ? t->n : TILE_ROWS, cols = t->m < panel ? t->m : panel;
	int64_t work = rows * cols * t->length + 1;

	if (dtype != TENSOR_F32 && dtype != TENSOR_F64)
		return tensor_kernel_no_dtype(name, dtype, "cpu");
	parallel_for(0, batch * ((t->n + TILE_ROWS - 1) / TILE_ROWS) * ((t->m + panel - 1) / panel),
		     work < ITER_GRAIN ? ITER_GRAIN / work : 1,
		     dtype == TENSOR_F32 ? tiles_f32 : tiles_f64, (void *)t);
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

	if (in_tiles(&t))
		return for_tiles("cdist", &t, x->sizes[0], x->dtype);
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
				 .y = x->data,
				 .n = x->sizes[0],
				 .m = x->sizes[0],
				 .length = x->sizes[1],
				 .p = p,
				 .triangle = true };

	if (in_tiles(&t))
		return for_tiles("pdist", &t, 1, x->dtype);
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
