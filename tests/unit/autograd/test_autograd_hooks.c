// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Hooks: order, replacement, removal, failure, lifetime. Retained gradients are in test_autograd_retained.c. */
#include "autograd.h"

/* ---- hooks of the tests ---- */

static char order[64];
static int destroyed;

static void note(const char *c)
{
	strncat(order, c, sizeof(order) - strlen(order) - 1);
}

static tensor *seen(tensor *grad, void *ctx)
{
	note(ctx);
	return grad;
}

static tensor *doubled(tensor *grad, void *ctx)
{
	(void)ctx;
	return tensor_mul_scalar(grad, S(2));
}

static void count_destroy(void *ctx)
{
	(void)ctx;
	destroyed++;
}

static int setup(void **state)
{
	(void)state;
	order[0] = 0;
	destroyed = 0;
	return 0;
}

/* ---- on a tensor ---- */

static void hooks_run_in_order_and_replace_the_gradient(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3)));

		assert_done(tensor_register_hook(y, seen, "a", NULL, NULL));
		assert_done(tensor_register_hook(y, doubled, NULL, NULL, NULL));
		assert_done(tensor_register_hook(y, seen, "b", NULL, NULL));
		assert_done(tensor_register_hook(x, seen, "x", NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 6, 6);
		assert_string_equal(order, "abx");
	}
}

static void hook_of_an_input_runs_once_before_its_gradient_is_returned(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3))),
		       *g[2];

		assert_done(tensor_register_hook(y, doubled, NULL, NULL, NULL));
		assert_done(tensor_register_hook(x, seen, "x", NULL, NULL));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(y, x),
					       g, TENSOR_RETAIN_GRAPH));
		assert_values(g[0], 0, 2, 2);
		assert_values(g[1], 0, 6, 6);
		assert_string_equal(order, "x");
		assert_null(tensor_grad(x));
		assert_done(
			tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(y), g, 0));
		assert_values(g[0], 0, 2, 2);
		assert_string_equal(order, "x");
	}
}

static void hook_gets_the_sum_of_all_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3)));

		assert_done(tensor_register_hook(y, seen, "a", NULL, NULL));
		assert_done(tensor_register_hook(y, doubled, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(tensor_add(y, tensor_mul(y, y)))));
		assert_values(tensor_grad(x), 0, 6 * 7, 6 * 13);
		assert_string_equal(order, "a");
	}
}

static void hook_of_one_of_several_outputs(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *part[2];

		assert_done(tensor_chunk(x, 2, 0, part, 2));
		assert_done(tensor_register_hook(part[1], doubled, NULL, NULL, NULL));
		assert_done(
			tensor_backward(tensor_sum(tensor_cat(TENSOR_LIST(part[0], part[1]), 0))));
		assert_values(tensor_grad(x), 0, 1, 1, 2, 2);
	}
}

static void hook_stays_with_the_value_before_an_in_place_change(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3)));

		assert_done(tensor_register_hook(y, doubled, NULL, NULL, NULL));
		assert_done(tensor_retain_grad(y));
		ok(tensor_mul_scalar_(y, S(5)));
		assert_done(tensor_register_hook(y, seen, "new", NULL, NULL));
		assert_true(tensor_retains_grad(y));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 30, 30);
		assert_values(tensor_grad(y), 0, 1, 1);
		assert_string_equal(order, "new");
	}
}

static void hook_of_a_base_and_of_its_view(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y = ok(tensor_mul_scalar(x, S(1)));
		tensor *v = ok(tensor_slice(y, 0, 0, 2, 1));

		assert_done(tensor_retain_grad(v));
		ok(tensor_mul_scalar_(v, S(3)));
		assert_done(tensor_retain_grad(y));
		assert_done(tensor_backward(tensor_sum(tensor_add(tensor_sum(v), tensor_sum(y)))));
		assert_values(tensor_grad(x), 0, 6, 6, 1, 1);
		assert_values(tensor_grad(y), 0, 2, 2, 1, 1);
		assert_values(tensor_grad(v), 0, 1, 1);
	}
}

static void hook_is_differentiated_when_backward_is_recorded(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_full(TENSOR_INTS(1), S(3), F64))),
		       *y = ok(tensor_mul(x, x)), *g[1];

		/* The gradient of x is 2 * 2x instead of 2x, its derivative 4. */
		assert_done(tensor_register_hook(y, doubled, NULL, NULL, NULL));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), g,
					       TENSOR_CREATE_GRAPH));
		assert_values(g[0], 0, 12);
		assert_done(tensor_backward(tensor_sum(g[0])));
		assert_values(tensor_grad(x), 0, 4);
	}
}

