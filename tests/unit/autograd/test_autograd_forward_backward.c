// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Forward mode over backward: gradients of dual tensors, also of a backward that is recorded. */
#include "autograd.h"

#include <tensor/function.h>

#include <math.h>

static tensor *dual(tensor *x, tensor *tangent)
{
	return ok(tensor_make_dual(x, tangent));
}

/* The gradient of sum(tanh(x)^2 exp(x)) as a function. */
static int gradient(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *t = tensor_tanh(in[0]),
	       *y = tensor_sum(tensor_mul(tensor_mul(t, t), tensor_exp(in[0])));
	const unsigned *flags = ctx;

	(void)nin, (void)nout;
	return tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(in[0]), out,
				  flags ? *flags : 0);
}

/* torch.func.jvp(torch.func.grad(f), ...) beside a second backward. */
static void jvp_of_a_gradient_is_a_hessian_product(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	tensor_scope {
		const unsigned record = TENSOR_CREATE_GRAPH;
		tensor *x = leaf(tensor_to(iota(1, TENSOR_INTS(3)), F64)), *g[1], *again[1], *y[1],
		       *t[1];
		tensor *v = ok(tensor_to(iota(2, TENSOR_INTS(3)), F64));

		assert_done(gradient(&x, 1, g, 1, (void *)&record));
		assert_done(tensor_backward_ex(TENSOR_LIST(g[0]), &v, TENSOR_LIST(x), again, 0));
		assert_done(tensor_jvp(gradient, NULL, TENSOR_LIST(x), &v, y, t, 1));
		assert_values(tensor_sub(y[0], g[0]), 1e-12, 0, 0, 0);
		assert_values(tensor_sub(t[0], again[0]), 1e-12, 0, 0, 0);
		assert_null(tensor_grad(x));
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
}

/* ---- recorded ---- */

static tensor *f64(tensor *t)
{
	return ok(tensor_to(t, F64));
}

/* A result that a node saved is used by its formula: of the second derivative, too. */
static tensor *fn_tanh(tensor *x)
{
	return tensor_tanh(x);
}

static tensor *fn_exp(tensor *x)
{
	return tensor_exp(tensor_mul(x, x));
}

static tensor *fn_chain(tensor *x)
{
	return tensor_sigmoid(tensor_exp(tensor_tanh(x)));
}

static tensor *fn_softmax(tensor *x)
{
	return tensor_softmax(x, 1);
}

static tensor *fn_in_place(tensor *x)
{
	return tensor_mul(x, tensor_tanh_(tensor_mul(x, x)));
}

/* The formula reads what the call overwrites. */
static tensor *fn_overwritten(tensor *x)
{
	return tensor_mul_(tensor_mul(x, x), tensor_exp(x));
}

static tensor *fn_view(tensor *x)
{
	tensor *y = tensor_mul(x, x);

	return tensor_exp_(tensor_select(y, 0, 1)) ? y : NULL;
}

static tensor *fn_inverse(tensor *x)
{
	return tensor_linalg_inv(x);
}

/* Broadcast, and a result of several. */
static tensor *fn_broadcast(tensor *x)
{
	return tensor_sqrt(tensor_div(x, tensor_norm_dim(x, S(2), TENSOR_INTS(1), true)));
}

static tensor *fn_svd(tensor *x)
{
	tensor *u, *s, *v;

	return tensor_linalg_svd(x, false, &u, &s, &v) < 0 ? NULL : s;
}

static tensor *fn_cumprod(tensor *x)
{
	return tensor_cumprod(x, 0);
}

static tensor *fn_logsumexp(tensor *x)
{
	return tensor_logsumexp(x, TENSOR_INTS(0), false);
}

struct fn {
	const char *name;
	tensor *(*fn)(tensor *x);
};

static const struct fn fns[] = {
	{ "tanh", fn_tanh },	   { "exp", fn_exp },		{ "chain", fn_chain },
	{ "softmax", fn_softmax }, { "in place", fn_in_place }, { "overwritten", fn_overwritten },
	{ "view", fn_view },	   { "inverse", fn_inverse },	{ "broadcast", fn_broadcast },
	{ "svd", fn_svd },	   { "cumprod", fn_cumprod },	{ "logsumexp", fn_logsumexp },
};

/* Different numbers for each element of t. */
static tensor *weights_like(tensor *t)
{
	return ok(tensor_reshape(tensor_sin(f64(iota(1, TENSOR_INTS(tensor_numel(t))))),
				 tensor_shape(t)));
}

static int gradient_of(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	const struct fn *f = ctx;
	tensor *y = f->fn(in[0]);

	if (!y)
		return -1;
	y = tensor_sum(tensor_mul(y, weights_like(y)));
	return tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(in[0]), out,
				  tensor_is_grad_enabled() ? TENSOR_CREATE_GRAPH : 0);
}

