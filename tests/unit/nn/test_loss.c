// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* nll_loss and cross_entropy: numbers computed by hand, and errors for all arguments. */
#include "check.h"

enum { NONE, MEAN, SUM };
#define IGNORE -100

/* Three rows of two classes; row k's log probabilities are -(2 k + 1), -(2 k + 2). */
static tensor *rows(tensor_options o)
{
	return ok(tensor_to(ok(tensor_neg(iota(1, TENSOR_INTS(3, 2)))), o));
}

static tensor *classes(int64_t a, int64_t b, int64_t c)
{
	return ok(tensor_from_data((const int64_t[]){ a, b, c }, TENSOR_INTS(3), I64));
}

static tensor *weights(tensor_options o)
{
	return ok(tensor_to(ok(tensor_from_data((const double[]){ 0.5, 2 }, TENSOR_INTS(2), F64)),
			    o));
}

static void losses_equal_known_values(void **state)
{
	for (int wide = 0; wide < 2; wide++)
		tensor_scope {
			tensor_options o = wide ? F64 : F32;
			tensor *x = rows(o), *w = weights(o), *t = classes(1, 0, 1);

			assert_values(tensor_nll_loss(x, t), 1e-6, (2 + 3 + 6) / 3.0);
			assert_values(tensor_nll_loss_opt(x, t, tensor_none, SUM, IGNORE), 0, 11);
			assert_values(tensor_nll_loss_opt(x, t, tensor_none, NONE, IGNORE), 0, 2, 3,
				      6);
			assert_values(tensor_nll_loss_opt(x, t, w, NONE, IGNORE), 0, 4, 1.5, 12);
			assert_values(tensor_nll_loss_opt(x, t, w, SUM, IGNORE), 0, 17.5);
			assert_values(tensor_nll_loss_opt(x, t, w, MEAN, IGNORE), 1e-6, 17.5 / 4.5);
			assert_values(tensor_nll_loss_opt(x, t, w, MEAN, 0), 1e-6, 16 / 4.0);
			assert_values(tensor_nll_loss_opt(x, t, w, NONE, 1), 0, 0, 1.5, 0);
			assert_values(tensor_nll_loss_opt(ok(tensor_contiguous(x)),
							  classes(IGNORE, IGNORE, 0), w, SUM,
							  IGNORE),
				      0, 2.5);
		}
}

static void gradients_equal_known_values(void **state)
{
	tensor_scope {
		tensor *x = rows(F32), *w = weights(F32), *t = classes(1, 0, -100);
		tensor *one = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(1.0), F32));
		tensor *each = iota(1, TENSOR_INTS(3)), *loss, *total;

		assert_done(tensor_nll_loss_forward(x, t, w, MEAN, IGNORE, &loss, &total));
		assert_values(total, 0, 2.5);
		assert_values(tensor_nll_loss_backward(one, x, t, w, MEAN, IGNORE, total), 1e-7, 0,
			      -0.8, -0.2, 0, 0, 0);
		assert_values(tensor_nll_loss_backward(one, x, t, w, SUM, IGNORE, total), 0, 0, -2,
			      -0.5, 0, 0, 0);
		assert_values(tensor_nll_loss_backward(each, x, t, tensor_none, NONE, IGNORE,
						       total),
			      0, 0, -1, -2, 0, 0, 0);
		assert_values(tensor_nll_loss_backward(ok(tensor_expand(one, TENSOR_INTS(3))), x, t,
						       w, NONE, IGNORE, total),
			      0, 0, -2, -0.5, 0, 0, 0);
		assert_done(tensor_nll_loss_forward(x, t, w, NONE, IGNORE, &loss, &total));
		assert_values(total, 0, 0);
	}
}

static void a_single_row_has_a_single_class(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_select(rows(F32), 0, 1)), *loss, *total;
		tensor *t = ok(tensor_select(classes(0, 1, 0), 0, 1));

		assert_done(
			tensor_nll_loss_forward(x, t, weights(F32), NONE, IGNORE, &loss, &total));
		assert_values(loss, 0, 8);
		assert_values(total, 0, 2);
		assert_values(tensor_nll_loss(x, t), 0, 4);
		assert_values(tensor_nll_loss_opt(x, t, tensor_none, MEAN, 1), 0, NAN);
		assert_values(tensor_cross_entropy(x, t), 1e-6, log(1 + exp(-1)) + 1);
		assert_values(tensor_nll_loss_backward(loss, x, t, tensor_none, SUM, IGNORE, total),
			      0, 0, -8);
	}
}

static void cross_entropy_is_nll_loss_of_log_softmax(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_t(iota(0, TENSOR_INTS(2, 3)))), *t = classes(1, 0, 1);
		double near = log(1 + exp(-3)), far = near + 3;

		/* Each row is k, k + 3. */
		assert_values(tensor_cross_entropy_opt(x, t, tensor_none, NONE, IGNORE), 1e-6, near,
			      far, near);
		assert_values(tensor_cross_entropy(x, t), 1e-6, (2 * near + far) / 3);
		assert_values(tensor_cross_entropy_opt(x, t, weights(F32), SUM, IGNORE), 1e-5,
			      4 * near + 0.5 * far);
	}
}

