// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions for bindings of other languages: nodes, owned values, parts of vmap, functions with any number of outputs. */
#include "autograd.h"

#include <tensor/binding.h>
#include <tensor/function.h>

static int freed, visited;

static void count_free(void *ctx)
{
	(void)ctx;
	freed++;
}

static int count_visit(void *ctx, void (*destroy)(void *ctx), void *arg)
{
	(void)ctx;
	(void)arg;
	visited += destroy == count_free;
	return 0;
}

static int owned_by(tensor *t)
{
	visited = 0;
	assert_done(tensor_visit_owned(t, count_visit, NULL));
	return visited;
}

static int setup(void **state)
{
	(void)state;
	freed = visited = 0;
	return 0;
}

static tensor *same(tensor *grad, void *ctx)
{
	(void)ctx;
	return grad;
}

static void values_are_owned_by_the_only_tensor_that_leads_to_them(void **state)
{
	tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_neg(x)), *z;

	assert_done(tensor_register_hook(y, same, NULL, count_free, NULL));
	assert_done(tensor_register_hook(x, same, NULL, count_free, NULL));
	/* x is also owned by the caller. */
	assert_int_equal(owned_by(y), 1);
	assert_int_equal(owned_by(x), 0);
	z = ok(tensor_mul(y, y));
	assert_int_equal(owned_by(z), 0);
	assert_int_equal(owned_by(y), 0);
	tensor_release(y);
	/* Two edges lead to the node of y. */
	assert_int_equal(owned_by(z), 1);
	tensor_release(x);
	assert_int_equal(owned_by(z), 2);
	tensor_retain(z);
	assert_int_equal(owned_by(z), 0);
	tensor_release(z);
	assert_int_equal(freed, 0);
	tensor_release(z);
	assert_int_equal(freed, 2);
}

static void a_node_keeps_its_graph_and_what_is_attached(void **state)
{
	tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_neg(x));
	tensor_node *n = tensor_node_retain(tensor_grad_fn(y));

	assert_null(tensor_node_attached(n, count_free));
	assert_done(tensor_node_attach(n, &freed, count_free));
	assert_ptr_equal(tensor_node_attached(n, count_free), &freed);
	assert_fails(tensor_node_attach(NULL, &freed, count_free), EINVAL, "node_attach");
	assert_fails(tensor_node_attach(n, &freed, NULL), EINVAL, "node_attach");
	tensor_release(y);
	assert_ptr_equal(tensor_node_leaf(tensor_node_edge(n, 0, NULL)), x);
	assert_null(tensor_node_leaf(n));
	assert_done(tensor_node_visit_owned(n, count_visit, NULL));
	assert_int_equal(visited, 1);
	assert_int_equal(freed, 0);
	tensor_node_release(n);
	assert_int_equal(freed, 1);
	tensor_node_release(NULL);
	tensor_release(x);
}

static tensor *failing(tensor *grad, void *ctx)
{
	(void)grad;
	(void)ctx;
	tensor_set_error(ECANCELED, "stop");
	tensor_set_error_binding(77);
	return NULL;
}

static void the_number_of_an_error_goes_through_backward(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_neg(x));

		assert_done(tensor_register_hook(y, failing, NULL, NULL, NULL));
		assert_fails(tensor_backward(tensor_sum(y)), ECANCELED, "stop");
		assert_int_equal(tensor_last_error()->binding, 77);
		tensor_anomaly_mode
		{
			assert_fails(tensor_backward(tensor_sum(y)), ECANCELED, "stop");
			assert_int_equal(tensor_last_error()->binding, 77);
		}
		assert_fails(tensor_backward(NULL), EINVAL, "");
		assert_int_equal(tensor_last_error()->binding, 0);
	}
}

static tensor *outputs_of_call[3];
static int noutputs_of_call;

static int any_forward(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs,
		       tensor **outputs, int noutputs)
{
	(void)ninputs;
	assert_null(outputs);
	assert_int_equal(noutputs, 0);
	assert_fails(tensor_function_set_outputs(ctx, NULL, 1), EINVAL, "set_outputs");
	assert_fails(tensor_function_set_outputs(ctx, outputs_of_call, -1), EINVAL, "set_outputs");
	assert_fails(tensor_function_set_flags(ctx, 64), EINVAL, "flags");
	assert_done(tensor_function_set_flags(ctx, TENSOR_FUNCTION_UNDEFINED_GRADS));
	for (int i = 0; i < noutputs_of_call; i++)
		outputs_of_call[i] = tensor_mul_scalar(inputs[0], S(i + 1));
	return tensor_function_set_outputs(ctx, outputs_of_call, noutputs_of_call);
}

static int any_backward(tensor_function_ctx *ctx, tensor *const *output_grads, int noutputs,
			tensor **input_grads, int ninputs)
{
	(void)ctx;
	(void)ninputs;
	assert_int_equal(noutputs, 3);
	assert_null(output_grads[0]);
	assert_null(output_grads[2]);
	input_grads[0] = tensor_mul_scalar(output_grads[1], S(2));
	return 0;
}

