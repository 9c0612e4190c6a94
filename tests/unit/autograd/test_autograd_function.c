// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions of the program: gradients, marks, saved tensors, second derivatives. */
#include "autograd.h"

#include <tensor/function.h>

static int destroyed;

static void count_destroy(void *data)
{
	(void)data;
	destroyed++;
}

static int setup(void **state)
{
	(void)state;
	destroyed = 0;
	return 0;
}

/* ---- exp(x) * y, which saves an output and an input ---- */

static int expmul_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			  int nout)
{
	tensor *e = tensor_exp(in[0]);

	assert_int_equal(nin, 2);
	assert_int_equal(nout, 2);
	out[0] = e;
	out[1] = tensor_mul(e, in[1]);
	return tensor_function_save(ctx, TENSOR_LIST(e, in[1]));
}

static int expmul_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			   int nin)
{
	tensor *e = tensor_function_saved(ctx, 0), *y = tensor_function_saved(ctx, 1);

	assert_int_equal(ngrads, 2);
	assert_int_equal(nin, 2);
	assert_int_equal(tensor_function_saved_count(ctx), 2);
	if (tensor_function_needs_grad(ctx, 0))
		out[0] =
			tensor_add(tensor_mul(grads[0], e), tensor_mul(grads[1], tensor_mul(e, y)));
	if (tensor_function_needs_grad(ctx, 1))
		out[1] = tensor_mul(grads[1], e);
	return e && y ? 0 : -1;
}

static const struct tensor_function expmul = { "ExpMul", expmul_forward, expmul_backward, 0 };

static tensor *expmul_sum(tensor *const *in, void *ctx)
{
	tensor *out[2];

	(void)ctx;
	if (tensor_function_apply(&expmul, NULL, count_destroy, (tensor_list){ in, 2 }, out, 2) < 0)
		return NULL;
	return tensor_add(out[0], tensor_sin(out[1]));
}

static void gradients_and_second_gradients(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_randn(TENSOR_INTS(2, 3), F64)));
		tensor *y = leaf(ok(tensor_randn(TENSOR_INTS(2, 3), F64)));
		tensor *out[2];

		assert_done(
			tensor_gradcheck(expmul_sum, NULL, TENSOR_LIST(x, y), 1e-6, 1e-6, 1e-5));
		assert_done(tensor_gradgradcheck(expmul_sum, NULL, TENSOR_LIST(x, y), 1e-6, 1e-5,
						 1e-4));
		destroyed = 0;
		assert_done(tensor_function_apply(&expmul, NULL, count_destroy, TENSOR_LIST(x, y),
						  out, 2));
		assert_name(tensor_grad_fn(out[0]), "ExpMulBackward");
		assert_ptr_equal(tensor_grad_fn(out[0]), tensor_grad_fn(out[1]));
		assert_int_equal(destroyed, 0);
		assert_int_equal(tensor_node_saved(tensor_grad_fn(out[0])), 2);
		assert_string_equal(tensor_node_saved_name(tensor_grad_fn(out[0]), 1), "saved");
		assert_same(ok(tensor_node_saved_get(tensor_grad_fn(out[0]), 0)), out[0]);
	}
	assert_int_equal(destroyed, 1);
}

static void nothing_is_recorded_without_a_gradient(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2)), *out[2];

		assert_done(tensor_function_apply(&expmul, NULL, count_destroy, TENSOR_LIST(x, x),
						  out, 2));
		assert_int_equal(destroyed, 1);
		assert_false(tensor_requires_grad(out[0]));
		tensor_no_grad {
			tensor *l = leaf_iota(0, TENSOR_INTS(2));

			assert_done(tensor_function_apply(&expmul, NULL, count_destroy,
							  TENSOR_LIST(l, x), out, 2));
			assert_false(tensor_requires_grad(out[1]));
		}
		assert_int_equal(destroyed, 2);
	}
}

/* ---- undefined gradients, data ---- */

static int twice_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			 int nout)
{
	double *factor = tensor_function_data(ctx);

	(void)nin;
	for (int i = 0; i < nout; i++)
		out[i] = tensor_mul_scalar(in[0], S(*factor));
	return 0;
}

static int defined;

static int twice_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			  int nin)
{
	const double *factor = tensor_function_data(ctx);

	(void)nin;
	defined = 0;
	for (int i = 0; i < ngrads; i++) {
		if (!grads[i])
			continue;
		defined |= 1 << i;
		out[0] = out[0] ? tensor_add(out[0], grads[i]) : grads[i];
	}
	out[0] = tensor_mul_scalar(out[0], S(*factor));
	return 0;
}

