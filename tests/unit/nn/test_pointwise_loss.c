// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pointwise losses and losses of classes: numbers computed by hand, and their derivatives. */
#include "autograd.h"
#include "formulas.h"

enum { NONE, MEAN, SUM };

static tensor *numbers(tensor_ints shape, ...)
{
	double v[16];
	int64_t n = 1;
	va_list list;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	va_start(list, shape);
	for (int64_t i = 0; i < n; i++)
		v[i] = va_arg(list, double);
	va_end(list);
	return ok(tensor_from_data(v, shape, F64));
}

static void pointwise_losses_give_known_values(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3), 0., 1., -2.),
		       *y = numbers(TENSOR_INTS(3), 0.5, 1., 1.);
		tensor *p = numbers(TENSOR_INTS(2), 0., 0.25), *q = numbers(TENSOR_INTS(2), 1., 0.);

		assert_values(tensor_mse_loss(x, y, NONE), 0, 0.25, 0, 9);
		assert_values(tensor_mse_loss(x, y, SUM), 0, 9.25);
		assert_values(tensor_mse_loss(x, y, MEAN), 1e-15, 9.25 / 3);
		assert_values(tensor_mse_loss_backward(numbers(TENSOR_INTS(1), 3.), x, y, MEAN),
			      1e-15, -1, 0, -6);
		assert_values(tensor_l1_loss(x, y, NONE), 0, 0.5, 0, 3);
		assert_values(tensor_smooth_l1_loss(x, y, NONE, 2.0), 0, 0.0625, 0, 2);
		assert_values(tensor_huber_loss(x, y, NONE, 2.0), 0, 0.125, 0, 4);
		assert_values(tensor_binary_cross_entropy(p, q, tensor_none, NONE), 1e-15, 100,
			      -log(0.75));
		assert_values(tensor_binary_cross_entropy_with_logits(x, y, tensor_none,
								      tensor_none, NONE),
			      1e-15, log(2), log1p(exp(-1)), 2 + log1p(exp(-2)));
		assert_values(tensor_kl_div(x, numbers(TENSOR_INTS(3), 0., 1., 2.), NONE), 1e-15, 0,
			      -1, 2 * (log(2) + 2));
	}
}

/* loss(d) of doubles: mse, l1, smooth_l1 and huber. */
static double loss_of(int which, double d, double edge)
{
	double a = fabs(d);

	switch (which) {
	case 0:
		return d * d;
	case 1:
		return a;
	case 2:
		return a < edge ? d * d / 2 / edge : a - edge / 2;
	default:
		return a < edge ? d * d / 2 : edge * (a - edge / 2);
	}
}

static tensor *call_loss(int which, tensor *x, tensor *y, int reduction, double edge)
{
	switch (which) {
	case 0:
		return tensor_mse_loss(x, y, reduction);
	case 1:
		return tensor_l1_loss(x, y, reduction);
	case 2:
		return tensor_smooth_l1_loss(x, y, reduction, edge);
	default:
		return tensor_huber_loss(x, y, reduction, edge);
	}
}

static void check_loss(int which, tensor *x, tensor *y, double edge, double limit)
{
	int64_t n = tensor_numel(x);
	double *xv = malloc(n * sizeof(*xv) + 8), *yv = malloc(n * sizeof(*yv) + 8);
	double *each = malloc(n * sizeof(*each) + 8), sum = 0;
	tensor *t = ok(call_loss(which, x, y, NONE, edge));

	assert_int_equal(tensor_dtype(t), tensor_dtype(x));
	tensor_copy_to(tensor_to(x, F64), xv, n * sizeof(*xv));
	tensor_copy_to(tensor_to(y, F64), yv, n * sizeof(*yv));
	tensor_copy_to(tensor_to(t, F64), each, n * sizeof(*each));
	for (int64_t i = 0; i < n; i++) {
		double want = loss_of(which, xv[i] - yv[i], edge);

		assert_true(fabs(each[i] - want) <= limit * (want + 1));
		sum += want;
	}
	assert_values(tensor_to(call_loss(which, x, y, SUM, edge), F64), limit * (sum + 1), sum);
	if (n)
		assert_values(tensor_to(call_loss(which, x, y, MEAN, edge), F64),
			      limit * (sum / n + 1), sum / n);
	free(xv);
	free(yv);
	free(each);
}