/* ---- on a leaf ---- */

struct step {
	tensor *others;
	int calls, without;
};

/* Takes a step and drops the gradient, as an optimizer inside of backward. */
static int take_step(tensor *leaf, void *ctx)
{
	struct step *s = ctx;

	s->calls++;
	s->without += !s->others || !tensor_grad(s->others);
	tensor_no_grad
		ok(tensor_sub_(leaf, tensor_grad(leaf)));
	return tensor_set_grad(leaf, NULL);
}

static void gradient_of_a_leaf_can_be_used_while_backward_continues(void **state)
{
	tensor_scope {
		tensor *a = leaf_iota(1, TENSOR_INTS(2)), *b = leaf_iota(5, TENSOR_INTS(2));
		tensor *y = ok(tensor_mul_scalar(a, S(2))), *z = ok(tensor_add(y, b));
		struct step s = { .others = a };

		assert_done(
			tensor_register_post_accumulate_grad_hook(b, take_step, &s, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(z)));
		assert_int_equal(s.calls, 1);
		assert_int_equal(s.without, 1); /* the gradient of a was computed later */
		assert_values(b, 0, 4, 5);
		assert_null(tensor_grad(b));
		assert_values(tensor_grad(a), 0, 2, 2);
	}
}

static void accumulated_hook_needs_a_leaf(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_neg(x)),
		       *c = iota(0, TENSOR_INTS(2));

		assert_fails(tensor_register_post_accumulate_grad_hook(y, take_step, NULL, NULL,
								       NULL),
			     EINVAL, "not a leaf");
		assert_fails(tensor_register_post_accumulate_grad_hook(c, take_step, NULL, NULL,
								       NULL),
			     EINVAL, "does not require");
		assert_fails(tensor_register_hook(c, seen, NULL, NULL, NULL), EINVAL,
			     "does not require");
		assert_fails(tensor_register_hook(y, NULL, NULL, NULL, NULL), EINVAL, "NULL");
		assert_fails(tensor_register_hook(NULL, seen, NULL, NULL, NULL), EINVAL, "NULL");
		assert_fails(tensor_node_register_prehook(NULL, NULL, NULL, NULL, NULL), EINVAL,
			     "NULL");
		assert_fails(tensor_retain_grad(c), EINVAL, "does not require");
		assert_done(tensor_retain_grad(x));
		assert_false(tensor_retains_grad(x));
		tensor_hook_remove(NULL);
		tensor_hook_release(NULL);
	}
}

/* ---- on a node ---- */

static int before(tensor **grads, int n, void *ctx)
{
	note(ctx);
	assert_int_equal(n, 1);
	grads[0] = tensor_mul_scalar(grads[0], S(10));
	return 0;
}

static int after(tensor **input_grads, int ninputs, tensor *const *output_grads, int noutputs,
		 void *ctx)
{
	note(ctx);
	assert_int_equal(noutputs, 1);
	assert_int_equal(ninputs, 2);
	assert_non_null(output_grads[0]);
	assert_null(input_grads[1]); /* of a constant */
	input_grads[0] = tensor_add_scalar(input_grads[0], S(1));
	return 0;
}

static void hooks_of_a_node_run_before_and_after_it(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *c = iota(3, TENSOR_INTS(2));
		tensor *y = ok(tensor_mul(x, c));

		assert_done(tensor_node_register_hook(tensor_grad_fn(y), after, "2", NULL, NULL));
		assert_done(
			tensor_node_register_prehook(tensor_grad_fn(y), before, "1", NULL, NULL));
		assert_done(tensor_register_hook(y, seen, "0", NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 31, 41);
		assert_string_equal(order, "012");
	}
}

static int before_leaf(tensor **grads, int n, void *ctx)
{
	note(ctx);
	grads[0] = n == 1 ? tensor_mul_scalar(grads[0], S(10)) : NULL;
	return 0;
}

static int after_leaf(tensor **input_grads, int ninputs, tensor *const *output_grads, int noutputs,
		      void *ctx)
{
	(void)input_grads;
	note(ctx);
	assert_int_equal(ninputs, 0);
	assert_int_equal(noutputs, 1);
	assert_values(output_grads[0], 0, 10, 10);
	return 0;
}

