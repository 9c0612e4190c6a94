// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A step of Adam, SGD with momentum, Adagrad and RMSprop over a list of parameters: one parallel region, whose
 * chunks have the same number of elements however these are distributed over the parameters. f16 and bf16
 * are computed in f32 and rounded at the end of a block.
 */
#include "kernels/cpu/nn/items.h"

#include "iter/parallel.h"

#include <math.h>

#define GRAIN (1 << 14)

#define T	   float
#define SQRT	   sqrtf
#define LOOP(name) name##_f32
#include "kernels/cpu/nn/optimizer_loops.h"
#undef T
#undef SQRT
#undef LOOP
#define T	   double
#define SQRT	   sqrt
#define LOOP(name) name##_f64
#include "kernels/cpu/nn/optimizer_loops.h"

static void range_reduced_float(const struct optimizer_step *s, const struct optimizer_item *p,
				int64_t begin, int64_t end)
{
	float param[BLOCK], grad[BLOCK], states[OPTIMIZER_STATES][BLOCK], *state[OPTIMIZER_STATES];

	for (int64_t i = begin; i < end; i += BLOCK) {
		int64_t n = end - i < BLOCK ? end - i : BLOCK;

		load_f32(param, p->param, p->dtype, i, n);
		load_f32(grad, p->grad, p->dtype, i, n);
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			state[k] = load_f32(states[k], p->state[k], p->dtype, i, n);
		block_f32(s, p->step, param, grad, state, n);
		store_f32(p->param, param, p->dtype, i, n);
		if (s->scale != 1)
			store_f32(p->grad, grad, p->dtype, i, n);
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			store_f32(p->state[k], state[k], p->dtype, i, n);
	}
}

struct step_list {
	const struct optimizer_step *step;
	const struct optimizer_item *items;
	int64_t nitems;
};

/* Elements begin to end of all items together. */
static void step_range(int64_t begin, int64_t end, void *ctx)
{
	const struct step_list *l = ctx;

	FOR_ITEMS(l->items, l->nitems, begin, end, item, from, to) {
		if (item->dtype == TENSOR_F32)
			range_f32(l->step, item, from, to);
		else if (item->dtype == TENSOR_F64)
			range_f64(l->step, item, from, to);
		else
			range_reduced_float(l->step, item, from, to);
	}
}

static int cpu_optimizer(const struct optimizer_step *s, const struct optimizer_item *items,
			 int64_t nitems)
{
	struct step_list l = { s, items, nitems };

	parallel_for(0, items_end(items, nitems), GRAIN, step_range, &l);
	return 0;
}

CPU_KERNELS(KERNEL(optimizer))