static const struct tensor_function twice = { "Twice", twice_forward, twice_backward, 0 };
static const struct tensor_function twice_undefined = { "Twice", twice_forward, twice_backward,
							TENSOR_FUNCTION_UNDEFINED_GRADS };

static void gradients_without_value_are_zeros_or_null(void **state)
{
	double factor = 3;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *out[3];

		assert_done(tensor_function_apply(&twice, &factor, NULL, TENSOR_LIST(x), out, 3));
		assert_done(tensor_backward(tensor_sum(out[1])));
		assert_int_equal(defined, 7);
		assert_values(tensor_grad(x), 0, 3, 3);
		assert_done(tensor_function_apply(&twice_undefined, &factor, NULL, TENSOR_LIST(x),
						  out, 3));
		assert_done(tensor_backward(tensor_sum(out[2])));
		assert_int_equal(defined, 4);
		assert_values(tensor_grad(x), 0, 6, 6);
	}
}

/* ---- marks ---- */

static int double_in_place(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			   int nout)
{
	(void)nin;
	if (tensor_function_mark_dirty(ctx, in[0]) < 0)
		return -1;
	out[0] = tensor_mul_scalar_(in[0], S(2));
	if (nout > 1) {
		out[1] = tensor_argmax(in[0], 0, false);
		return tensor_function_mark_non_differentiable(ctx, out[1]);
	}
	return 0;
}

static int double_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			   int nin)
{
	(void)ctx;
	(void)ngrads;
	(void)nin;
	out[0] = tensor_mul_scalar(grads[0], S(2));
	return 0;
}

static int both_inputs(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	for (int i = 0; i < nin && i < nout; i++)
		out[i] = in[i];
	return tensor_function_mark_non_differentiable(ctx, in[1]);
}

static void a_returned_input_keeps_its_mark(void **state)
{
	static const struct tensor_function same = { "Same", both_inputs, double_backward, 0 };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = leaf_iota(3, TENSOR_INTS(2)),
		       *out[2];

		assert_done(tensor_function_apply(&same, NULL, NULL, TENSOR_LIST(x, y), out, 2));
		assert_true(tensor_requires_grad(out[0]));
		assert_false(tensor_requires_grad(out[1]));
		assert_ptr_equal(tensor_data(out[1]), tensor_data(y));
	}
}

static const struct tensor_function in_place = { "Double", double_in_place, double_backward, 0 };

static void input_that_is_changed_in_place(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y = ok(tensor_mul_scalar(x, S(1))),
		       *out[2];
		tensor *v = ok(tensor_slice(y, 0, 0, 2, 1)), *c = iota(1, TENSOR_INTS(4));

		assert_done(tensor_function_apply(&in_place, NULL, NULL, TENSOR_LIST(y), out, 2));
		assert_ptr_equal(out[0], y);
		assert_false(tensor_requires_grad(out[1]));
		assert_name(tensor_grad_fn(y), "DoubleBackward");
		assert_done(tensor_function_apply(&in_place, NULL, NULL, TENSOR_LIST(v), out, 1));
		assert_name(tensor_grad_fn(y), "CopySlices");
		assert_values(y, 0, 4, 8, 6, 8);
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 4, 4, 2, 2);
		assert_fails(tensor_function_apply(&in_place, NULL, NULL, TENSOR_LIST(x), out, 1),
			     EINVAL, "leaf");
		assert_values(x, 0, 1, 2, 3, 4);
		assert_done(tensor_function_apply(&in_place, NULL, NULL, TENSOR_LIST(c), out, 1));
		assert_ptr_equal(out[0], c);
		assert_values(c, 0, 2, 4, 6, 8);
	}
}

static int second_in_place(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			   int nout)
{
	(void)nin;
	(void)nout;
	if (tensor_function_mark_dirty(ctx, in[1]) < 0)
		return -1;
	out[0] = tensor_neg(in[0]);
	out[1] = tensor_add_(in[1], in[0]);
	return 0;
}

static int second_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			   int nin)
{
	(void)ctx;
	(void)ngrads;
	(void)nin;
	out[0] = tensor_sub(grads[1], grads[0]);
	out[1] = grads[1];
	return 0;
}

static const struct tensor_function second = { "Second", second_in_place, second_backward, 0 };