static void hooks_of_a_leaf_s_node(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		assert_done(tensor_node_register_prehook(tensor_grad_fn(x), before_leaf, "1", NULL,
							 NULL));
		assert_done(
			tensor_node_register_hook(tensor_grad_fn(x), after_leaf, "2", NULL, NULL));
		assert_done(tensor_backward(tensor_sum(x)));
		assert_values(tensor_grad(x), 0, 10, 10);
		assert_string_equal(order, "12");
	}
}

/* ---- failure ---- */

static tensor *fails(tensor *grad, void *ctx)
{
	return ctx ? tensor_matmul(grad, grad) : NULL;
}

static tensor *of_another_shape(tensor *grad, void *ctx)
{
	(void)ctx;
	return tensor_sum(grad);
}

static int node_fails(tensor **grads, int n, void *ctx)
{
	(void)grads;
	(void)n;
	(void)ctx;
	return -EDEADLK;
}

static int gives_too_much(tensor **input_grads, int ninputs, tensor *const *output_grads, int n,
			  void *ctx)
{
	(void)ctx;
	(void)n;
	input_grads[ninputs - 1] = output_grads[0];
	return 0;
}

static void failing_hook_ends_backward_with_an_error(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2, 3)), *c = iota(3, TENSOR_INTS(2, 3));
		tensor *y = ok(tensor_mul(x, c)), *z = ok(tensor_sum(y));
		tensor_hook *h;

		assert_done(tensor_register_hook(y, fails, NULL, NULL, &h));
		assert_fails(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     ECANCELED, "a hook of MulBackward");
		tensor_hook_remove(h);
		assert_done(tensor_register_hook(y, fails, "matmul", NULL, &h));
		assert_fails(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     EINVAL, "matmul");
		tensor_hook_remove(h);
		assert_done(tensor_register_hook(y, of_another_shape, NULL, NULL, &h));
		assert_fails(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     EINVAL, "must return [2, 3] of f32");
		tensor_hook_remove(h);
		assert_done(tensor_node_register_prehook(tensor_grad_fn(y), node_fails, NULL, NULL,
							 &h));
		assert_fails(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     EDEADLK, "a hook of MulBackward");
		tensor_hook_remove(h);
		assert_done(tensor_node_register_hook(tensor_grad_fn(y), gives_too_much, NULL, NULL,
						      &h));
		assert_fails(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
						TENSOR_RETAIN_GRAPH),
			     EINVAL, "requires none");
		tensor_hook_remove(h);
		assert_null(tensor_grad(x));
		assert_done(tensor_backward(z));
		assert_values(tensor_grad(x), 0, 3, 4, 5, 6, 7, 8);
	}
}

/* ---- lifetime ---- */

struct self {
	tensor_hook *mine, *other;
};

static tensor *removes(tensor *grad, void *ctx)
{
	struct self *s = ctx;

	note("r");
	tensor_hook_remove(s->other);
	tensor_hook_remove(s->mine);
	return grad;
}

static void hook_removes_itself_and_the_next_one(void **state)
{
	struct self s;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		assert_done(tensor_register_hook(x, removes, &s, count_destroy, &s.mine));
		assert_done(tensor_register_hook(x, seen, "never", count_destroy, &s.other));
		assert_done(tensor_register_hook(x, seen, "x", count_destroy, NULL));
		assert_done(tensor_backward(tensor_sum(x)));
		assert_string_equal(order, "rx");
		assert_int_equal(destroyed, 2);
		assert_done(tensor_backward(tensor_sum(x)));
		assert_string_equal(order, "rxx");
	}
	assert_int_equal(destroyed, 3);
}

static void handle_may_outlive_the_tensor(void **state)
{
	tensor_hook *kept, *released;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_neg(x));

		assert_done(tensor_register_hook(y, seen, "y", count_destroy, &kept));
		assert_done(tensor_register_hook(x, seen, "x", count_destroy, &released));
		tensor_hook_release(released);
		assert_done(tensor_backward(tensor_sum(y)));
		assert_string_equal(order, "yx");
		assert_int_equal(destroyed, 0);
	}
	/* The function of a handle that is kept cannot be called any more, either. */
	assert_int_equal(destroyed, 2);
	tensor_hook_remove(kept);
	assert_int_equal(destroyed, 2);
}

/* ---- another backward inside ---- */