/* Blocks have 512 elements, parts at least 32768; strided tensors are composed. */
static void losses_of_distances_equal_a_plain_loop(void **state)
{
	static const int64_t sizes[] = { 0,   1,   3,	15,   16,    17,    63,	   64,
					 511, 512, 513, 1000, 32767, 32768, 32769, 70001 };

	tensor_manual_seed(3);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (int which = 0; which < 4; which++)
			tensor_scope {
				tensor *x = ok(tensor_randn(TENSOR_INTS(sizes[i], 2), F64));
				tensor *y = ok(tensor_randn(TENSOR_INTS(sizes[i], 2), F64));
				tensor *a = tensor_select(x, 1, 0), *b = tensor_select(y, 1, 1);

				check_loss(which, x, y, 0.7, 1e-13);
				check_loss(which, tensor_to(x, F32), tensor_to(y, F32), 0.7, 1e-5);
				check_loss(which, a, b, 1.5, 1e-13);
			}
}

static void losses_of_special_values(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3), INFINITY, -INFINITY, NAN);
		tensor *zero = ok(tensor_zeros_like(x, TENSOR_OPTIONS(0))), *t;

		for (int which = 0; which < 4; which++) {
			t = ok(call_loss(which, x, zero, NONE, 1));
			assert_values(tensor_to(tensor_isinf(t), F64), 0, 1, 1, 0);
			assert_values(tensor_to(tensor_isnan(t), F64), 0, 0, 0, 1);
			/* A difference of infinities is NaN. */
			assert_values(tensor_to(tensor_isnan(call_loss(which, x, x, MEAN, 1)), F64),
				      0, 1);
		}
		t = ok(tensor_zeros(TENSOR_INTS(0), F32));
		assert_values(tensor_smooth_l1_loss(t, t, SUM, 1), 0, 0);
		assert_values(tensor_to(tensor_isnan(tensor_huber_loss(t, t, MEAN, 1)), F64), 0, 1);
		/* beta 0 is l1_loss; the values at the edge belong to both parts. */
		x = numbers(TENSOR_INTS(3), 0., -2., 3.);
		zero = numbers(TENSOR_INTS(3), 0., 0., 1.);
		assert_values(tensor_smooth_l1_loss(x, zero, NONE, 0), 0, 0, 2, 2);
		assert_values(tensor_smooth_l1_loss(x, zero, NONE, 2), 0, 0, 1, 1);
		assert_values(tensor_huber_loss(x, zero, NONE, 2), 0, 0, 2, 2);
	}
}

/* The kernel of derivatives, with one gradient and one for each element, beside the composed ones. */
static void derivatives_without_a_graph_equal_those_of_one(void **state)
{
	static const int64_t sizes[] = { 1, 3, 16, 17, 1000, 40000 };

	tensor_manual_seed(8);
	for (size_t k = 0; k < ARRAY_SIZE(sizes) * 16; k++)
		tensor_scope {
			int which = (int)(k % 4), reduction = (int)(k / 4 % 2);
			tensor_options o = k / 8 % 2 ? F32 : F64;
			double limit = k / 8 % 2 ? 1e-6 : 1e-14;
			tensor *x = leaf(ok(tensor_randn(TENSOR_INTS(sizes[k / 16]), o))), *g,
			       *want;
			tensor *y = ok(tensor_randn(TENSOR_INTS(sizes[k / 16]), o)), *a, *sum;

			g = ok(tensor_randn(TENSOR_INTS(sizes[k / 16]), o));
			sum = ok(call_loss(which, x, y, reduction, 0.7));
			sum = reduction ? tensor_mul_scalar(sum, S(3)) :
					  tensor_sum(tensor_mul(sum, g));
			assert_done(tensor_backward(sum));
			/* A strided target is composed. */
			a = leaf(ok(tensor_clone(tensor_detach(x))));
			y = ok(tensor_select(tensor_stack(TENSOR_LIST(y, y), 1), 1, 0));
			sum = ok(call_loss(which, a, y, reduction, 0.7));
			sum = reduction ? tensor_mul_scalar(sum, S(3)) :
					  tensor_sum(tensor_mul(sum, g));
			assert_done(tensor_backward(sum));
			want = tensor_sub(tensor_grad(x), tensor_grad(a));
			assert_values(tensor_max(tensor_abs(want)), limit * 10, 0);
		}
}