static void further_output_that_is_changed_in_place(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(x, S(10))),
		       *out[2];
		tensor *v = ok(tensor_slice(ok(tensor_exp(x)), 0, 0, 2, 1));

		assert_done(tensor_retain_grad(y));
		assert_done(tensor_function_apply(&second, NULL, NULL, TENSOR_LIST(x, y), out, 2));
		assert_ptr_equal(out[1], y);
		assert_done(tensor_backward(
			tensor_sum(tensor_add(tensor_mul_scalar(out[0], S(3)), y))));
		assert_values(tensor_grad(x), 0, -3 + 1 + 10, -3 + 1 + 10);
		assert_values(tensor_grad(y), 0, 1, 1);
		assert_fails(tensor_function_apply(&second, NULL, NULL, TENSOR_LIST(x, v), out, 2),
			     EOPNOTSUPP, "first input");
	}
}

/* ---- outputs that are inputs or views ---- */

static int pass_on(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	(void)ctx;
	(void)nin;
	out[0] = in[0];
	if (nout > 1)
		out[1] = tensor_slice(in[0], 0, 0, 2, 1);
	return 0;
}

static int pass_back(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
		     int nin)
{
	(void)ctx;
	(void)ngrads;
	(void)nin;
	out[0] = tensor_mul_scalar(grads[0], S(7));
	return 0;
}

static const struct tensor_function pass = { "Pass", pass_on, pass_back, 0 };

static void output_that_is_an_input_or_a_view_of_it(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *y = ok(tensor_exp(x)), *out[2];

		assert_done(tensor_function_apply(&pass, NULL, NULL, TENSOR_LIST(x), out, 1));
		assert_ptr_not_equal(out[0], x);
		assert_true(tensor_shares_storage(out[0], x));
		assert_true(tensor_is_leaf(x));
		assert_done(tensor_backward(tensor_sum(out[0])));
		assert_values(tensor_grad(x), 0, 7, 7, 7, 7);
		assert_done(tensor_function_apply(&pass, NULL, NULL, TENSOR_LIST(y), out, 2));
		assert_name(tensor_grad_fn(out[1]), "PassBackward");
		assert_fails(tensor_add_scalar_(out[1], S(1)), EINVAL, "view");
		assert_fails(tensor_add_scalar_(out[0], S(1)), EINVAL, "input, that a function");
		ok(tensor_add_scalar_(y, S(1)));
		assert_fails(tensor_neg(out[1]), EINVAL, "in-place change of its base");
		assert_fails(tensor_neg(out[0]), EINVAL, "in-place change of its base");
		y = iota(1, TENSOR_INTS(4));
		assert_done(tensor_function_apply(&pass, NULL, NULL, TENSOR_LIST(y), out, 2));
		ok(tensor_add_scalar_(out[0], S(1)));
		assert_values(y, 0, 2, 3, 4, 5);
	}
}

/* ---- differentiable once ---- */

/* Returns its second input, and a view of it. */
static int pass_second(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	return pass_on(ctx, in + 1, nin - 1, out, nout);
}

static void output_that_is_a_view_without_a_gradient(void **state)
{
	static const struct tensor_function f = { "Second", pass_second, pass_back, 0 };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(4)), *c = iota(5, TENSOR_INTS(4)), *out[2];

		assert_done(tensor_function_apply(&f, NULL, NULL, TENSOR_LIST(x, c), out, 2));
		for (int i = 0; i < 2; i++)
			assert_fails(tensor_mul_scalar_(out[i], S(2)), EINVAL, "SecondBackward");
		assert_done(tensor_backward(tensor_sum(out[0])));
		assert_values(tensor_grad(x), 0, 7, 7, 7, 7);
		assert_false(tensor_requires_grad(c));
	}
}

static bool returns_input;

static int same_twice(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	(void)ctx;
	(void)nin;
	(void)nout;
	out[0] = out[1] = returns_input ? in[0] : tensor_mul_scalar(in[0], S(1));
	return out[0] ? 0 : -1;
}

static int first_and_ten_times_second(tensor_function_ctx *ctx, tensor *const *grads, int ngrads,
				      tensor **out, int nin)
{
	(void)ctx;
	(void)ngrads;
	(void)nin;
	out[0] = tensor_add(grads[0], tensor_mul_scalar(grads[1], S(10)));
	return out[0] ? 0 : -1;
}

