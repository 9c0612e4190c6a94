// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Jacobians and Hessians: one backward of an output for all of its elements, which is a batch of gradients. */
#include "autograd/graph/callback.h"
#include "autograd/graph/meta.h"

#include "family/factory.h"
#include "family/ranges.h"
#include "family/shape.h"
#include "family/view.h"

#include <tensor/vmap.h>

#include <stdlib.h>

static tensor *zeros_like(tensor *t)
{
	return tensor_zeros((tensor_ints){ t->sizes, t->ndim },
			    TENSOR_OPTIONS(.dtype = t->dtype, .device = t->device));
}

/* ---- Jacobian ---- */

/* A function of leaves that stand for the inputs. */
struct problem {
	tensor_graph_fn fn;
	void *ctx;
	tensor_list inputs;
	int noutputs;
	unsigned flags; /* TENSOR_CREATE_GRAPH or 0 */
};

static int check_problem(const char *op, const struct problem *p, tensor **results)
{
	if (!p->fn || !results || p->noutputs < 1 || p->inputs.len < 1 ||
	    p->inputs.len > INT32_MAX || !p->inputs.data)
		return tensor_fail(EINVAL, "%s: a function, inputs and results must be given", op);
	if (p->flags & ~TENSOR_CREATE_GRAPH)
		return tensor_fail(EINVAL, "%s: unknown flags %#x", op, p->flags);
	for (int64_t i = 0; i < p->inputs.len; i++) {
		tensor *t = p->inputs.data[i];

		if (tensor_absent(op, t))
			return -thread()->error.code;
		if (!differentiable(t))
			return tensor_fail(EINVAL, "%s: input %lld has dtype %s", op, (long long)i,
					   tensor_dtype_name(t->dtype));
	}
	return 0;
}

/* Leaves, or views with the history of the inputs; in the open scope. */
static int make_leaves(const struct problem *p, tensor **leaves)
{
	for (int64_t i = 0; i < p->inputs.len; i++) {
		tensor *t = p->inputs.data[i];

		leaves[i] = p->flags && needs_grad(t) ? tensor_alias(t) : tensor_detach(t);
		if (!leaves[i])
			return -thread()->error.code;
		if (!needs_grad(leaves[i]) && tensor_set_requires_grad(leaves[i], true) < 0)
			return -thread()->error.code;
	}
	return 0;
}

/* The outputs at the leaves, in the open scope. */
static int evaluate(const char *op, const struct problem *p, tensor *const *leaves,
		    tensor **outputs)
{
	struct callback before = callback_begin();
	int err;

	for (int i = 0; i < p->noutputs; i++)
		outputs[i] = NULL;
	err = p->fn(leaves, (int)p->inputs.len, outputs, p->noutputs, p->ctx);
	err = callback_end(&before, err, "the function failed");
	for (int i = 0; i < p->noutputs && !err; i++)
		if (!outputs[i] || outputs[i] == tensor_none)
			err = tensor_fail(EINVAL, "%s: the function did not set output %d", op, i);
	return err;
}

/* [numel, sizes of t]: a gradient for each element of t. */
static tensor *basis(tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1] = { t->numel };

	if (t->ndim == TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "jacobian: an output has %d dimensions", t->ndim);
	memcpy(sizes + 1, t->sizes, t->ndim * sizeof(*sizes));
	return tensor_reshape(tensor_eye(t->numel,
					 TENSOR_OPTIONS(.dtype = t->dtype, .device = t->device)),
			      (tensor_ints){ sizes, t->ndim + 1 });
}

/* g [numel of y, sizes of x], or NULL for zeros, with the sizes of y in front. */
static tensor *shaped(tensor *y, tensor *x, tensor *g)
{
	int64_t sizes[2 * TENSOR_MAX_DIMS];
	tensor_ints list = { sizes, y->ndim + x->ndim };

	if (list.len > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "jacobian: the result has more than %d dimensions",
					TENSOR_MAX_DIMS);
	memcpy(sizes, y->sizes, y->ndim * sizeof(*sizes));
	memcpy(sizes + y->ndim, x->sizes, x->ndim * sizeof(*sizes));
	if (g)
		return tensor_reshape(g, list);
	return tensor_zeros(list, TENSOR_OPTIONS(.dtype = x->dtype, .device = x->device));
}

