// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Forward mode over a backward that is recorded: the tangent of a result that a node saved, with its history. As in
 * forward_call.c, the node's formula gives g = J^T u for a cotangent u of the result, and a backward of g for the tangents of the
 * inputs gives the tangent of the result.
 */
#include "autograd/engine/engine.h"
#include "autograd/engine/gradient.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/hooks.h"
#include "autograd/graph/input_tangents.h"
#include "autograd/graph/meta.h"
#include "autograd/graph/saved.h"
#include "base/init.h"

#include "family/factory.h"

#include <tensor/autograd.h>

#include <stdlib.h>

/* Tensors of one computation, in the open scope. */
struct again {
	tensor_node *n;
	const struct input_tangents *kept;
	tensor **in, **out; /* of the node */
	tensor **g,
		**tangents; /* gradients that depend on u, and the tangents that belong to them */
	int count;
};

/* A cotangent of output k. Of ones, see forward_call.c. */
static tensor *cotangent(const struct output *o)
{
	tensor *u = tensor_ones((tensor_ints){ o->sizes, o->ndim },
				TENSOR_OPTIONS(.dtype = o->dtype, .device = o->device));

	return u && !tensor_set_requires_grad(u, true) ? u : NULL;
}

/* The formula, on the inputs that have tangents. The caller's engine holds the lock of the node. */
static int run_formula(struct again *a)
{
	uint64_t need = 0;

	for (uint32_t i = 0; i < a->kept->n; i++) {
		uint32_t e = a->kept->of[i].input;

		need |= 1ull << (e < 63 ? e : 63);
	}
	return a->n->type->apply(a->n, a->in, a->out, need) < 0 ?
		       -(thread()->error.code ?: EINVAL) :
		       0;
}

/* Keeps the gradients that depend on the cotangent. */
static int select_linear(struct again *a)
{
	for (uint32_t i = 0; i < a->kept->n; i++) {
		uint32_t e = a->kept->of[i].input;
		const struct edge *to = &a->n->edges[e];
		tensor *g = a->out[e];

		if (!g || g == tensor_none)
			continue;
		g = scope_own(thread(), gradient_fit(a->n, (int)e, g, to->fn, to->nr));
		if (!g)
			return -thread()->error.code;
		if (!needs_grad(g))
			continue;
		a->g[a->count] = g;
		a->tangents[a->count] = input_tangent_unpack(a->n, a->kept, i);
		if (!a->tangents[a->count++])
			return -thread()->error.code;
	}
	return 0;
}

/* The product of the tangents with the Jacobian; NULL with *err = 0 for zeros. */
static tensor *backward_of(struct again *a, tensor *u, int *err)
{
	tensor *t = NULL;
	const struct engine_call call = {
		.outputs = { a->g, a->count },
		.inputs = { &u, 1 },
		.output_grads = a->tangents,
		.grads = &t,
		.record = true,
		.keep = true,
		.since = a->n->seq,
	};

	*err = a->count ? engine_backward(&call) : 0;
	return t;
}

static tensor *compute(struct again *a, unsigned k)
{
	struct autograd_thread *at = thread()->autograd;
	const struct output *o = &a->n->outputs[k];
	tensor *u = cotangent(o), *t = NULL;
	int err = u ? 0 : -thread()->error.code;

	/* The nodes of the computation are later than the node, whose edges the backward does not follow. */
	if (at->seq < a->n->seq)
		at->seq = a->n->seq;
	a->in[k] = u;
	if (!err)
		err = run_formula(a);
	if (!err)
		err = select_linear(a);
	if (!err)
		t = backward_of(a, u, &err);
	if (err || t)
		return t;
	return tensor_zeros((tensor_ints){ o->sizes, o->ndim },
			    TENSOR_OPTIONS(.dtype = o->dtype, .device = o->device));
}

static tensor *tangent_again(tensor_node *n, unsigned k)
{
	const struct input_tangents *kept = (const struct input_tangents *)n->hooks->tangents;
	struct thread_modes *modes = &thread()->modes;
	struct again a = { .n = n, .kept = kept };
	bool dual = modes->dual_gradients;
	struct forward_guard guard;
	tensor *t;

	a.in = calloc(n->noutputs + n->nedges + 2 * (size_t)kept->n, sizeof(*a.in));
	if (!a.in)
		return tensor_fail_null(ENOMEM, "backward of %s: no memory", n->type->op);
	a.out = a.in + n->noutputs;
	a.g = a.out + n->nedges;
	a.tangents = a.g + kept->n;
	guard = forward_guard_enter(true);
	modes->dual_gradients = false;
	t = compute(&a, k);
	modes->dual_gradients = dual;
	forward_guard_leave(guard);
	free(a.in);
	return t;
}

INIT(INIT_HOOKS) static void set_again(void)
{
	saved_tangent_again = tangent_again;
}
