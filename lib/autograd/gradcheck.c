// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * gradcheck: compares backward with central differences. The output is reduced to one number by a
 * weighted sum. No weight is 0 or a multiple of another one, so an error in any element of the
 * gradient is visible.
 */
#include "autograd/graph/meta.h"

#include "family/copy.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/view.h"

#include <math.h>
#include <stdlib.h>

struct check {
	tensor *(*fn)(tensor *const *inputs, void *ctx);
	void *ctx;
	tensor_list inputs;
	double eps, atol, rtol;
};

/* cos(first), cos(first + 1) ... in the shape of t */
static tensor *weights_for(const tensor *t, double first)
{
	double *w = malloc((t->numel + 1) * sizeof(*w));
	tensor *result;

	if (!w)
		return tensor_fail_null(ENOMEM, "gradcheck: no memory");
	for (int64_t i = 0; i < t->numel; i++)
		w[i] = cos((double)i + first);
	result = tensor_from_data(w, tensor_shape(t), TENSOR_OPTIONS(.dtype = TENSOR_F64));
	free(w);
	return tensor_to(result, TENSOR_OPTIONS(.device = t->device));
}

/* The weighted sum of fn's output; NULL with the error set. */
static tensor *weighted(const struct check *c)
{
	tensor *y = c->fn(c->inputs.data, c->ctx);

	if (!y)
		return NULL;
	if (y->dtype != TENSOR_F64)
		return tensor_fail_null(EINVAL, "gradcheck: the function must return f64, got %s",
					tensor_dtype_name(y->dtype));
	return tensor_sum(tensor_mul(y, weights_for(y, 1)));
}

/* Recorded as for backward, because fn itself may call backward. */
static int value_at(const struct check *c, tensor *element, double x, double *value)
{
	int err = -1;

	tensor_scope {
		if (tensor_fill_(element, tensor_scalar_float(x)))
			err = tensor_item(weighted(c), value);
	}
	return err < 0 ? -thread()->error.code : 0;
}

/* The difference quotient of one element, whose value is restored. */
static int difference(const struct check *c, tensor *element, double *slope)
{
	double x, up, down;
	int err = tensor_item(element, &x);

	if (!err)
		err = value_at(c, element, x + c->eps, &up);
	if (!err)
		err = value_at(c, element, x - c->eps, &down);
	if (!tensor_fill_(element, tensor_scalar_float(x)) && !err)
		err = -thread()->error.code;
	*slope = err ? 0 : (up - down) / (2 * c->eps);
	return err;
}

static int64_t element_offset(const tensor *t, int64_t i)
{
	int64_t at = t->offset;

	for (int d = t->ndim - 1; d >= 0; d--) {
		at += i % t->sizes[d] * t->strides[d];
		i /= t->sizes[d];
	}
	return at;
}

/*
 * Compares all elements of input k with its gradient in row-major order; NULL: the gradient is
 * zero.
 */
static int compare(const struct check *c, int64_t k, const double *grad)
{
	tensor *input = c->inputs.data[k];
	tensor *plain = tensor_detach(input);

	for (int64_t i = 0; plain && i < input->numel; i++) {
		tensor *element = tensor_as_strided(plain, TENSOR_SCALAR_SHAPE, TENSOR_SCALAR_SHAPE,
						    element_offset(input, i));
		double slope = 0, got = grad ? grad[i] : 0;
		int err = element ? difference(c, element, &slope) : -thread()->error.code;

		if (err)
			return err;
		if (!(fabs(slope - got) <= c->atol + c->rtol * fabs(slope)))
			return tensor_fail(EDOM,
					   "gradcheck: input %lld, element %lld: backward "
					   "gives %.12g, differences give %.12g",
					   (long long)k, (long long)i, got, slope);
	}
	return plain ? 0 : -thread()->error.code;
}