/* The rows of output y with respect to all leaves; in the open scope. */
static int jacobian_of(const struct problem *p, tensor *y, tensor_list leaves, tensor **rows)
{
	tensor *grads = NULL;
	int err = 0;

	for (int64_t i = 0; i < leaves.len; i++)
		rows[i] = NULL;
	if (needs_grad(y) && y->numel) {
		grads = basis(y);
		if (!grads)
			return -thread()->error.code;
		err = tensor_backward_ex((tensor_list){ &y, 1 }, &grads, leaves, rows,
					 TENSOR_GRADS_BATCHED | TENSOR_RETAIN_GRAPH | p->flags);
	}
	for (int64_t i = 0; i < leaves.len && !err; i++) {
		rows[i] = shaped(y, leaves.data[i], rows[i]);
		if (!rows[i])
			err = -thread()->error.code;
	}
	return err;
}

/* Both in the open scope. */
static int compute_jacobian(const char *op, const struct problem *p, tensor **leaves,
			    tensor **outputs, tensor **results)
{
	int64_t n = p->inputs.len;
	int err = make_leaves(p, leaves);

	if (!err)
		err = evaluate(op, p, leaves, outputs);
	for (int o = 0; o < p->noutputs && !err; o++)
		err = jacobian_of(p, outputs[o], (tensor_list){ leaves, n }, results + o * n);
	return err;
}

/* Keeps n results, without their history if none is wanted; they are owned afterwards. */
static int keep_results(tensor **results, int64_t n, bool history)
{
	for (int64_t i = 0; i < n; i++) {
		results[i] = history ? results[i] : tensor_detach(results[i]);
		if (!results[i])
			return -thread()->error.code;
	}
	for (int64_t i = 0; i < n; i++)
		tensor_get(results[i]);
	return 0;
}

typedef int (*compute_fn)(const struct problem *p, tensor **space, tensor **results);

/* Runs compute in a scope and with recording; space is for tensors in the scope. */
static int compute_in_scope(const struct problem *p, compute_fn compute, int64_t space_len,
			    tensor **results, int64_t n)
{
	tensor **space = calloc(space_len + 1, sizeof(*space));
	struct tensor_scope_guard scope;
	struct tensor_grad_guard mode;
	int err;

	if (!space)
		return tensor_fail(ENOMEM, "jacobian: no memory");
	scope = tensor_scope_enter();
	mode = tensor_grad_enter(true);
	err = compute(p, space, results);
	if (!err)
		err = keep_results(results, n, p->flags);
	tensor_grad_leave(&mode);
	scope_leave(&scope);
	free(space);
	for (int64_t i = 0; i < n && err; i++)
		results[i] = NULL;
	return err ?: scope_own_list(results, n);
}

static int jacobian(const struct problem *p, tensor **space, tensor **results)
{
	return compute_jacobian("jacobian", p, space, space + p->inputs.len, results);
}

TENSOR_EXPORT int tensor_jacobian(tensor_graph_fn fn, void *ctx, tensor_list inputs, int noutputs,
				  tensor **results, unsigned flags)
{
	struct problem p = { fn, ctx, inputs, noutputs, flags };
	int err = check_problem("jacobian", &p, results);

	if (err)
		return err;
	return compute_in_scope(&p, jacobian, inputs.len + noutputs, results,
				inputs.len * noutputs);
}

/* ---- Hessian: the Jacobian of the gradients ---- */

/* The gradients of the output with respect to the inputs, recorded. */
static int gradients(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs, void *ctx)
{
	const struct problem *p = ctx;
	tensor *y;
	int err;

	err = p->fn(inputs, ninputs, &y, 1, p->ctx);
	if (err)
		return err;
	if (!y || y == tensor_none || y->numel != 1)
		return tensor_fail(EINVAL, "hessian: the function must compute one element");
	for (int i = 0; i < noutputs; i++)
		outputs[i] = NULL;
	if (needs_grad(y))
		err = tensor_backward_ex((tensor_list){ &y, 1 }, NULL,
					 (tensor_list){ inputs, ninputs }, outputs,
					 TENSOR_CREATE_GRAPH);
	for (int i = 0; i < noutputs && !err; i++) {
		outputs[i] = outputs[i] ?: zeros_like(inputs[i]);
		if (!outputs[i])
			err = -thread()->error.code;
	}
	return err;
}

static int hessian(const struct problem *p, tensor **space, tensor **results)
{
	struct problem of_gradients = { gradients, (void *)p, p->inputs, (int)p->inputs.len,
					p->flags };

	return compute_jacobian("hessian", &of_gradients, space, space + p->inputs.len, results);
}

TENSOR_EXPORT int tensor_hessian(tensor_graph_fn fn, void *ctx, tensor_list inputs,
				 tensor **results, unsigned flags)
{
	struct problem p = { fn, ctx, inputs, 1, flags };
	int err = check_problem("hessian", &p, results);

	if (err)
		return err;
	return compute_in_scope(&p, hessian, 2 * inputs.len, results, inputs.len * inputs.len);
}
