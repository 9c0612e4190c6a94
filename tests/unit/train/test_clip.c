// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Clipping of gradients, averages of parameters, the scale of gradients. */
#include "autograd.h"

#define N 3

static const int64_t sizes[N] = { 5, 70000, 1 };

/* Leaves with gradients, of which one is transposed in memory. The numbers go to all[], at least 70006. */
static void make(tensor **p, enum tensor_dtype dtype, double *all)
{
	for (int s = 0; s < N; s++) {
		tensor *t = ok(tensor_randn(TENSOR_SHAPE(sizes[s]), OF(dtype))), *g;
		double *v;

		p[s] = leaf(t);
		g = ok(tensor_randn(TENSOR_SHAPE(sizes[s]), OF(dtype)));
		v = values_of(g);
		memcpy(all, v, sizes[s] * sizeof(*v));
		all += sizes[s];
		free(v);
		if (s == 1) {
			p[s] = leaf(ok(
				tensor_detach(tensor_t(tensor_view(t, TENSOR_SHAPE(700, 100))))));
			g = ok(tensor_t(tensor_view(g, TENSOR_SHAPE(700, 100))));
		}
		assert_done(tensor_set_grad(p[s], g));
	}
}

static double norm_by_hand(const double *v, int n, double ord)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum = isinf(ord) ? fmax(sum, fabs(v[i])) : sum + pow(fabs(v[i]), ord);
	return isinf(ord) ? sum : pow(sum, 1 / ord);
}

static void clip_grad_norm_scales_all_gradients(void **state)
{
	static const double orders[] = { 1, 2, 3, INFINITY };
	static const struct {
		enum tensor_dtype dtype;
		double tol;
	} dtypes[] = { { TENSOR_F64, 1e-12 }, { TENSOR_F32, 1e-6 }, { TENSOR_BF16, 1e-2 } };
	double *all = malloc(70006 * sizeof(*all));

	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		for (size_t k = 0; k < ARRAY_SIZE(orders); k++)
			tensor_scope {
				tensor *p[N];
				double want, norm, *v;

				make(p, dtypes[d].dtype, all);
				want = norm_by_hand(all, 70006, orders[k]);
				assert_done(tensor_clip_grad_norm_((tensor_list){ p, N }, want * 2,
								   orders[k], true, &norm));
				assert_true(fabs(norm - want) <= 1e-6 * want);
				v = values_of(tensor_grad(p[0]));
				assert_memory_equal(v, all, sizes[0] * sizeof(*v));
				free(v);
				assert_done(tensor_clip_grad_norm_((tensor_list){ p, N }, 0.5,
								   orders[k], false, NULL));
				v = values_of(tensor_grad(p[0]));
				for (int i = 0; i < sizes[0]; i++)
					assert_true(fabs(v[i] - all[i] * 0.5 / (want + 1e-6)) <=
						    dtypes[d].tol * (1e-3 + fabs(v[i])));
				free(v);
			}
	free(all);
}

static void norms_that_are_not_finite(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_zeros(TENSOR_SHAPE(2), F32)));
		tensor *q = leaf(ok(tensor_zeros(TENSOR_SHAPE(2), F32)));
		tensor *none = leaf(ok(tensor_zeros(TENSOR_SHAPE(2), F32)));
		double norm;

		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(2), S(NAN), F32))));
		assert_done(tensor_set_grad(q, ok(tensor_ones(TENSOR_SHAPE(2), F32))));
		assert_fails(tensor_clip_grad_norm_(TENSOR_LIST(p, q), 1, INFINITY, true, &norm),
			     EDOM, "is nan");
		assert_values(tensor_grad(q), 0, 1, 1);
		assert_done(
			tensor_clip_grad_norm_(TENSOR_LIST(none, q, p), 1, INFINITY, false, &norm));
		assert_true(isnan(norm));
		assert_values(tensor_grad(q), 0, NAN, NAN);
		assert_done(tensor_clip_grad_norm_(TENSOR_LIST(none), 1, 2, true, &norm));
		assert_true(norm == 0);
		assert_done(tensor_clip_grad_norm_((tensor_list){ NULL, 0 }, 1, 2, true, &norm));
	}
}