static void strided_arguments_give_the_same_loss(void **state)
{
	tensor_scope {
		tensor *x =
			ok(tensor_slice(ok(tensor_neg(iota(0, TENSOR_INTS(3, 4)))), 1, 1, 4, 2));
		tensor *six = ok(tensor_from_data((const int64_t[]){ 0, 9, 1, 9, 0, 9 },
						  TENSOR_INTS(6), I64));
		tensor *t = ok(tensor_slice(six, 0, 0, 6, 2));
		tensor *w = ok(tensor_expand(
			ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(3.0), F32)), TENSOR_INTS(2)));

		assert_values(tensor_nll_loss_opt(x, t, w, NONE, IGNORE), 0, 3, 21, 27);
	}
}

static void mean_without_targets_is_nan(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_empty(TENSOR_INTS(0, 2), F32));
		tensor *t = ok(tensor_empty(TENSOR_INTS(0), I64));

		assert_values(tensor_nll_loss(x, t), 0, NAN);
		assert_values(tensor_nll_loss_opt(x, t, tensor_none, SUM, IGNORE), 0, 0);
		assert_shape(ok(tensor_nll_loss_opt(x, t, tensor_none, NONE, IGNORE)), 0);
		assert_values(tensor_nll_loss(rows(F32), classes(IGNORE, IGNORE, IGNORE)), 0, NAN);
	}
}

static void classes_out_of_range_are_refused(void **state)
{
	tensor_scope {
		tensor *x = rows(F32), *loss, *total;
		tensor *one = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(1.0), F32));

		assert_fails(tensor_nll_loss(x, classes(0, 2, 0)), EINVAL,
			     "target of row 1 is class 2, expected 0 to 1");
		assert_fails(tensor_nll_loss(x, classes(0, 0, -1)), EINVAL, "class -1");
		assert_fails(tensor_cross_entropy(x, classes(0, 0, INT64_MAX)), EINVAL, "row 2");
		assert_fails(tensor_nll_loss_forward(x, classes(9, 0, 0), tensor_none, MEAN, IGNORE,
						     &loss, &total),
			     EINVAL, "class 9");
		assert_null(loss);
		assert_null(total);
		assert_fails(tensor_nll_loss_backward(one, x, classes(-9, 0, 0), tensor_none, MEAN,
						      IGNORE, one),
			     EINVAL, "class -9");
	}
}

static void invalid_shapes_and_dtypes_are_refused(void **state)
{
	tensor_scope {
		tensor *x = rows(F32), *t = classes(0, 1, 0), *w = weights(F32);
		tensor *one = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(1.0), F32));

		assert_fails(tensor_nll_loss(x, rows(F32)), EINVAL, "target must be i64, got f32");
		assert_fails(tensor_nll_loss(x, ok(tensor_narrow(t, 0, 0, 2))), EINVAL,
			     "one class for each row");
		assert_fails(tensor_nll_loss(t, t), EINVAL, "floating dtype");
		assert_fails(tensor_nll_loss(one, t), EINVAL, "[n, c] or [c]");
		assert_fails(tensor_cross_entropy(one, t), EINVAL, "cross_entropy: self");
		assert_fails(tensor_nll_loss_opt(x, t, weights(F64), MEAN, IGNORE), EINVAL,
			     "weight must be f32 [2]");
		assert_fails(tensor_nll_loss_opt(x, t, x, MEAN, IGNORE), EINVAL, "weight");
		assert_fails(tensor_nll_loss_opt(x, t, w, 3, IGNORE), EINVAL, "reduction");
		assert_fails(tensor_nll_loss_opt(x, t, NULL, MEAN, IGNORE), EINVAL, "NULL");
		assert_fails(tensor_nll_loss_backward(one, x, t, w, NONE, IGNORE, one), EINVAL,
			     "grad_output");
		assert_fails(tensor_nll_loss_backward(one, x, t, w, SUM, IGNORE, x), EINVAL,
			     "total_weight");
	}
}

/* As in PyTorch 2.15: the gradient has the dtype of self, the loss the promoted one. */
static void gradient_has_the_dtype_of_self(void **state)
{
	tensor_scope {
		tensor *grad = ok(tensor_ones(TENSOR_SCALAR_SHAPE, F32));
		tensor *narrow = ok(tensor_ones(TENSOR_INTS(3), F32)),
		       *wide = ok(tensor_ones(TENSOR_INTS(3), F64));

		assert_int_equal(
			tensor_dtype(ok(tensor_smooth_l1_loss_backward(grad, narrow, wide, 1, 1))),
			TENSOR_F32);
		assert_int_equal(
			tensor_dtype(ok(tensor_smooth_l1_loss_backward(grad, wide, narrow, 1, 1))),
			TENSOR_F64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_equal_known_values),
		cmocka_unit_test(gradients_equal_known_values),
		cmocka_unit_test(a_single_row_has_a_single_class),
		cmocka_unit_test(cross_entropy_is_nll_loss_of_log_softmax),
		cmocka_unit_test(strided_arguments_give_the_same_loss),
		cmocka_unit_test(mean_without_targets_is_nan),
		cmocka_unit_test(classes_out_of_range_are_refused),
		cmocka_unit_test(invalid_shapes_and_dtypes_are_refused),
		cmocka_unit_test(gradient_has_the_dtype_of_self),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
