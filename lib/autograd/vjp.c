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

static tensor *vjp(formula_composed fn, const void *ctx, tensor_list in, tensor *const *grads,
		   int n, int part)
{
	struct tensor_thread *th = thread();
	tensor *inputs[MOST_INPUTS], *y[MOST_RESULTS], *u[MOST_RESULTS], *grad = NULL;
	bool record = th->modes.grad_enabled;
	int kept = -1, err = -1;

	memcpy(inputs, in.data, in.len * sizeof(*inputs));
	th->modes.grad_enabled = true;
	inputs[part] = recorded_alias(in.data[part]);
	if (inputs[part] && fn(inputs, y, ctx) == 0)
		kept = select_results(y, grads, u, n);
	if (kept >= 0)
		err = kept ? tensor_backward_ex((tensor_list){ y, kept }, u,
						TENSOR_LIST(inputs[part]), &grad,
						record ? TENSOR_CREATE_GRAPH : 0) :
			     0;
	th->modes.grad_enabled = record;
	if (err < 0)
		return NULL;
	return grad ? grad : tensor_none;
}

INIT(INIT_HOOKS) static void set_vjp(void)
{
	formula_vjp = vjp;
}