static void complex_norms_use_absolute_values(void **state)
{
	tensor_scope {
		double v[4] = { 3, 4, 6, 8 }, norm;
		tensor *g =
			ok(tensor_view_as_complex(tensor_from_data(v, TENSOR_SHAPE(2, 2), F64)));
		tensor *p = leaf(ok(tensor_zeros_like(g, (tensor_options){ 0 })));

		assert_done(tensor_set_grad(p, g));
		assert_done(tensor_clip_grad_norm_(TENSOR_LIST(p), 100, 1, true, &norm));
		assert_true(norm == 15);
		assert_done(tensor_clip_grad_norm_(TENSOR_LIST(p), 100, INFINITY, true, &norm));
		assert_true(norm == 10);
		assert_done(tensor_clip_grad_norm_(TENSOR_LIST(p), 100, 2, true, &norm));
		assert_true(fabs(norm - sqrt(125)) < 1e-12);
		assert_fails(tensor_clip_grad_value_(TENSOR_LIST(p), 1), EINVAL, "c128");
	}
}

static void clip_grad_value_clamps(void **state)
{
	tensor_scope {
		double v[5] = { -3, 0.5, 2, NAN, -INFINITY };
		tensor *p = leaf(ok(tensor_zeros(TENSOR_SHAPE(5), F64)));

		assert_done(tensor_set_grad(p, ok(tensor_from_data(v, TENSOR_SHAPE(5), F64))));
		assert_done(tensor_clip_grad_value_(TENSOR_LIST(p), 1));
		assert_values(tensor_grad(p), 0, -1, 0.5, 1, NAN, -1);
	}
}

/* The bits do not depend on the number of threads. */
static void norms_are_the_same_in_all_threads(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_randn(TENSOR_SHAPE(300001), F32)), *a, *b;

		assert_done(tensor_set_num_threads(1));
		a = ok(tensor__list_norm(TENSOR_LIST(t, t), 2));
		assert_done(tensor_set_num_threads(4));
		b = ok(tensor__list_norm(TENSOR_LIST(t, t), 2));
		assert_same(a, b);
		assert_done(tensor_set_num_threads(2));
	}
}

static void averages_follow_the_parameters(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_ones(TENSOR_SHAPE(2), F64)));
		tensor *q = leaf(ok(tensor_ones(TENSOR_SHAPE(3), F32)));
		tensor_ema *e = tensor_ema_new(TENSOR_LIST(p, q), 0.75);

		assert_non_null(e);
		tensor_no_grad {
			ok(tensor_fill_(p, S(5)));
			ok(tensor_fill_(q, S(9)));
		}
		assert_done(tensor_ema_update(e));
		assert_values(tensor_ema_average(e, 0), 0, 2, 2);
		assert_values(tensor_ema_average(e, 1), 0, 3, 3, 3);
		assert_done(tensor_ema_swap(e));
		assert_true(tensor_ema_is_swapped(e));
		assert_values(p, 0, 2, 2);
		assert_fails(tensor_ema_update(e), EBUSY, "averages");
		assert_done(tensor_ema_swap(e));
		assert_values(p, 0, 5, 5);
		assert_values(tensor_ema_average(e, 0), 0, 2, 2);
		assert_null(tensor_ema_average(e, 2));
		assert_null(tensor_ema_average(NULL, 0));
		tensor_ema_free(e);
		assert_fails(tensor_ema_new(TENSOR_LIST(p), 1), EINVAL, "decay");
		assert_fails(tensor_ema_new(TENSOR_LIST(p), NAN), EINVAL, "decay");
		assert_fails(tensor_ema_new((tensor_list){ NULL, 1 }, 0.5), EINVAL, "params");
		assert_fails(tensor_ema_update(NULL), EINVAL, "ema_update");
		assert_fails(tensor_ema_swap(NULL), EINVAL, "ema_swap");
		tensor_ema_free(NULL);
	}
}