static void derivatives_of_special_values(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(5), INFINITY, -INFINITY, NAN, 0., 0.5);
		tensor *zero = ok(tensor_zeros_like(x, TENSOR_OPTIONS(0))), *t;
		tensor *g = numbers(TENSOR_INTS(1), 2.);

		g = tensor_select(g, 0, 0);
		t = ok(tensor_smooth_l1_loss_backward(g, x, zero, SUM, 1));
		assert_values(tensor_narrow(t, 0, 3, 2), 0, 0, 1);
		assert_values(tensor_narrow(t, 0, 0, 2), 0, 2, -2);
		assert_values(tensor_to(tensor_isnan(t), F64), 0, 0, 0, 1, 0, 0);
		t = ok(tensor_smooth_l1_loss_backward(g, x, zero, SUM, 0));
		assert_values(tensor_narrow(t, 0, 3, 2), 0, 0, 2);
		t = ok(tensor_huber_loss_backward(g, x, zero, SUM, 0.25));
		assert_values(tensor_narrow(t, 0, 3, 2), 0, 0, 0.5);
		assert_values(tensor_to(tensor_isnan(t), F64), 0, 0, 0, 1, 0, 0);
		t = ok(tensor_mse_loss_backward(g, x, zero, MEAN));
		assert_values(tensor_narrow(t, 0, 3, 2), 1e-15, 0, 0.4);
		assert_values(tensor_to(tensor_isinf(t), F64), 0, 1, 1, 0, 0, 0);
	}
}

/* Derivatives have the dtypes of their tensors. */
static void gradients_of_losses_of_mixed_dtypes(void **state)
{
	for (int which = 0; which < 4; which++)
		tensor_scope {
			tensor *x = leaf_iota(0, TENSOR_INTS(4));
			tensor *y = leaf(ok(tensor_full(TENSOR_INTS(4), S(1.25), F64)));

			assert_done(tensor_backward(call_loss(which, x, y, SUM, 0.5)));
			assert_int_equal(tensor_dtype(tensor_grad(x)), TENSOR_F32);
			assert_int_equal(tensor_dtype(tensor_grad(y)), TENSOR_F64);
			assert_values(tensor_add(tensor_grad(x), tensor_grad(y)), 1e-6, 0, 0, 0, 0);
		}
}

static void f16_and_bf16_are_rounded_once(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_INTS(1000), S(0.1),
					   TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
		tensor *zero = ok(tensor_zeros_like(x, TENSOR_OPTIONS(0)));

		/* 0.1 is 0.10009765625 in f16; its square times 1000 is between 10 and 10.0625 */
		assert_values(tensor_mse_loss(x, zero, SUM), 0, 10);
	}
}

static void cross_entropy_takes_any_number_of_dimensions(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3, 2)), *rows, *t, *loss;
		const int64_t classes[] = { 0, 2, 1, -100 };

		t = ok(tensor_from_data(classes, TENSOR_INTS(2, 2), I64));
		rows = tensor_reshape(tensor_transpose(x, 1, 2), TENSOR_INTS(4, 3));
		loss = ok(tensor_cross_entropy_loss(x, t, tensor_none, MEAN, -100, 0));
		assert_shape(ok(tensor_cross_entropy_loss(x, t, tensor_none, NONE, -100, 0)), 2, 2);
		assert_values(tensor_sub(loss, tensor_cross_entropy(
						       rows, tensor_reshape(t, TENSOR_INTS(4)))),
			      0, 0);
		assert_values(
			tensor_cross_entropy_loss(iota(0, TENSOR_INTS(3)),
						  ok(tensor_select(tensor_select(t, 0, 0), 0, 1)),
						  tensor_none, MEAN, -100, 0),
			1e-6, log(1 + exp(-1) + exp(-2)));
	}
}

