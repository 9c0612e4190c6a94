// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Common errors of autograd engines, numbered: each test is named after the correct behaviour. Here those of saved
 * tensors, gradients and in-place changes. Order, devices and anomaly mode are in test_autograd_hazards_order.c, threads
 * and processes in test_autograd_hazards_threads.c, and depth (17) in test_autograd_depth.c.
 */
#include "autograd.h"

#include <math.h>
#include <tensor/function.h>

static const tensor_list all = { NULL, 0 };

static int retain(tensor *y)
{
	return tensor_backward_ex(TENSOR_LIST(y), NULL, all, NULL, TENSOR_RETAIN_GRAPH);
}

/* 1 */
static void version_belongs_to_the_storage(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_exp(x)),
		       *y = ok(tensor_sum(tensor_mul(h, h)));
		tensor *d = ok(tensor_detach(h)), *v = ok(tensor_slice(d, 0, 0, 1, 1));
		uint32_t before = tensor_version(h);

		ok(tensor_zero_(v));
		assert_int_equal(tensor_version(h), before + 1);
		assert_int_equal(tensor_version(d), before + 1);
		assert_fails(tensor_backward(y), EINVAL, "changed in place");
	}
}

/* 2 */
static void saved_output_makes_no_cycle(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	for (int i = 0; i < 10; i++)
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_exp(x));

			assert_int_equal(tensor_node_saved(tensor_grad_fn(y)), 1);
			assert_ptr_equal(
				tensor_grad_fn(ok(tensor_node_saved_get(tensor_grad_fn(y), 0))),
				tensor_grad_fn(y));
			ok(tensor_add_scalar_(y, S(1)));
			assert_fails(tensor_backward(tensor_sum(y)), EINVAL, "backward of exp");
			assert_non_null(
				strstr(tensor_last_error()->text, "expected version 0, found 1"));
		}
	tensor_live_counts(&after);
	assert_true(after.tensors <= before.tensors + 4);
}

/* 3 */
static void saved_tensors_are_released_after_their_node(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)),
		       *y = ok(tensor_sum(h));

		assert_done(retain(y));
		assert_int_equal(tensor_node_saved(tensor_grad_fn(h)), 1);
		assert_done(tensor_backward(y));
		assert_int_equal(tensor_node_saved(tensor_grad_fn(h)), 0);
		assert_fails(tensor_backward(y), EINVAL, "pass TENSOR_RETAIN_GRAPH");
	}
}

static tensor *kept;

static tensor *keep_gradient(tensor *grad, void *ctx)
{
	(void)ctx;
	kept = tensor_retain(grad);
	return grad;
}

/* 4 */
static void leaf_takes_only_an_unshared_gradient(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *w = leaf_iota(1, TENSOR_INTS(2)),
		       *y = ok(tensor_add(x, w));

		assert_done(tensor_register_hook(y, keep_gradient, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(tensor_mul_scalar(y, S(2)))));
		assert_false(tensor_shares_storage(tensor_grad(x), tensor_grad(w)));
		assert_false(tensor_shares_storage(tensor_grad(x), kept));
		assert_false(tensor_shares_storage(tensor_grad(w), kept));
		tensor_release(kept);
	}
}

/* 5 */
static void gradients_are_added_in_place_only_if_unshared(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_add(x, x)),
		       *g = ok(tensor_ones(TENSOR_INTS(2), F32));

		assert_done(
			tensor_backward_ex(TENSOR_LIST(y, y), (tensor *[]){ g, g }, all, NULL, 0));
		assert_values(g, 0, 1, 1);
		assert_values(tensor_grad(x), 0, 4, 4);
	}
}

static int copy_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			int nout)
{
	(void)ctx;
	(void)nin;
	(void)nout;
	out[0] = tensor_clone(in[0]);
	return 0;
}

/* Leaves the gradient of its input undefined. */
static int no_gradient(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
		       int nin)
{
	(void)ctx, (void)grads, (void)ngrads, (void)out, (void)nin;
	return 0;
}

static const struct tensor_function undefined = { "Undefined", copy_forward, no_gradient, 0 };

/* 6 */
static void undefined_gradient_counts_as_arrived(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)), *two[2], *y;

		assert_done(tensor_chunk(h, 2, 0, two, 2));
		assert_done(tensor_backward(tensor_sum(two[1])));
		assert_values(tensor_grad(x), 1e-4, 0, exp(2));
		assert_done(tensor_set_grad(x, NULL));
		h = ok(tensor_exp(x));
		assert_done(tensor_function_apply(&undefined, NULL, NULL, TENSOR_LIST(h), &y, 1));
		assert_done(tensor_backward(tensor_sum(tensor_add(y, h))));
		assert_values(tensor_grad(x), 1e-4, exp(1), exp(2));
	}
}

/* ---- functions that return a wrong gradient ---- */

static int wrong;

static int wrong_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			  int nin)
{
	(void)ctx;
	(void)ngrads;
	(void)nin;
	out[0] = wrong == 0 ? tensor_expand(grads[0], TENSOR_INTS(3, 2)) :
		 wrong == 1 ? tensor_to(grads[0], TENSOR_OPTIONS(.dtype = TENSOR_F64)) :
		 wrong == 2 ? tensor_full(TENSOR_INTS(5), S(1), F32) :
			      tensor_to_sparse(grads[0]);
	return out[0] ? 0 : -1;
}

static const struct tensor_function copy = { "Copy", copy_forward, wrong_backward, 0 };