static const struct tensor_function any = { .name = "Any",
					    .forward = any_forward,
					    .backward = any_backward };

static int forgets(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs, tensor **outputs,
		   int noutputs)
{
	(void)ctx;
	(void)inputs;
	(void)ninputs;
	(void)outputs;
	(void)noutputs;
	return 0;
}

static void forward_may_decide_the_number_of_outputs(void **state)
{
	static const struct tensor_function forgetful = { .name = "F", .forward = forgets };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		noutputs_of_call = 3;
		assert_done(tensor_function_apply(&any, NULL, NULL, TENSOR_LIST(x), NULL, 0));
		assert_done(tensor_backward(tensor_sum(outputs_of_call[1])));
		assert_values(tensor_grad(x), 0, 2, 2);
		noutputs_of_call = 0;
		assert_done(tensor_function_apply(&any, NULL, NULL, TENSOR_LIST(x), NULL, 0));
		assert_fails(tensor_function_apply(&forgetful, NULL, NULL, TENSOR_LIST(x), NULL, 0),
			     EINVAL, "no place for outputs");
	}
}

static void vmap_in_parts_is_vmap(void **state)
{
	struct tensor_vmap_level *level;

	assert_null(tensor_vmap_enter(0, TENSOR_VMAP_RANDOM_ERROR));
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2, 3)), *s, *y;

		level = tensor_vmap_enter(3, TENSOR_VMAP_RANDOM_ERROR);
		assert_non_null(level);
		assert_null(tensor_vmap_samples(level, x, 0));
		assert_null(tensor_vmap_samples(level, x, 2));
		s = ok(tensor_vmap_samples(level, x, -1));
		assert_true(tensor_is_batched(s));
		assert_int_equal(tensor_dim(s), 1);
		y = ok(tensor_vmap_batch(level, ok(tensor_mul_scalar(s, S(10))), 1));
		assert_null(tensor_vmap_batch(level, s, 5));
		assert_false(tensor_is_batched(ok(tensor_vmap_batch(level, x, 0))));
		tensor_vmap_leave(level);
		assert_values(y, 0, 10, 20, 30, 40, 50, 60);
		assert_null(tensor_neg(s));
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 10, 10, 10, 10, 10, 10);
	}
	tensor_vmap_leave(NULL);
}

/* The mean over the batch instead of each sample's value: only a rule that sees the batch computes it. */
static void a_suspended_level_gives_the_batch(void **state)
{
	struct tensor_vmap_level *outer, *inner;

	assert_false(tensor_vmap_suspend(NULL));
	tensor_vmap_resume(NULL);
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)), *s, *y;

		outer = tensor_vmap_enter(2, TENSOR_VMAP_RANDOM_ERROR);
		s = ok(tensor_vmap_samples(outer, x, 0));
		inner = tensor_vmap_enter(3, TENSOR_VMAP_RANDOM_ERROR);
		assert_false(tensor_vmap_has_samples(inner, s));
		assert_false(tensor_vmap_has_samples(outer, x));
		assert_true(tensor_vmap_has_samples(outer, s));
		/* Only the innermost level can be suspended. */
		assert_false(tensor_vmap_suspend(outer));
		assert_true(tensor_vmap_suspend(inner));
		assert_false(tensor_vmap_suspend(inner));
		tensor_vmap_resume(inner);
		tensor_vmap_leave(inner);
		assert_true(tensor_vmap_suspend(outer));
		y = ok(tensor_mean_dim(tensor_vmap_batch(outer, s, 0), TENSOR_INTS(0), false));
		ok(tensor_rand(TENSOR_SHAPE(2), TENSOR_OPTIONS(0)));
		tensor_vmap_resume(outer);
		assert_null(tensor_rand(TENSOR_SHAPE(2), TENSOR_OPTIONS(0)));
		y = ok(tensor_vmap_batch(outer, ok(tensor_sub(s, y)), 0));
		tensor_vmap_leave(outer);
		assert_values(y, 0, -1.5, -1.5, -1.5, 1.5, 1.5, 1.5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_suspended_level_gives_the_batch, setup),
		cmocka_unit_test_setup(values_are_owned_by_the_only_tensor_that_leads_to_them,
				       setup),
		cmocka_unit_test_setup(a_node_keeps_its_graph_and_what_is_attached, setup),
		cmocka_unit_test_setup(the_number_of_an_error_goes_through_backward, setup),
		cmocka_unit_test_setup(forward_may_decide_the_number_of_outputs, setup),
		cmocka_unit_test_setup(vmap_in_parts_is_vmap, setup),
	};

	return cmocka_run_group_tests_name("autograd_binding", tests, NULL, NULL);
}