static void a_parameter_of_another_shape_is_not_swapped(void **state)
{
	tensor_scope {
		tensor *p = ok(tensor_ones(TENSOR_SHAPE(2), F64));
		tensor_ema *e = tensor_ema_new(TENSOR_LIST(p), 0.75);

		ok(tensor_resize_(p, TENSOR_INTS(300, 300)));
		assert_fails(tensor_ema_swap(e), EINVAL,
			     "parameter 0 is [300, 300], its average [2]");
		assert_false(tensor_ema_is_swapped(e));
		ok(tensor_resize_(p, TENSOR_INTS(1)));
		assert_fails(tensor_ema_swap(e), EINVAL, "parameter 0 is [1], its average [2]");
		assert_values(tensor_ema_average(e, 0), 0, 1, 1);
		tensor_ema_free(e);
	}
}

static void the_scaler_leaves_out_infinite_steps(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_ones(TENSOR_SHAPE(2), F32)));
		tensor_optim *o = tensor_optim_new(TENSOR_LIST(p), TENSOR_SGD(.lr = 1));
		tensor_grad_scaler s = { .scale = 8, .interval = 2 };

		assert_done(tensor_backward(ok(tensor_grad_scaler_scale(&s, tensor_sum(p)))));
		assert_values(tensor_grad(p), 0, 8, 8);
		assert_done(tensor_grad_scaler_unscale(&s, o));
		assert_values(tensor_grad(p), 0, 1, 1);
		assert_fails(tensor_grad_scaler_unscale(&s, o), EALREADY, "update");
		assert_int_equal(tensor_grad_scaler_step(&s, o), 1);
		assert_done(tensor_grad_scaler_update(&s));
		assert_values(p, 0, 0, 0);
		assert_true(s.scale == 8);

		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(2), S(8), F32))));
		assert_int_equal(tensor_grad_scaler_step(&s, o), 1);
		assert_done(tensor_grad_scaler_update(&s));
		assert_values(p, 0, -1, -1);
		assert_true(s.scale == 16);

		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(2), S(INFINITY), F32))));
		assert_int_equal(tensor_grad_scaler_step(&s, o), 0);
		assert_done(tensor_grad_scaler_update(&s));
		assert_values(p, 0, -1, -1);
		assert_true(s.scale == 8 && s.finite_steps == 0);
		tensor_optim_free(o);
	}
}

static void one_scaler_serves_several_optimizers(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_ones(TENSOR_SHAPE(1), F32)));
		tensor *q = leaf(ok(tensor_ones(TENSOR_SHAPE(1), F32)));
		tensor_optim *a = tensor_optim_new(TENSOR_LIST(p), TENSOR_SGD(.lr = 1));
		tensor_optim *b = tensor_optim_new(TENSOR_LIST(q), TENSOR_SGD(.lr = 1));
		tensor_grad_scaler s = { .scale = 8 };

		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(1), S(8), F32))));
		assert_done(tensor_set_grad(q, ok(tensor_full(TENSOR_SHAPE(1), S(16), F32))));
		assert_int_equal(tensor_grad_scaler_step(&s, a), 1);
		assert_int_equal(tensor_grad_scaler_step(&s, b), 1);
		assert_values(p, 0, 0);
		assert_values(q, 0, -1);
		assert_done(tensor_grad_scaler_update(&s));
		assert_true(s.scale == 8);

		/* Infinite gradients of one leave out its step, and lower the scale of all. */
		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(1), S(INFINITY), F32))));
		assert_done(tensor_set_grad(q, ok(tensor_full(TENSOR_SHAPE(1), S(8), F32))));
		assert_int_equal(tensor_grad_scaler_step(&s, a), 0);
		assert_int_equal(tensor_grad_scaler_step(&s, b), 1);
		assert_values(p, 0, 0);
		assert_values(q, 0, -2);
		assert_done(tensor_grad_scaler_update(&s));
		assert_true(s.scale == 4);
		tensor_optim_free(a);
		tensor_optim_free(b);
	}
}