/* 7 */
static void one_place_checks_what_a_node_returns(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		for (wrong = 0; wrong < 4; wrong++) {
			assert_done(tensor_set_grad(x, NULL));
			assert_done(
				tensor_function_apply(&copy, NULL, NULL, TENSOR_LIST(x), &y, 1));
			y = ok(tensor_sum(y));
			if (wrong == 2) {
				assert_fails(tensor_backward(y), EINVAL,
					     "must have shape [2], got [5]");
				continue;
			}
			assert_done(tensor_backward(y));
			assert_int_equal(tensor_dtype(tensor_grad(x)), TENSOR_F32);
			if (wrong < 3)
				assert_values(tensor_grad(x), 0, wrong ? 1 : 3, wrong ? 1 : 3);
		}
	}
}

static char order[32];

static tensor *note(tensor *grad, void *ctx)
{
	strcat(order, ctx);
	return grad;
}

/* 11 */
static void only_what_the_inputs_need_is_computed(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *w = leaf_iota(1, TENSOR_INTS(2)),
		       *a = ok(tensor_exp(x)), *g[1];

		order[0] = 0;
		assert_done(tensor_register_hook(a, note, "a", NULL, NULL));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_mul(a, w))), NULL,
					       TENSOR_LIST(w), g, 0));
		assert_string_equal(order, "");
		assert_values(g[0], 1e-4, exp(1), exp(2));
		assert_null(tensor_grad(x));
	}
}

/* 12 */
static void in_place_change_of_a_view_changes_the_history_of_its_base(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_mul_scalar(x, S(1)));

		ok(tensor_mul_scalar_(ok(tensor_slice(h, 0, 0, 2, 1)), S(3)));
		assert_name(tensor_grad_fn(h), "CopySlices");
		assert_done(tensor_backward(tensor_sum(h)));
		assert_values(tensor_grad(x), 0, 3, 3, 1, 1);
	}
}

/* 12 */
static void view_has_a_new_node_after_its_base_was_changed(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_mul_scalar(x, S(1))),
		       *v = ok(tensor_slice(h, 0, 1, 3, 1));
		tensor_node *before = tensor_grad_fn(v);

		ok(tensor_mul_scalar_(h, S(5)));
		assert_ptr_not_equal(tensor_grad_fn(v), before);
		assert_done(tensor_backward(tensor_sum(v)));
		assert_values(tensor_grad(x), 0, 0, 5, 5, 0);
	}
}

/* 12: one of several views of an operator is a view like others here, because its node is a strided view of the base. */
static void in_place_change_of_one_of_several_views_has_the_right_gradient(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_mul_scalar(x, S(1))),
		       *parts[2];

		assert_done(tensor_chunk(h, 2, 0, parts, 2));
		ok(tensor_mul_scalar_(parts[1], S(3)));
		assert_done(retain(ok(tensor_sum(h))));
		assert_values(tensor_grad(x), 0, 1, 1, 3, 3);
		assert_done(retain(ok(tensor_sum(parts[0]))));
		assert_values(tensor_grad(x), 0, 2, 2, 3, 3);
		assert_done(retain(ok(tensor_sum(parts[1]))));
		assert_values(tensor_grad(x), 0, 2, 2, 6, 6);
	}
}

static int view_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			int nout)
{
	(void)ctx, (void)nin, (void)nout;
	out[0] = tensor_slice(in[0], 0, 0, 2, 1);
	return out[0] ? 0 : -1;
}

static const struct tensor_function view_function = { "View", view_forward, wrong_backward, 0 };

/* 12 */
static void views_without_a_node_of_their_own_refuse_in_place_changes(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *h = ok(tensor_exp(x)), *v = NULL;

		tensor_no_grad
			v = ok(tensor_slice(h, 0, 0, 2, 1));
		assert_fails(tensor_zero_(v), EINVAL, "under tensor_no_grad");
		assert_done(
			tensor_function_apply(&view_function, NULL, NULL, TENSOR_LIST(h), &v, 1));
		assert_fails(tensor_zero_(v), EINVAL, "view");
	}
}

/* 13 */
static void leaves_and_out_arguments_are_not_overwritten(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *out = iota(0, TENSOR_INTS(2));

		assert_fails(tensor_zero_(x), EINVAL, "leaf");
		assert_fails(tensor_add_out(out, x, x), EINVAL, "out= records no gradient");
		assert_fails(tensor_add_out(x, out, out), EINVAL, "out= records no gradient");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_belongs_to_the_storage),
		cmocka_unit_test(saved_output_makes_no_cycle),
		cmocka_unit_test(saved_tensors_are_released_after_their_node),
		cmocka_unit_test(leaf_takes_only_an_unshared_gradient),
		cmocka_unit_test(gradients_are_added_in_place_only_if_unshared),
		cmocka_unit_test(undefined_gradient_counts_as_arrived),
		cmocka_unit_test(one_place_checks_what_a_node_returns),
		cmocka_unit_test(only_what_the_inputs_need_is_computed),
		cmocka_unit_test(in_place_change_of_a_view_changes_the_history_of_its_base),
		cmocka_unit_test(view_has_a_new_node_after_its_base_was_changed),
		cmocka_unit_test(in_place_change_of_one_of_several_views_has_the_right_gradient),
		cmocka_unit_test(views_without_a_node_of_their_own_refuse_in_place_changes),
		cmocka_unit_test(leaves_and_out_arguments_are_not_overwritten),
	};

	return cmocka_run_group_tests_name("autograd_hazards", tests, NULL, NULL);
}
