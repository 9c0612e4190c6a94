// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Second derivatives of operators that one kernel computes: the backward operator is composed of differentiable operators
 * instead, and the engine differentiates these.
 */
#include "autograd/formulas/formulas.h"

#include "autograd/graph/dual.h"
#include "base/init.h"

#include "family/copy.h"
#include "family/view.h"

#include <tensor/autograd.h>

#define MOST_INPUTS  4
#define MOST_RESULTS 3

/* The result requires a gradient; with the history and the tangent of t if it has them. NULL with the error set. */
static tensor *recorded_alias(tensor *t)
{
	tensor *a = needs_grad(t) ? tensor_alias(t) : tensor_detach(t);

	if (a && tangent_of(t) && !tangent_of(a) && dual_set(a, t->tangent) < 0)
		return NULL;
	return a && tensor_set_requires_grad(a, true) == 0 ? a : NULL;
}

/* Keeps the results with a gradient, which then have its dtype. */
static int select_results(tensor **y, tensor *const *grads, tensor **u, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (!grads[i] || grads[i] == tensor_none || y[i] == tensor_none ||
		    !needs_grad(y[i]))
			continue;
		y[kept] = y[i];
		if (y[i]->dtype != grads[i]->dtype)
			y[kept] = tensor_to(y[i], TENSOR_OPTIONS(.dtype = grads[i]->dtype));
		if (!y[kept])
			return -1;
		u[kept++] = grads[i];
	}
	return kept;
}

/* The gradients of inputs `first` to first + count, which are written to `out`. */
static int vjp(formula_composed fn, const void *ctx, tensor_list in, tensor *const *grads, int n,
	       int first, int count, tensor **out)
{
	struct tensor_thread *th = thread();
	tensor *inputs[MOST_INPUTS], *y[MOST_RESULTS], *u[MOST_RESULTS];
	bool record = th->modes.grad_enabled, made = true;
	int kept = -1, err = -1;

	memcpy(inputs, in.data, in.len * sizeof(*inputs));
	th->modes.grad_enabled = true;
	for (int i = first; i < first + count; i++) {
		inputs[i] = made ? recorded_alias(in.data[i]) : NULL;
		made &= inputs[i] != NULL;
		out[i - first] = NULL;
	}
	if (made && fn(inputs, y, ctx) == 0)
		kept = select_results(y, grads, u, n);
	if (kept >= 0)
		err = kept ? tensor_backward_ex((tensor_list){ y, kept }, u,
						(tensor_list){ inputs + first, count }, out,
						record ? TENSOR_CREATE_GRAPH : 0) :
			     0;
	th->modes.grad_enabled = record;
	for (int i = 0; !err && i < count; i++)
		out[i] = out[i] ? out[i] : tensor_none;
	return err;
}

static tensor *vjp_part(formula_composed fn, const void *ctx, tensor_list in, tensor *const *grads,
			int n, int part)
{
	tensor *grad;

	return vjp(fn, ctx, in, grads, n, part, 1, &grad) < 0 ? NULL : grad;
}

static int vjp_all(formula_composed fn, const void *ctx, tensor_list in, tensor *const *grads,
		   int n, tensor **out)
{
	return vjp(fn, ctx, in, grads, n, 0, (int)in.len, out);
}

INIT(INIT_HOOKS) static void set_vjp(void)
{
	formula_vjp = vjp_part;
	formula_vjp_all = vjp_all;
}