static int compare_input(const struct check *c, int64_t k, tensor *grad)
{
	int64_t n = c->inputs.data[k]->numel;
	double *values = NULL;
	int err = 0;

	if (grad) {
		values = malloc((n + 1) * sizeof(*values));
		if (!values)
			return tensor_fail(ENOMEM, "gradcheck: no memory");
		err = tensor_copy_to(grad, values, n * sizeof(*values));
	}
	if (!err)
		err = compare(c, k, values);
	free(values);
	return err;
}

static int check_inputs(tensor_list inputs, int64_t *wanted)
{
	*wanted = 0;
	for (int64_t i = 0; i < inputs.len; i++) {
		tensor *t = inputs.data[i];

		if (tensor_absent("gradcheck", t))
			return -thread()->error.code;
		if (!needs_grad(t))
			continue;
		if (t->dtype != TENSOR_F64 || t->autograd_meta->fn)
			return tensor_fail(EINVAL, "gradcheck: input %lld must be a leaf of f64",
					   (long long)i);
		++*wanted;
	}
	if (!*wanted)
		return tensor_fail(EINVAL, "gradcheck: no input requires a gradient");
	return 0;
}

/* fn(c, wanted, list) in a scope, recorded. list has space for 2 * wanted + inputs + 1 tensors, all NULL. */
static int run_check(const char *name, const struct check *c,
		     int (*fn)(const struct check *c, int64_t wanted, tensor **list))
{
	struct tensor_scope_guard scope;
	tensor **list;
	bool enabled;
	int64_t wanted;
	int err = check_inputs(c->inputs, &wanted);

	if (err)
		return err;
	list = calloc(2 * wanted + c->inputs.len + 1, sizeof(*list));
	if (!list)
		return tensor_fail(ENOMEM, "%s: no memory", name);
	scope = tensor_scope_enter();
	enabled = tensor_set_grad_enabled(true);
	err = fn(c, wanted, list);
	tensor_set_grad_enabled(enabled);
	scope_leave(&scope);
	free(list);
	return err;
}

static int check(const struct check *c, int64_t wanted, tensor **list)
{
	tensor **grads = list + wanted;
	tensor *y;
	int64_t n = 0;
	int err;

	for (int64_t i = 0; i < c->inputs.len; i++)
		if (needs_grad(c->inputs.data[i]))
			list[n++] = c->inputs.data[i];
	y = weighted(c);
	if (!y)
		return -thread()->error.code;
	if (!needs_grad(y))
		return tensor_fail(EINVAL, "gradcheck: the output does not require a gradient");
	err = tensor_backward_ex((tensor_list){ &y, 1 }, NULL, (tensor_list){ list, wanted }, grads,
				 0);
	n = 0;
	for (int64_t i = 0; i < c->inputs.len && !err; i++)
		if (needs_grad(c->inputs.data[i]))
			err = compare_input(c, i, grads[n++]);
	return err;
}

TENSOR_EXPORT int tensor_gradcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
				   tensor_list inputs, double eps, double atol, double rtol)
{
	const struct check c = { fn, ctx, inputs, eps, atol, rtol };

	return run_check("gradcheck", &c, check);
}

/* ---- the backward of the backward ---- */

/* The first derivative as a function of the inputs and of the gradient of the output. */
struct derivative {
	const struct check *of;
	tensor **list, **grads; /* inputs that require a gradient, and their gradients */
	int64_t wanted;
};

static tensor *derivative(tensor *const *inputs, void *ctx)
{
	struct derivative *d = ctx;
	tensor *y = d->of->fn(inputs, d->of->ctx), *total = NULL;

	if (!y || tensor_backward_ex((tensor_list){ &y, 1 }, &inputs[d->of->inputs.len],
				     (tensor_list){ d->list, d->wanted }, d->grads,
				     TENSOR_CREATE_GRAPH) < 0)
		return NULL;
	for (int64_t i = 0; i < d->wanted; i++) {
		tensor *g = d->grads[i], *part;

		if (!g)
			continue;
		/*
		 * weights that differ from output_gradient(): otherwise a formula that exchanges
		 * the two would pass
		 */
		part = tensor_sum(tensor_mul(g, weights_for(g, 0.4)));
		total = total ? tensor_add(total, part) : part;
	}
	return total ? total :
		       tensor_fail_null(EINVAL, "gradgradcheck: the output depends on no input");
}

