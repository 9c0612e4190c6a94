// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Values that functions of the program may return to autograd, and the state of the thread that they leave. */
#include "autograd.h"

#include <pthread.h>
#include <tensor/function.h>

/* ---- tensors that are no gradient ---- */

/* A tensor of the gradient's shape that cannot take its place; ctx: its name. */
static tensor *odd(const char *kind, tensor *like)
{
	tensor *t = NULL;

	if (!strcmp(kind, "inference"))
		tensor_inference_mode t = tensor_mul_scalar(tensor_detach(like), S(2));
	else if (!strcmp(kind, "sparse"))
		t = tensor_to_sparse(tensor_detach(like));
	else
		t = tensor_make_dual(tensor_detach(like), tensor_detach(like));
	return ok(t);
}

static const char *const odd_kinds[] = { "inference", "sparse", "tangent" };

static tensor *odd_gradient(tensor *grad, void *ctx)
{
	return odd(ctx, grad);
}

static int odd_before(tensor **grads, int n, void *ctx)
{
	grads[0] = odd(ctx, grads[0]);
	return n - n;
}

static int odd_after(tensor **grads, int n, tensor *const *outputs, int noutputs, void *ctx)
{
	(void)outputs;
	(void)noutputs;
	grads[0] = odd(ctx, grads[0]);
	return n - n;
}

static void hooks_must_return_plain_gradients(void **state)
{
	for (int k = 0; k < 3; k++)
		tensor_scope {
			void *kind = (void *)odd_kinds[k];
			tensor *x = leaf_iota(1, TENSOR_INTS(2)),
			       *y = ok(tensor_mul_scalar(x, S(3))),
			       *z = ok(tensor_mul_scalar(x, S(3))),
			       *w = ok(tensor_mul_scalar(x, S(3)));

			assert_done(tensor_register_hook(y, odd_gradient, kind, NULL, NULL));
			assert_fails(tensor_backward(tensor_sum(y)), EINVAL, odd_kinds[k]);
			assert_done(tensor_node_register_prehook(tensor_grad_fn(z), odd_before,
								 kind, NULL, NULL));
			assert_fails(tensor_backward(tensor_sum(z)), EINVAL, odd_kinds[k]);
			assert_done(tensor_node_register_hook(tensor_grad_fn(w), odd_after, kind,
							      NULL, NULL));
			assert_fails(tensor_backward(tensor_sum(w)), EINVAL, odd_kinds[k]);
			assert_null(tensor_grad(x));
		}
}

static void set_grad_takes_plain_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		assert_fails(tensor_set_grad(x, odd("inference", x)), EINVAL, "inference");
		assert_fails(tensor_set_grad(x, odd("tangent", x)), EINVAL, "tangent");
		assert_null(tensor_grad(x));
	}
}

static void backward_of_an_inference_gradient_gives_normal_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *t = odd("inference", x);

		for (int i = 0; i < 2; i++)
			assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_alias(x))), &t,
						       (tensor_list){ NULL, 0 }, NULL, 0));
		assert_false(tensor_is_inference(tensor_grad(x)));
		assert_values(tensor_grad(x), 0, 4, 8);
		assert_values(t, 0, 2, 4);
	}
}

/* ---- user functions ---- */

static int give_data(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs, tensor **outputs,
		     int noutputs)
{
	(void)ninputs;
	(void)noutputs;
	outputs[0] = tensor_function_data(ctx) ?: tensor_mul_scalar(inputs[0], S(2));
	return 0;
}

static int forward_in_inference_mode(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs,
				     tensor **outputs, int noutputs)
{
	(void)ctx;
	(void)ninputs;
	(void)noutputs;
	tensor_inference_mode outputs[0] = tensor_mul_scalar(inputs[0], S(2));
	return 0;
}

static int twice(tensor_function_ctx *ctx, tensor *const *grads, int noutputs, tensor **out,
		 int ninputs)
{
	(void)ctx;
	(void)noutputs;
	(void)ninputs;
	out[0] = tensor_mul_scalar(grads[0], S(2));
	return 0;
}

static int odd_backward(tensor_function_ctx *ctx, tensor *const *grads, int noutputs, tensor **out,
			int ninputs)
{
	(void)noutputs;
	(void)ninputs;
	out[0] = odd(tensor_function_data(ctx), grads[0]);
	return 0;
}

static int double_it(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs, tensor **outputs,
		     int noutputs)
{
	(void)ctx;
	(void)ninputs;
	(void)noutputs;
	outputs[0] = tensor_mul_scalar(inputs[0], S(2));
	return 0;
}

static const struct tensor_function gives_data = { .name = "Gives",
						   .forward = give_data,
						   .backward = twice };
static const struct tensor_function infers = { .name = "Infers",
					       .forward = forward_in_inference_mode,
					       .backward = twice };
