// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Fused optimizer steps against a plain implementation in f64. */
#include "check.h"

#define N 1000

static tensor *numbers(tensor_options options, unsigned seed, double least)
{
	tensor *t = ok(tensor_zeros(TENSOR_SHAPE(N), F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < N; i++)
		p[i] = least + (double)((i + seed) * 2654435761u % 8009) / 4000;
	return ok(tensor_to(t, options));
}

static void adam_by_hand(double *p, const double *g, double *m, double *v, double step)
{
	for (int i = 0; i < N; i++) {
		double d = g[i] + 0.1 * p[i];

		m[i] += (1 - 0.9) * (d - m[i]);
		v[i] = 0.99 * v[i] + (1 - 0.99) * d * d;
		p[i] -= 0.01 / (1 - pow(0.9, step)) * m[i] /
			(sqrt(v[i]) / sqrt(1 - pow(0.99, step)) + 1e-8);
	}
}

static void assert_close(tensor *t, const double *want, double tol)
{
	double *got = values_of(t);

	for (int i = 0; i < N; i++)
		assert_true(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i])));
	free(got);
}

static void adam_in(tensor_options options, double tol)
{
	tensor_scope {
		tensor *p = numbers(options, 1, -1), *g = numbers(options, 2, -1);
		tensor *m = numbers(options, 3, -1), *v = numbers(options, 4, 0);
		int before = (int)tensor_version(p);
		double *hp = values_of(p), *hg = values_of(g), *hm = values_of(m),
		       *hv = values_of(v);

		adam_by_hand(hp, hg, hm, hv, 3);
		assert_done(tensor__fused_adam_(
			TENSOR_LIST(p), TENSOR_LIST(g), TENSOR_LIST(m), TENSOR_LIST(v),
			(tensor_list){ 0 },
			TENSOR_LIST(ok(tensor_full(TENSOR_SCALAR_SHAPE, tensor_scalar_int(3), F32))),
			0.01, 0.9, 0.99, 0.1, 1e-8, false, false));
		assert_close(p, hp, tol);
		assert_close(m, hm, tol);
		assert_close(v, hv, tol);
		assert_close(g, hg, 0);
		assert_int_equal(tensor_version(p), before + 1);
		free(hp);
		free(hg);
		free(hm);
		free(hv);
	}
}

static void fused_adam_equals_the_plain_one(void **state)
{
	adam_in(F64, 1e-13);
	adam_in(F32, 1e-5);
	adam_in(TENSOR_OPTIONS(.dtype = TENSOR_BF16), 2e-2);
	adam_in(TENSOR_OPTIONS(.dtype = TENSOR_F16), 2e-3);
}

static int sgd_step(tensor *p, tensor *g, tensor *momentum, tensor *found_inf)
{
	return tensor__fused_sgd_opt_(TENSOR_LIST(p), TENSOR_LIST(g), TENSOR_LIST(momentum), 0, 0.5,
				      1, 0, false, false, false, tensor_none, found_inf);
}

/* Transposed parameters give the same elements. */
static void results_do_not_depend_on_strides(void **state)
{
	tensor_scope {
		tensor *p = ok(tensor_view(numbers(F32, 1, -1), TENSOR_SHAPE(20, 50)));
		tensor *g = ok(tensor_view(numbers(F32, 2, -1), TENSOR_SHAPE(50, 20)));
		tensor *m = ok(tensor_view(numbers(F32, 3, -1), TENSOR_SHAPE(20, 50)));
		tensor *p2 = ok(tensor_contiguous(tensor_t(p))),
		       *m2 = ok(tensor_contiguous(tensor_t(m)));

		assert_done(sgd_step(ok(tensor_t(p)), g, ok(tensor_t(m)), tensor_none));
		assert_done(sgd_step(p2, g, m2, tensor_none));
		assert_values(tensor_all(tensor_eq(p2, tensor_t(p))), 0, 1);
		assert_values(tensor_all(tensor_eq(m2, tensor_t(m))), 0, 1);
	}
}

static void found_inf_skips_the_step(void **state)
{
	tensor_scope {
		tensor *p = numbers(F32, 1, -1), *g = numbers(F32, 2, -1), *m = numbers(F32, 3, -1);
		double *before = values_of(p);
		int version = (int)tensor_version(p);

		assert_done(sgd_step(p, g, m, ok(tensor_ones(TENSOR_SCALAR_SHAPE, F32))));
		assert_close(p, before, 0);
		assert_int_equal(tensor_version(p), version);
		free(before);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *p = numbers(F32, 1, -1), *g = numbers(F64, 2, -1),
		       *whole = numbers(I64, 1, 0);
		tensor *one = ok(tensor_ones(TENSOR_SHAPE(1), F32));
		tensor *many = ok(tensor_expand(one, TENSOR_SHAPE(N)));

		assert_fails(sgd_step(p, g, p, tensor_none), EINVAL, "one floating dtype");
		assert_fails(sgd_step(whole, whole, whole, tensor_none), EINVAL,
			     "one floating dtype");
		assert_fails(sgd_step(p, one, p, tensor_none), EINVAL, "shape [1]");
		assert_fails(sgd_step(many, p, p, tensor_none), EINVAL, "share memory");
		assert_fails(sgd_step(p, p, p, p), EINVAL, "one element");
		assert_done(tensor_set_requires_grad(p, true));
		assert_fails(sgd_step(p, many, many, tensor_none), EINVAL, "tensor_no_grad");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fused_adam_equals_the_plain_one),
		cmocka_unit_test(results_do_not_depend_on_strides),
		cmocka_unit_test(found_inf_skips_the_step),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