static tensor *runs_backward(tensor *grad, void *ctx)
{
	struct tensor_grad_guard guard = tensor_grad_enter(true);
	int err = tensor_backward(tensor_sum(ctx));

	tensor_grad_leave(&guard);
	return err < 0 ? NULL : grad;
}

static void hook_runs_another_backward(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3)));

		assert_done(tensor_register_hook(y, runs_backward, x, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 4, 4);
	}
}

static int drops(tensor **grads, int n, void *ctx)
{
	(void)ctx;
	for (int i = 0; i < n; i++)
		grads[i] = NULL;
	return 0;
}

static void prehook_may_drop_all_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul(x, x));

		assert_done(
			tensor_node_register_prehook(tensor_grad_fn(y), drops, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_null(tensor_grad(x));
	}
}

static tensor *reshaped(tensor *grad, void *ctx)
{
	(void)ctx;
	return tensor_resize_(grad, TENSOR_INTS(1));
}

static int reshapes_first(tensor **grads, int n, void *ctx)
{
	(void)n;
	return reshaped(grads[0], ctx) ? 0 : -1;
}

static int reshapes_input(tensor **input_grads, int ninputs, tensor *const *output_grads,
			  int noutputs, void *ctx)
{
	(void)output_grads;
	(void)noutputs;
	return reshapes_first(input_grads, ninputs, ctx);
}

static void hook_that_changes_the_shape_of_a_gradient_is_refused(void **state)
{
	for (int k = 0; k < 3; k++)
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul(x, x));
			tensor_node *node = tensor_grad_fn(y);

			assert_done(k == 0 ? tensor_register_hook(x, reshaped, NULL, NULL, NULL) :
				    k == 1 ? tensor_node_register_prehook(node, reshapes_first,
									  NULL, NULL, NULL) :
					     tensor_node_register_hook(node, reshapes_input, NULL,
								       NULL, NULL));
			assert_fails(tensor_backward_ex(TENSOR_LIST(y),
							&(tensor *){ iota(1, TENSOR_INTS(2)) },
							TENSOR_LIST(), NULL, 0),
				     EINVAL, "must return [2]");
			assert_null(tensor_grad(x));
		}
}

static tensor *returns_a_leaf(tensor *grad, void *ctx)
{
	(void)ctx;
	return leaf(tensor_ones_like(grad, TENSOR_OPTIONS()));
}

static void gradient_of_a_leaf_has_no_history(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(3)));

		assert_done(tensor_register_hook(x, returns_a_leaf, NULL, NULL, NULL));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 1, 1);
		assert_false(tensor_requires_grad(tensor_grad(x)));
		ok(tensor_zero_(tensor_grad(x)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(hooks_run_in_order_and_replace_the_gradient, setup),
		cmocka_unit_test_setup(hook_of_an_input_runs_once_before_its_gradient_is_returned,
				       setup),
		cmocka_unit_test_setup(hook_gets_the_sum_of_all_gradients, setup),
		cmocka_unit_test_setup(hook_of_one_of_several_outputs, setup),
		cmocka_unit_test_setup(hook_stays_with_the_value_before_an_in_place_change, setup),
		cmocka_unit_test_setup(hook_of_a_base_and_of_its_view, setup),
		cmocka_unit_test_setup(hook_is_differentiated_when_backward_is_recorded, setup),
		cmocka_unit_test_setup(gradient_of_a_leaf_can_be_used_while_backward_continues,
				       setup),
		cmocka_unit_test_setup(accumulated_hook_needs_a_leaf, setup),
		cmocka_unit_test_setup(hooks_of_a_node_run_before_and_after_it, setup),
		cmocka_unit_test_setup(hooks_of_a_leaf_s_node, setup),
		cmocka_unit_test_setup(failing_hook_ends_backward_with_an_error, setup),
		cmocka_unit_test_setup(hook_removes_itself_and_the_next_one, setup),
		cmocka_unit_test_setup(handle_may_outlive_the_tensor, setup),
		cmocka_unit_test_setup(hook_runs_another_backward, setup),
		cmocka_unit_test_setup(prehook_may_drop_all_gradients, setup),
		cmocka_unit_test_setup(hook_that_changes_the_shape_of_a_gradient_is_refused, setup),
		cmocka_unit_test_setup(gradient_of_a_leaf_has_no_history, setup),
	};

	return cmocka_run_group_tests_name("autograd_hooks", tests, NULL, NULL);
}