static const struct tensor_function odd_gradients = { .name = "Odd",
						      .forward = double_it,
						      .backward = odd_backward };

static void forward_must_not_return_inference_tensors(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		assert_fails(tensor_function_apply(&infers, NULL, NULL, TENSOR_LIST(x), &y, 1),
			     EINVAL, "inference");
		assert_null(y);
		/* Without a gradient it is an ordinary inference tensor. */
		assert_done(tensor_function_apply(&infers, NULL, NULL,
						  TENSOR_LIST(ok(tensor_detach(x))), &y, 1));
		assert_true(tensor_is_inference(y));
	}
}

static void view_of_another_leaf_becomes_an_output(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *w = leaf_iota(5, TENSOR_INTS(3)), *v, *y;

		tensor_no_grad
			v = ok(tensor_slice(w, 0, 0, 2, 1));
		assert_done(tensor_function_apply(&gives_data, v, NULL, TENSOR_LIST(x), &y, 1));
		assert_name(tensor_grad_fn(y), "GivesBackward");
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 2, 2);
		assert_null(tensor_grad(w));
		/* Its memory is that of the leaf. */
		assert_fails(tensor_add_scalar_(y, S(1)), EINVAL, "view");
	}
}

static void backward_must_return_plain_gradients(void **state)
{
	for (int k = 0; k < 3; k += 2)
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

			assert_done(tensor_function_apply(&odd_gradients, (void *)odd_kinds[k],
							  NULL, TENSOR_LIST(x), &y, 1));
			assert_fails(tensor_backward(tensor_sum(y)), EINVAL, odd_kinds[k]);
			assert_null(tensor_grad(x));
		}
}

/* ---- saved tensors ---- */

static int packs;

static void *pack_it(tensor *t, void *ctx)
{
	(void)ctx;
	packs++;
	return tensor_keep(ok(tensor_clone(t)));
}

static tensor *unpack_it(void *packed, void *ctx)
{
	(void)ctx;
	return tensor_scope_add(tensor_retain(packed));
}

static tensor *unpack_odd(void *packed, void *ctx)
{
	return odd(ctx, packed);
}

static void discard_it(void *packed, void *ctx)
{
	(void)ctx;
	tensor_release(packed);
}

static const struct tensor_saved_hooks keeps = { .pack = pack_it,
						 .unpack = unpack_it,
						 .discard = discard_it };

static void unpack_must_return_a_plain_tensor(void **state)
{
	for (int k = 1; k < 3; k++)
		tensor_scope {
			struct tensor_saved_hooks hooks = { .pack = pack_it,
							    .unpack = unpack_odd,
							    .discard = discard_it,
							    .ctx = (void *)odd_kinds[k] };
			tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL;

			tensor_with_saved_hooks(&hooks) y = ok(tensor_mul(x, x));
			assert_fails(tensor_backward(tensor_sum(y)), EINVAL, odd_kinds[k]);
		}
}

/* Only what the graph keeps is packed. */
static void pack_does_not_see_temporaries_of_forward_mode(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(2), F32)), *y = NULL;

		packs = 0;
		x = ok(tensor_make_dual(x, x));
		tensor_with_saved_hooks(&keeps) y = ok(tensor_mul(x, x));
		assert_values(tensor_tangent(y), 0, 2, 2);
		assert_int_equal(packs, 0);
	}
}

static void saved_hook_scopes_may_be_left_in_any_order(void **state)
{
	tensor_scope {
		struct tensor_saved_hooks_guard outer = tensor_saved_hooks_enter(&keeps),
						inner = tensor_saved_hooks_enter(NULL);
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		packs = 0;
		tensor_saved_hooks_leave(&outer);
		ok(tensor_mul(x, x));
		assert_int_equal(packs, 0);
		tensor_saved_hooks_leave(&inner);
		ok(tensor_mul(x, x));
		assert_int_equal(packs, 0);
		tensor_saved_hooks_leave(&inner);
	}
}

static void *leave_scope_open(void *arg)
{
	(void)arg;
	tensor_saved_hooks_enter(&keeps);
	return NULL;
}

/* LeakSanitizer checks it. */
static void end_of_a_thread_leaves_its_scopes(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, leave_scope_open, NULL), 0);
	pthread_join(thread, NULL);
}

/* ---- the state of the thread ---- */

static tensor *leave_modes(tensor *grad, void *ctx)
{
	(void)ctx;
	tensor_grad_enter(true);
	tensor_inference_enter(true);
	tensor_anomaly_enter(true);
	tensor_saved_hooks_enter(&keeps);
	return grad;
}

static int forward_leaves_modes(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs,
				tensor **outputs, int noutputs)
{
	leave_modes(inputs[0], NULL);
	return double_it(ctx, inputs, ninputs, outputs, noutputs);
}