static void an_output_that_is_given_twice_has_two_gradients(void **state)
{
	static const struct tensor_function f = { "Same", same_twice, first_and_ten_times_second,
						  0 };

	for (int k = 0; k < 2; k++)
		tensor_scope {
			tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y[2];

			returns_input = k;
			assert_done(tensor_function_apply(&f, NULL, NULL, TENSOR_LIST(x), y, 2));
			assert_ptr_not_equal(y[0], y[1]);
			assert_values(y[1], 0, 1, 2);
			assert_done(tensor_backward(
				tensor_sum(tensor_add(y[0], tensor_mul_scalar(y[1], S(2))))));
			assert_values(tensor_grad(x), 0, 21, 21);
		}
}

/* Marks a tensor, releases it, and returns one at the same address. */
static int marks_another(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			 int nout)
{
	tensor **marked = tensor_function_data(ctx);
	int err = tensor_function_mark_non_differentiable(ctx, *marked);

	(void)nin;
	(void)nout;
	tensor_release(*marked);
	/* The memory of a released tensor is used again after some other releases. */
	for (int i = 0; i < 1000; i++) {
		out[0] = tensor_mul_scalar(in[0], S(1));
		if (out[0] == *marked)
			break;
		if (i & 1)
			tensor_release(tensor_keep(out[0]));
	}
	return err;
}

static void a_mark_of_a_released_tensor_marks_no_other(void **state)
{
	static const struct tensor_function f = { "Marks", marks_another, pass_back, 0 };

	/* The memory of a tensor of a scope is not used again before its end. */
	tensor *marked = iota(1, TENSOR_INTS(2));

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;

		assert_done(tensor_function_apply(&f, &marked, NULL, TENSOR_LIST(x), &y, 1));
		assert_true(tensor_requires_grad(y));
	}
}

static int square_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out,
			  int nout)
{
	(void)nin;
	(void)nout;
	out[0] = tensor_mul(in[0], in[0]);
	return tensor_function_save(ctx, TENSOR_LIST(in[0]));
}

static int square_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			   int nin)
{
	(void)ngrads;
	(void)nin;
	out[0] = tensor_mul_scalar(tensor_mul(grads[0], tensor_function_saved(ctx, 0)), S(2));
	return out[0] ? 0 : -1;
}

static const struct tensor_function once = { "Square", square_forward, square_backward,
					     TENSOR_FUNCTION_ONCE_DIFFERENTIABLE };

static void once_differentiable_refuses_the_second_backward(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y, *g[1];

		assert_done(tensor_function_apply(&once, NULL, NULL, TENSOR_LIST(x), &y, 1));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(y)), NULL, TENSOR_LIST(x), g,
					       TENSOR_CREATE_GRAPH));
		assert_values(g[0], 0, 2, 4);
		assert_fails(tensor_backward(tensor_sum(g[0])), EOPNOTSUPP,
			     "Square is differentiable once");
	}
}

static void saved_tensor_that_was_changed_or_freed(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)), *y;

		assert_done(tensor_function_apply(&once, NULL, NULL, TENSOR_LIST(h), &y, 1));
		ok(tensor_add_scalar_(h, S(1)));
		assert_fails(tensor_backward(tensor_sum(y)), EINVAL, "changed in place");
		assert_done(tensor_function_apply(&once, NULL, NULL, TENSOR_LIST(x), &y, 1));
		y = ok(tensor_sum(y));
		assert_done(tensor_backward(y));
		assert_fails(tensor_backward(y), EINVAL, "TENSOR_RETAIN_GRAPH");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_returned_input_keeps_its_mark, setup),
		cmocka_unit_test_setup(gradients_and_second_gradients, setup),
		cmocka_unit_test_setup(nothing_is_recorded_without_a_gradient, setup),
		cmocka_unit_test_setup(gradients_without_value_are_zeros_or_null, setup),
		cmocka_unit_test_setup(input_that_is_changed_in_place, setup),
		cmocka_unit_test_setup(further_output_that_is_changed_in_place, setup),
		cmocka_unit_test_setup(output_that_is_an_input_or_a_view_of_it, setup),
		cmocka_unit_test_setup(output_that_is_a_view_without_a_gradient, setup),
		cmocka_unit_test_setup(an_output_that_is_given_twice_has_two_gradients, setup),
		cmocka_unit_test_setup(a_mark_of_a_released_tensor_marks_no_other, setup),
		cmocka_unit_test_setup(once_differentiable_refuses_the_second_backward, setup),
		cmocka_unit_test_setup(saved_tensor_that_was_changed_or_freed, setup),
	};

	return cmocka_run_group_tests_name("autograd_function", tests, NULL, NULL);
}