static void a_step_without_an_update_before_is_refused(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_ones(TENSOR_SHAPE(1), F32)));
		tensor_optim *o = tensor_optim_new(TENSOR_LIST(p), TENSOR_SGD(.lr = 1));
		tensor_grad_scaler s = { .scale = 8 }, other = { .scale = 8 };

		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(1), S(8), F32))));
		assert_int_equal(tensor_grad_scaler_step(&s, o), 1);
		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(1), S(8), F32))));
		assert_fails(tensor_grad_scaler_step(&s, o), EALREADY, "tensor_grad_scaler_update");
		assert_values(p, 0, 0);
		assert_done(tensor_grad_scaler_update(&s));
		assert_int_equal(tensor_grad_scaler_step(&s, o), 1);
		assert_values(p, 0, -1);
		/* Another scaler begins a round of its own. */
		assert_done(tensor_set_grad(p, ok(tensor_full(TENSOR_SHAPE(1), S(8), F32))));
		assert_int_equal(tensor_grad_scaler_step(&other, o), 1);
		assert_values(p, 0, -2);
		tensor_optim_free(o);
	}
}

static void the_scale_of_an_f16_loss_is_f32(void **state)
{
	tensor_scope {
		tensor_grad_scaler s = { .interval = 0 };
		tensor *loss = ok(tensor_full(TENSOR_SCALAR_SHAPE, S(3), OF(TENSOR_F16)));
		tensor *scaled = ok(tensor_grad_scaler_scale(&s, loss));

		assert_int_equal(tensor_dtype(scaled), TENSOR_F32);
		assert_values(scaled, 0, 3 * 65536.);
	}
}

