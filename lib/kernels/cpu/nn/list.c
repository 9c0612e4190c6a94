// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * One pass over all tensors of a list: scaling, clamping, interpolation, norms. Chunks are as in optimizer.c; each has
 * a partial result of its own, so that the sum does not depend on the number of threads.
 */
#include "kernels/abi/list.h"
#include "kernels/cpu/nn/items.h"

#include "iter/parallel.h"

#include <math.h>

#define LANES 16

#define T	   float
#define LOOP(name) name##_f32
#include "kernels/cpu/nn/list_loops.h"
#undef T
#undef LOOP
#define T	   double
#define LOOP(name) name##_f64
#include "kernels/cpu/nn/list_loops.h"

struct list_pass {
	enum list_method method;
	double value, *part;
	const struct optimizer_item *items;
	int64_t nitems;
};

static double combine(enum list_method method, double a, double b)
{
	if (method == LIST_NORM_MAX || method == LIST_UNSCALE)
		return b > a || b != b ? b : a;
	return a + b;
}

static double part_reduced_float(const struct list_pass *p, const struct optimizer_item *item,
				 int64_t from, int64_t to)
{
	float x[BLOCK], y[BLOCK];
	double all = 0;

	for (int64_t i = from; i < to; i += BLOCK) {
		int64_t n = to - i < BLOCK ? to - i : BLOCK;

		load_f32(x, item->param, item->dtype, i, n);
		load_f32(y, item->grad, item->dtype, i, n);
		all = combine(p->method, all, part_f32(p->method, p->value, x, y, n));
		if (p->method < LIST_NORM_1)
			store_f32(item->param, x, item->dtype, i, n);
	}
	return all;
}

static void pass_range(int64_t begin, int64_t end, void *ctx)
{
	const struct list_pass *p = ctx;
	double all = 0;

	FOR_ITEMS(p->items, p->nitems, begin, end, item, from, to) {
		double part;

		if (item->dtype == TENSOR_F32)
			part = part_f32(p->method, p->value, (float *)item->param + from,
					item->grad ? (float *)item->grad + from : NULL, to - from);
		else if (item->dtype == TENSOR_F64)
			part = part_f64(p->method, p->value, (double *)item->param + from,
					item->grad ? (double *)item->grad + from : NULL, to - from);
		else
			part = part_reduced_float(p, item, from, to);
		all = combine(p->method, all, part);
	}
	if (p->part)
		p->part[begin / LIST_GRAIN] = all;
}

static int cpu_list(enum list_method method, double value, double *part,
		    const struct optimizer_item *items, int64_t nitems)
{
	struct list_pass p = { method, value, part, items, nitems };

	parallel_for(0, items_end(items, nitems), LIST_GRAIN, pass_range, &p);
	return 0;
}

CPU_KERNELS(KERNEL(list))