static void assert_usual_modes(tensor *x)
{
	assert_true(tensor_is_grad_enabled());
	assert_false(tensor_is_inference_mode_enabled());
	assert_false(tensor_is_anomaly_mode_enabled());
	packs = 0;
	ok(tensor_mul(x, x));
	assert_int_equal(packs, 0);
}

static tensor *check_modes(tensor *grad, void *ctx)
{
	*(bool *)ctx = !tensor_is_grad_enabled() && !tensor_is_inference_mode_enabled() &&
		       !tensor_is_anomaly_mode_enabled();
	return grad;
}

static void modes_that_a_function_sets_end_with_it(void **state)
{
	static const struct tensor_function leaves = { .name = "Leaves",
						       .forward = forward_leaves_modes,
						       .backward = twice };
	bool usual = false;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3)));

		assert_done(tensor_register_hook(y, leave_modes, NULL, NULL, NULL));
		assert_done(tensor_register_hook(x, check_modes, &usual, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_true(usual);
		assert_usual_modes(x);
		assert_false(tensor_is_inference(tensor_grad(x)));
		assert_done(tensor_backward(ok(tensor_sum(tensor_mul_scalar(x, S(3))))));
		assert_values(tensor_grad(x), 0, 6, 6);
	}
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		assert_fails(tensor_function_apply(&leaves, NULL, NULL, TENSOR_LIST(x), &y, 1),
			     EINVAL, "inference");
		assert_usual_modes(x);
	}
}

/* ---- inference tensors ---- */

static void inference_tensors_keep_their_geometry_outside(void **state)
{
	tensor_scope {
		tensor *t = odd("inference", ok(tensor_ones(TENSOR_INTS(1, 2), F32)));

		assert_fails(tensor_unsqueeze_(t, 0), EPERM, "inference mode");
		assert_fails(tensor_squeeze_(t), EPERM, "inference mode");
		assert_fails(tensor_squeeze_dim_(t, 0), EPERM, "inference mode");
		assert_fails(tensor_t_(t), EPERM, "inference mode");
		assert_fails(tensor_transpose_(t, 0, 1), EPERM, "inference mode");
		assert_fails(tensor_as_strided_(t, TENSOR_INTS(1), TENSOR_INTS(1), 0), EPERM,
			     "inference mode");
		assert_fails(tensor_detach_(t), EPERM, "inference mode");
		assert_null(tensor_mutable_data(t));
		assert_int_equal(tensor_last_error()->code, EPERM);
		assert_int_equal(tensor_dim(t), 2);
		tensor_inference_mode ok(tensor_unsqueeze_(t, 0));
		assert_int_equal(tensor_dim(t), 3);
	}
}

static void instance_norm_refuses_statistics_of_inference_mode(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_randn(TENSOR_INTS(2, 2, 3), F32)),
		       *mean = odd("inference", ok(tensor_zeros(TENSOR_INTS(2), F32))),
		       *var = ok(tensor_ones(TENSOR_INTS(2), F32));

		assert_fails(tensor_instance_norm(x, tensor_none, tensor_none, mean, var, true, 0.1,
						  1e-5, false),
			     EPERM, "inference mode");
		assert_values(mean, 0, 0, 0);
	}
}

static void forward_mode_in_inference_mode(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2)), *d = ok(tensor_make_dual(x, x));

		tensor_inference_mode
		{
			tensor *y = ok(tensor_mul(d, d)), *e;

			assert_values(tensor_tangent(y), 0, 2, 8);
			e = ok(tensor_make_dual(x, ok(tensor_ones(TENSOR_INTS(2), F32))));
			assert_values(tensor_tangent(ok(tensor_mul(e, e))), 0, 2, 4);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hooks_must_return_plain_gradients),
		cmocka_unit_test(set_grad_takes_plain_gradients),
		cmocka_unit_test(backward_of_an_inference_gradient_gives_normal_gradients),
		cmocka_unit_test(forward_must_not_return_inference_tensors),
		cmocka_unit_test(view_of_another_leaf_becomes_an_output),
		cmocka_unit_test(backward_must_return_plain_gradients),
		cmocka_unit_test(unpack_must_return_a_plain_tensor),
		cmocka_unit_test(pack_does_not_see_temporaries_of_forward_mode),
		cmocka_unit_test(saved_hook_scopes_may_be_left_in_any_order),
		cmocka_unit_test(end_of_a_thread_leaves_its_scopes),
		cmocka_unit_test(modes_that_a_function_sets_end_with_it),
		cmocka_unit_test(inference_tensors_keep_their_geometry_outside),
		cmocka_unit_test(instance_norm_refuses_statistics_of_inference_mode),
		cmocka_unit_test(forward_mode_in_inference_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