static void operators_of_the_scale_equal_pytorch(void **state)
{
	tensor_scope {
		tensor *scale = ok(tensor_full(TENSOR_SCALAR_SHAPE, S(4), F32));
		tensor *tracker = ok(tensor_zeros(TENSOR_SHAPE(1), OF(TENSOR_I32)));
		tensor *found = ok(tensor_zeros(TENSOR_SCALAR_SHAPE, F32));
		tensor *half = ok(tensor_full(TENSOR_SCALAR_SHAPE, S(0.5), F32));
		tensor *g = ok(tensor_ones(TENSOR_SHAPE(100), OF(TENSOR_F16)));

		ok(tensor__amp_update_scale_(scale, tracker, found, 2, 0.5, 2));
		assert_values(tracker, 0, 1);
		ok(tensor__amp_update_scale_(scale, tracker, found, 2, 0.5, 2));
		assert_values(scale, 0, 8);
		assert_values(tracker, 0, 0);
		assert_done(tensor__amp_foreach_non_finite_check_and_unscale_(TENSOR_LIST(g), found,
									      half));
		assert_values(found, 0, 0);
		assert_values(tensor_slice(g, 0, 0, 2, 1), 0, 0.5, 0.5);
		for (int bad = 0; bad < 3; bad++) {
			static const double values[3] = { NAN, INFINITY, -INFINITY };

			ok(tensor_fill_(found, S(0)));
			ok(tensor_fill_(g, S(1)));
			ok(tensor_fill_(tensor_slice(g, 0, 77, 78, 1), S(values[bad])));
			assert_done(tensor__amp_foreach_non_finite_check_and_unscale_(
				TENSOR_LIST(half, g), found, half));
			assert_values(found, 0, 1);
		}
		ok(tensor__amp_update_scale_(scale, tracker, found, 2, 0.5, 2));
		assert_values(scale, 0, 4);
		assert_fails(tensor__amp_update_scale_(g, tracker, found, 2, 0.5, 2), EINVAL,
			     "one element");
		assert_fails(tensor__amp_foreach_non_finite_check_and_unscale_(TENSOR_LIST(g), g,
									       half),
			     EINVAL, "one element");
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *p = leaf(ok(tensor_ones(TENSOR_SHAPE(2), F32)));
		tensor *whole = ok(tensor_ones(TENSOR_SHAPE(2), I64));
		tensor *one = ok(tensor_ones(TENSOR_SHAPE(1), F32));
		tensor *many = ok(tensor_expand(one, TENSOR_SHAPE(3)));
		tensor *d = ok(tensor_ones(TENSOR_SHAPE(2), F64));
		tensor_grad_scaler bad = { .growth = 0.5 };

		assert_fails(tensor_clip_grad_norm_(TENSOR_LIST(p), NAN, 2, true, NULL), EINVAL,
			     "max_norm");
		assert_fails(tensor_clip_grad_norm_(TENSOR_LIST(p), 1, 0, true, NULL), EINVAL,
			     "norm_type");
		assert_fails(tensor_clip_grad_norm_((tensor_list){ NULL, 2 }, 1, 2, true, NULL),
			     EINVAL, "params");
		assert_fails(tensor_clip_grad_value_(TENSOR_LIST(p), -1), EINVAL, "limit");
		assert_fails(tensor_clip_grad_value_(TENSOR_LIST(tensor_none), 1), EINVAL,
			     "tensor_none");
		assert_fails(tensor__list_norm(TENSOR_LIST(whole), 2), EINVAL, "i64");
		assert_fails(tensor__list_norm(TENSOR_LIST(p), -1), EINVAL, "above 0");
		assert_fails(tensor__list_scale_(TENSOR_LIST(many), 2), EINVAL, "share memory");
		assert_fails(tensor__list_scale_(TENSOR_LIST(p), 2), EINVAL, "tensor_no_grad");
		assert_fails(tensor__list_lerp_(TENSOR_LIST(d), TENSOR_LIST(d, d), 2), EINVAL,
			     "for 1");
		assert_fails(tensor__list_lerp_(TENSOR_LIST(d), TENSOR_LIST(p), 2), EINVAL, "f32");
		assert_fails(tensor__list_lerp_(TENSOR_LIST(one), TENSOR_LIST(many), 2), EINVAL,
			     "[3]");
		assert_values(tensor__list_norm(TENSOR_LIST(many), 2), 1e-6, sqrt(3));
		assert_fails(tensor_grad_scaler_scale(NULL, p), EINVAL, "NULL");
		assert_fails(tensor_grad_scaler_scale(&bad, p), EINVAL, "out of range");
		assert_fails(tensor_grad_scaler_step(&bad, NULL), EINVAL, "out of range");
		assert_fails(tensor_grad_scaler_update(NULL), EINVAL, "NULL");
		bad = (tensor_grad_scaler){ .scale = 2 };
		assert_fails(tensor_grad_scaler_step(&bad, NULL), EINVAL, "grad_scaler");
		assert_fails(tensor_grad_scaler_scale(&bad, NULL), EINVAL, "grad_scaler");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clip_grad_norm_scales_all_gradients),
		cmocka_unit_test(norms_that_are_not_finite),
		cmocka_unit_test(complex_norms_use_absolute_values),
		cmocka_unit_test(clip_grad_value_clamps),
		cmocka_unit_test(norms_are_the_same_in_all_threads),
		cmocka_unit_test(averages_follow_the_parameters),
		cmocka_unit_test(a_parameter_of_another_shape_is_not_swapped),
		cmocka_unit_test(the_scaler_leaves_out_infinite_steps),
		cmocka_unit_test(one_scaler_serves_several_optimizers),
		cmocka_unit_test(a_step_without_an_update_before_is_refused),
		cmocka_unit_test(the_scale_of_an_f16_loss_is_f32),
		cmocka_unit_test(operators_of_the_scale_equal_pytorch),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("clip", tests, NULL, NULL);
}