static void label_smoothing_mixes_in_the_uniform_distribution(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(2, 3), 0.3, -1., 2., 1., 0.5, 0.);
		tensor *w = numbers(TENSOR_INTS(3), 1., 2., 0.5);
		tensor *p = numbers(TENSOR_INTS(2, 3), 0., 0., 1., 0., 1., 0.);
		const int64_t classes[] = { 2, 1 };
		tensor *t = ok(tensor_from_data(classes, TENSOR_INTS(2), I64));

		for (int r = 0; r < 3; r += 2)
			assert_values(tensor_sum(tensor_abs(tensor_sub(
					      tensor_cross_entropy_loss(x, t, w, r, -100, 0.2),
					      tensor_cross_entropy_loss(x, p, w, r, -100, 0.2)))),
				      1e-14, 0);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(2), 0.5, 1.5), *y = numbers(TENSOR_INTS(1), 0.5);

		assert_fails(tensor_binary_cross_entropy(x, x, tensor_none, MEAN) == NULL, EINVAL,
			     "within 0 and 1");
		assert_fails(tensor_binary_cross_entropy(x, y, tensor_none, MEAN) == NULL, EINVAL,
			     "target must have self's shape [2]");
		assert_fails(tensor_mse_loss(x, y, 3) == NULL, EINVAL, "reduction must be 0");
		assert_fails(tensor_huber_loss(x, y, MEAN, 0) == NULL, EINVAL,
			     "delta must be positive");
		assert_fails(tensor_smooth_l1_loss(x, y, MEAN, -1) == NULL, EINVAL,
			     "must not be negative");
		assert_fails(tensor_cross_entropy_loss(x, y, tensor_none, MEAN, -100, 0) == NULL,
			     EINVAL, "target");
		assert_fails(tensor_cross_entropy_loss(x, x, tensor_none, MEAN, -100, 2) == NULL,
			     EINVAL, "label_smoothing");
	}
}

static tensor *classes(void)
{
	const int64_t v[] = { 1, 0, 2, -100 };

	return tensor_from_data(v, TENSOR_INTS(2, 2), I64);
}

CASE(fn_mse, tensor_mse_loss(a, b, MEAN))
CASE(fn_mse_backward, tensor_mse_loss_backward(a, b, c, NONE))
CASE(fn_l1, tensor_l1_loss(a, b, NONE))
CASE(fn_smooth, tensor_smooth_l1_loss(a, b, NONE, 0.7))
CASE(fn_huber, tensor_huber_loss(a, b, SUM, 0.7))
CASE(fn_bce, tensor_binary_cross_entropy(a, b, numbers(TENSOR_INTS(3), 0.5, 1., 2.), MEAN))
CASE(fn_logits, tensor_binary_cross_entropy_with_logits(a, b, tensor_none, c, SUM))
CASE(fn_kl, tensor_kl_div(a, b, MEAN))
CASE(fn_margin, tensor_soft_margin_loss(a, b, MEAN))
CASE(fn_entropy, tensor_cross_entropy_loss(a, classes(), tensor_none, MEAN, -100, 0.1))
CASE(fn_mixture, tensor_cross_entropy_loss(a, b, tensor_none, NONE, -100, 0.1))
CASE(fn_nll, tensor_nll_loss_nd(a, classes(), tensor_none, MEAN, -100))

static const struct formula formulas[] = {
	ROW(mse, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(mse_backward, 3, IN(1, 0, 2, 3), IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(l1, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(smooth, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(huber, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(bce, 2, IN(0.4, 0.5, 2, 3), IN(0.3, 0.5, 2, 3)),
	ROW(logits, 3, IN(1, 0, 2, 3), IN(0.3, 0.5, 2, 3), IN(0.5, 1, 3)),
	ROW(kl, 2, IN(1, 0, 2, 3), IN(0.3, 0.5, 2, 3)),
	ROW(margin, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(entropy, 1, IN(1, 0, 2, 3, 2)),
	ROW(mixture, 2, IN(1, 0, 2, 3), IN(0.3, 0.5, 2, 3)),
	ROW(nll, 1, IN(1, 0, 2, 3, 2)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointwise_losses_give_known_values),
		cmocka_unit_test(losses_of_distances_equal_a_plain_loop),
		cmocka_unit_test(losses_of_special_values),
		cmocka_unit_test(derivatives_without_a_graph_equal_those_of_one),
		cmocka_unit_test(derivatives_of_special_values),
		cmocka_unit_test(gradients_of_losses_of_mixed_dtypes),
		cmocka_unit_test(f16_and_bf16_are_rounded_once),
		cmocka_unit_test(cross_entropy_takes_any_number_of_dimensions),
		cmocka_unit_test(label_smoothing_mixes_in_the_uniform_distribution),
		cmocka_unit_test(invalid_arguments_are_refused),
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("pointwise_loss", tests, NULL, NULL);
}