/* The product of the Hessian with v, times weights, as one number. */
static tensor *curvature(const struct fn *f, tensor *x, tensor *v)
{
	tensor *g, *hv;

	assert_done(tensor_jvp(gradient_of, (void *)f, TENSOR_LIST(x), &v, &g, &hv, 1));
	return ok(tensor_sum(tensor_mul(hv, weights_like(hv))));
}

/* The same by a backward of the recorded gradient. */
static double curvature_at(const struct fn *f, tensor *x, tensor *v)
{
	double value;

	tensor_scope {
		tensor *y = leaf(ok(tensor_clone(tensor_detach(x)))), *g = NULL, *h = NULL,
		       *w = weights_like(x), *sum;

		assert_done(gradient_of(&y, 1, &g, 1, (void *)f));
		sum = ok(tensor_sum(tensor_mul(g, tensor_detach(v))));
		assert_done(tensor_backward_ex(TENSOR_LIST(sum), NULL, TENSOR_LIST(y), &h, 0));
		assert_done(tensor_item(ok(tensor_sum(tensor_mul(h, w))), &value));
	}
	return value;
}

/* Compares t with central differences of the curvature by the elements of `of`, which is x or v. */
static void assert_differences(const struct fn *f, tensor *x, tensor *v, tensor *of, tensor *t)
{
	const double step = 1e-5;

	for (int64_t i = 0; i < tensor_numel(of); i++)
		tensor_scope {
			tensor *flat = ok(tensor_reshape(tensor_detach(of), TENSOR_INTS(-1)));
			tensor *at = ok(tensor_select(flat, 0, i));
			double up, down, got, want;

			ok(tensor_add_scalar_(at, S(step)));
			up = curvature_at(f, x, v);
			ok(tensor_sub_scalar_(at, S(2 * step)));
			down = curvature_at(f, x, v);
			ok(tensor_add_scalar_(at, S(step)));
			want = (up - down) / (2 * step);
			assert_done(tensor_item(
				ok(tensor_select(tensor_reshape(t, TENSOR_INTS(-1)), 0, i)), &got));
			if (fabs(got - want) > 1e-5 * (1 + fabs(want)))
				fail_msg("%s, element %d: %.9g, differences give %.9g", f->name,
					 (int)i, got, want);
		}
}

static void recorded_backward_of_a_dual_tensor_is_differentiated(void **state)
{
	struct tensor_live_counts before, after;

	for (size_t k = 0; k < sizeof(fns) / sizeof(*fns); k++) {
		tensor_live_counts(&before);
		tensor_scope {
			const double at[] = { 0.5, 0.9, 1.25, 0.75 },
				     to[] = { 0.3, -0.5, 0.7, 1.1 };
			tensor *x = leaf(tensor_from_data(at, TENSOR_INTS(2, 2), F64)),
			       *v = leaf(tensor_from_data(to, TENSOR_INTS(2, 2), F64)), *c;
			double value;

			c = curvature(&fns[k], x, v);
			assert_done(tensor_item(c, &value));
			assert_true(fabs(value - curvature_at(&fns[k], x, v)) < 1e-9);
			assert_done(tensor_backward(c));
			assert_differences(&fns[k], x, v, x, tensor_grad(x));
			assert_differences(&fns[k], x, v, v, tensor_grad(v));
		}
		tensor_live_counts(&after);
		assert_int_equal(after.tensors, before.tensors);
		assert_int_equal(after.storages, before.storages);
	}
}