/* The gradient of the output of fn: the weights, as a leaf. */
static tensor *output_gradient(const struct check *c)
{
	tensor *y = c->fn(c->inputs.data, c->ctx), *v = y ? weights_for(y, 1) : NULL;

	return v && tensor_set_requires_grad(v, true) == 0 ? v : NULL;
}

static int check_derivative(const struct check *c, int64_t wanted, tensor **list)
{
	int64_t n = c->inputs.len, k = 0;
	tensor **all = list + 2 * wanted;
	struct derivative d = { c, list, list + wanted, wanted };

	for (int64_t i = 0; i < n; i++) {
		all[i] = c->inputs.data[i];
		if (needs_grad(all[i]))
			list[k++] = all[i];
	}
	all[n] = output_gradient(c);
	if (!all[n])
		return -thread()->error.code;
	return tensor_gradcheck(derivative, &d, (tensor_list){ all, n + 1 }, c->eps, c->atol,
				c->rtol);
}

TENSOR_EXPORT int tensor_gradgradcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
				       tensor_list inputs, double eps, double atol, double rtol)
{
	const struct check c = { fn, ctx, inputs, eps, atol, rtol };

	return run_check("gradgradcheck", &c, check_derivative);
}

/* ---- forward mode ---- */

/* The derivative of the weighted sum in the direction of the weights of each input, by forward mode. */
static int forward_derivative(const struct check *c, tensor **duals, double *value)
{
	struct check dual = *c;
	tensor *y, *t;

	for (int64_t i = 0; i < c->inputs.len; i++) {
		duals[i] = c->inputs.data[i];
		if (!needs_grad(duals[i]))
			continue;
		t = weights_for(duals[i], 0.7 + (double)i);
		duals[i] = t ? tensor_make_dual(duals[i], t) : NULL;
		if (!duals[i])
			return -thread()->error.code;
	}
	dual.inputs.data = duals;
	y = weighted(&dual);
	if (!y)
		return -thread()->error.code;
	*value = 0;
	t = tensor_tangent(y);
	return t ? tensor_item(t, value) : 0;
}

/* The same by backward. */
static int backward_derivative(const struct check *c, int64_t wanted, tensor **list, tensor **grads,
			       double *value)
{
	tensor *y = weighted(c);
	int64_t n = 0;
	double part;
	int err;

	for (int64_t i = 0; i < c->inputs.len; i++)
		if (needs_grad(c->inputs.data[i]))
			list[n++] = c->inputs.data[i];
	if (!y)
		return -thread()->error.code;
	err = tensor_backward_ex((tensor_list){ &y, 1 }, NULL, (tensor_list){ list, wanted }, grads,
				 0);
	*value = 0;
	n = 0;
	for (int64_t i = 0; i < c->inputs.len && !err; i++) {
		tensor *x = c->inputs.data[i], *g;

		if (!needs_grad(x))
			continue;
		g = grads[n++];
		if (!g)
			continue;
		err = tensor_item(tensor_sum(tensor_mul(g, weights_for(x, 0.7 + (double)i))),
				  &part);
		*value += part;
	}
	return err;
}

static int compare_modes(const struct check *c, int64_t wanted, tensor **list)
{
	double forward = 0, backward = 0;
	int err = backward_derivative(c, wanted, list, list + wanted, &backward);

	if (!err)
		err = forward_derivative(c, list + 2 * wanted, &forward);
	if (err)
		return err;
	if (!(fabs(forward - backward) <= c->atol + c->rtol * fabs(backward)))
		return tensor_fail(EDOM, "forwardcheck: forward mode gives %.10g, backward %.10g",
				   forward, backward);
	return 0;
}

TENSOR_EXPORT int tensor_forwardcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
				      tensor_list inputs, double atol, double rtol)
{
	const struct check c = { fn, ctx, inputs, 0, atol, rtol };

	return run_check("forwardcheck", &c, compare_modes);
}