/* The tangent of an input is changed before the backward that needs it. */
static void changed_tangent_of_an_input_is_an_error(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)),
		       *d = ok(tensor_mul_scalar(dual(x, iota(1, TENSOR_INTS(2))), S(1))), *y,
		       *g[1];

		y = ok(tensor_tanh(d));
		ok(tensor_mul_scalar_(d, S(2)));
		assert_fails(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(y))), NULL,
						TENSOR_LIST(x), g, TENSOR_CREATE_GRAPH),
			     EINVAL, "tangent of an input was changed");
	}
}

/* ---- saved-tensor hooks, hooks, functions ---- */

static void *hold(tensor *t, void *ctx)
{
	(void)ctx;
	assert_null(tensor_tangent(t));
	return tensor_retain(tensor_clone(t));
}

static tensor *held(void *packed, void *ctx)
{
	(void)ctx;
	return packed;
}

static void drop(void *packed, void *ctx)
{
	(void)ctx;
	tensor_release(packed);
}

static void packed_tensors_keep_their_tangents(void **state)
{
	const struct tensor_saved_hooks hooks = { .pack = hold, .unpack = held, .discard = drop };

	tensor_scope {
		tensor *x = leaf_iota(2, TENSOR_INTS(2)), *d = dual(x, iota(1, TENSOR_INTS(2)));
		tensor *g[2], *y = NULL, *z = NULL;

		tensor_with_saved_hooks(&hooks)
		{
			y = ok(tensor_sum(tensor_mul(tensor_mul(d, d), d)));
			z = ok(tensor_sum(tensor_exp(d)));
		}
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(d), g, 0));
		assert_values(tensor_tangent(g[0]), 0, 12, 36);
		assert_done(tensor_backward_ex(TENSOR_LIST(z), NULL, TENSOR_LIST(d), g, 0));
		assert_values(tensor_tangent(g[0]), 1e-4, exp(2), 2 * exp(3));
		tensor_with_saved_hooks(&hooks) z = ok(tensor_sum(tensor_exp(d)));
		assert_done(tensor_backward_ex(TENSOR_LIST(z), NULL, TENSOR_LIST(d), g,
					       TENSOR_CREATE_GRAPH));
		assert_done(tensor_backward(ok(tensor_sum(tensor_tangent(g[0])))));
		assert_values(tensor_grad(x), 1e-4, exp(2), 2 * exp(3));
	}
}

static tensor *twice(tensor *grad, void *ctx)
{
	(void)ctx;
	return tensor_mul_scalar(grad, S(2));
}

static int function_forward(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs,
			    tensor **outputs, int noutputs)
{
	(void)ctx, (void)ninputs, (void)noutputs;
	outputs[0] = tensor_mul_scalar(inputs[0], S(3));
	return 0;
}

static int function_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads,
			     tensor **out, int nout)
{
	(void)ctx, (void)ngrads, (void)nout;
	out[0] = tensor_mul_scalar(grads[0], S(3));
	return 0;
}

static void hooks_and_functions_get_dual_gradients(void **state)
{
	static const struct tensor_function triple = { .name = "triple",
						       .forward = function_forward,
						       .backward = function_backward };

	tensor_scope {
		tensor *x = leaf_iota(2, TENSOR_INTS(2)), *w = leaf_iota(1, TENSOR_INTS(2));
		tensor *d = dual(x, iota(1, TENSOR_INTS(2))), *g[1], *u, *y;

		assert_done(tensor_function_apply(&triple, NULL, NULL, TENSOR_LIST(w), &u, 1));
		assert_done(tensor_register_hook(u, twice, NULL, NULL, NULL));
		y = ok(tensor_sum(tensor_mul(u, d)));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(w), g, 0));
		assert_values(g[0], 0, 12, 18);
		assert_values(tensor_tangent(g[0]), 0, 6, 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jvp_of_a_gradient_is_a_hessian_product),
		cmocka_unit_test(recorded_backward_of_a_dual_tensor_is_differentiated),
		cmocka_unit_test(changed_tangent_of_an_input_is_an_error),
		cmocka_unit_test(packed_tensors_keep_their_tangents),
		cmocka_unit_test(hooks_and_functions_get_dual_gradients),
	};

	return cmocka_run_group_tests_name("autograd_forward_backward", tests, NULL, NULL);
}
