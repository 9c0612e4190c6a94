// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * First and second derivatives of reductions, variances, norms and scans against central
 * differences.
 */
#include "formulas.h"

/* One of two results, or their weighted sum. */
#define PAIR(id, call)                                                                         \
	static tensor *id##_of(tensor *a, int which)                                           \
	{                                                                                      \
		tensor *x, *y;                                                                 \
                                                                                               \
		if ((call) < 0)                                                                \
			return NULL;                                                           \
		return which == 2 ? tensor_add(x, tensor_mul_scalar(y, S(3))) : which ? y : x; \
	}                                                                                      \
	CASE(fn_##id##_first, id##_of(a, 0))                                                   \
	CASE(fn_##id##_second, id##_of(a, 1))                                                  \
	CASE(fn_##id##_both, id##_of(a, 2))
#define PAIR_ROWS(id, ...)                                                 \
	ROW(id##_first, 1, __VA_ARGS__), ROW(id##_second, 1, __VA_ARGS__), \
		ROW(id##_both, 1, __VA_ARGS__)

/* b is zero. It is an input, so that the derivative at a zero is compared as well. */
static tensor *around_zero(tensor *a, tensor *b, tensor *c)
{
	return tensor_cat(TENSOR_LIST(a, b, c), 1);
}

#define NONE ((tensor_scalar){ .kind = TENSOR_SCALAR_NONE })

CASE(fn_nansum, tensor_nansum(a, TENSOR_INTS(1), false))
CASE(fn_prod, tensor_prod(a))
CASE(fn_prod_dim, tensor_prod_dim(a, 0, true))
CASE(fn_prod_zero, tensor_prod(around_zero(a, b, c)))
CASE(fn_prod_dim_zero, tensor_prod_dim(around_zero(a, b, c), -1, false))
CASE(fn_complex_prod_dim, AS_REAL(tensor_prod_dim(AS_COMPLEX(a), 1, false)))
CASE(fn_complex_prod_zero, AS_REAL(tensor_prod(AS_COMPLEX(around_zero(a, b, c)))))
CASE(fn_complex_prod_dim_zero, AS_REAL(tensor_prod_dim(AS_COMPLEX(around_zero(a, b, c)), -1, true)))
CASE(fn_amax, tensor_amax(a, TENSOR_INTS(0), false))
CASE(fn_amin, tensor_amin(a, TENSOR_INTS(0, -1), true))
CASE(fn_min, tensor_min(a))
PAIR(aminmax, tensor_aminmax_opt(a, 1, false, &x, &y))
PAIR(aminmax_negative, tensor_aminmax_opt(a, -2, false, &x, &y))
CASE(fn_var, tensor_var(a, true))
CASE(fn_var_dim, tensor_var_dim(a, TENSOR_INTS(1), false, true))
CASE(fn_std, tensor_std_dim(a, TENSOR_INTS(-2), true, false))
CASE(fn_var_two, tensor_var_correction_opt(a, TENSOR_INTS(1), S(2), true))
CASE(fn_var_zero, tensor_var_correction_opt(a, TENSOR_INTS(0), S(0), false))
CASE(fn_var_fraction, tensor_var_correction_opt(a, TENSOR_INTS(0, -1), S(0.5), false))
CASE(fn_var_default, tensor_var_correction_opt(a, TENSOR_NO_INTS, NONE, false))
CASE(fn_std_two, tensor_std_correction_opt(a, TENSOR_NO_INTS, S(2), false))
CASE(fn_std_zero, tensor_std_correction_opt(a, TENSOR_INTS(-1), S(0), true))
CASE(fn_std_fraction, tensor_std_correction_opt(a, TENSOR_INTS(1), S(1.5), false))
CASE(fn_std_default, tensor_std_correction_opt(a, TENSOR_INTS(1), NONE, false))
PAIR(var_mean, tensor_var_mean(a, true, &x, &y))
PAIR(var_mean_two, tensor_var_mean_correction_opt(a, TENSOR_INTS(1), S(2), false, &x, &y))
PAIR(std_mean_fraction, tensor_std_mean_correction_opt(a, TENSOR_INTS(0, -1), S(0.5), true, &x, &y))
PAIR(std_mean, tensor_std_mean_dim(a, TENSOR_INTS(0), true, false, &x, &y))
CASE(fn_logsumexp, tensor_logsumexp(a, TENSOR_INTS(1), false))
CASE(fn_norm2, tensor_norm(a, S(2)))
CASE(fn_norm1, tensor_linalg_vector_norm(a, S(1), TENSOR_INTS(0), true))
CASE(fn_norm3, tensor_linalg_vector_norm(a, S(3), TENSOR_INTS(1), false))
CASE(fn_norm_half, tensor_linalg_vector_norm(a, S(0.5), TENSOR_INTS(1), false))
CASE(fn_norm_minus1, tensor_linalg_vector_norm(a, S(-1), TENSOR_INTS(1), false))
CASE(fn_norm_minus_half, tensor_linalg_vector_norm(a, S(-0.5), TENSOR_INTS(0, 1), true))
CASE(fn_norm_below_2, tensor_linalg_vector_norm(a, S(1.5), TENSOR_INTS(-2), false))
CASE(fn_norm_count, tensor_mul(a, tensor_linalg_vector_norm(a, S(0), TENSOR_INTS(1), true)))
CASE(fn_norm_most, tensor_linalg_vector_norm(a, S(INFINITY), TENSOR_INTS(1), false))
CASE(fn_norm_least, tensor_linalg_vector_norm(a, S(-INFINITY), TENSOR_INTS(1), false))
CASE(fn_cumsum, tensor_cumsum(a, 1))
CASE(fn_cumsum_middle, tensor_cumsum(a, -2))
CASE(fn_cumprod_middle, tensor_cumprod(a, -2))
CASE(fn_cumprod, tensor_cumprod(a, 0))
CASE(fn_complex_cumprod, tensor_view_as_real(tensor_cumprod(AS_COMPLEX(a), 0)))
CASE(fn_complex_logcumsumexp, tensor_view_as_real(tensor_logcumsumexp(AS_COMPLEX(a), 0)))
CASE(fn_complex_logsumexp,
     tensor_view_as_real(tensor_logsumexp(AS_COMPLEX(a), TENSOR_INTS(0), false)))
CASE(fn_complex_norm1, tensor_linalg_vector_norm(AS_COMPLEX(a), S(1), TENSOR_INTS(0), true))
CASE(fn_complex_norm3, tensor_linalg_vector_norm(AS_COMPLEX(a), S(3), TENSOR_INTS(0), false))
CASE(fn_cumprod_zero, tensor_cumprod(around_zero(a, b, c), 1))
CASE(fn_cumprod_zero_middle, tensor_cumprod(around_zero(a, b, c), -2))
CASE(fn_complex_cumprod_zero, AS_REAL(tensor_cumprod(AS_COMPLEX(around_zero(a, b, c)), 1)))
CASE(fn_complex_norm_minus2, tensor_linalg_vector_norm(AS_COMPLEX(a), S(-2), TENSOR_INTS(0), false))
CASE(fn_complex_norm_most,
     tensor_linalg_vector_norm(AS_COMPLEX(a), S(INFINITY), TENSOR_INTS(0), false))
CASE(fn_logcumsumexp, tensor_logcumsumexp(a, -1))

#define VALUES(id, call)                      \
	static tensor *id##_values(tensor *a) \
	{                                     \
		tensor *x, *y;                \
                                              \
		return (call) < 0 ? NULL : x; \
	}                                     \
	CASE(fn_##id, id##_values(a))
VALUES(min_dim, tensor_min_dim(a, 1, false, &x, &y))
VALUES(min_first, tensor_min_dim(a, -3, false, &x, &y))
VALUES(max_first, tensor_max_dim(a, -3, false, &x, &y))
VALUES(max_first_kept, tensor_max_dim(a, -3, true, &x, &y))
VALUES(cummax, tensor_cummax(a, 1, &x, &y))
VALUES(cummin, tensor_cummin(a, 0, &x, &y))
VALUES(sort, tensor_sort(a, 0, true, &x, &y))
VALUES(topk, tensor_topk(a, 2, 1, true, true, &x, &y))
VALUES(kthvalue, tensor_kthvalue(a, 2, 1, false, &x, &y))
VALUES(median_dim, tensor_median_dim(a, 1, true, &x, &y))
VALUES(sort_stable, tensor_sort_stable_opt(a, 1, 1, true, &x, &y))
VALUES(nanmedian_dim, tensor_nanmedian_dim(a, 0, false, &x, &y))
VALUES(mode, tensor_mode(a, 1, true, &x, &y))
CASE(fn_nanmedian, tensor_nanmedian(a))
CASE(fn_median, tensor_median(a))
CASE(fn_msort, tensor_msort(a))

static const struct formula formulas[] = {
	ROW(nansum, 1, IN_T(1, 0, 2, 3)),
	ROW(prod, 1, IN(1, 0, 2, 3)),
	ROW(prod_dim, 1, IN_T(1, 0, 2, 3)),
	ROW(prod_zero, 3, IN(1, 0, 2, 1), IN(0, 0, 2, 1), IN(1, 0, 2, 1)),
	ROW(prod_zero, 3, IN(1, 0, 1, 2), IN(0, 0, 1, 1), IN(1, 0, 1, 1)),
	ROW(prod_dim_zero, 3, IN(1, 0, 2, 2), IN(0, 0, 2, 1), IN(1, 0, 2, 1)),
	ROW(complex_prod_dim, 1, IN(1, 0.2, 2, 3, 2)),
	ROW(complex_prod_zero, 3, IN(1, 0.2, 1, 1, 2), IN(0, 0, 1, 1, 2), IN(1, 0.2, 1, 2, 2)),
	ROW(complex_prod_dim_zero, 3, IN(1, 0.2, 2, 1, 2), IN(0, 0, 2, 1, 2), IN(1, 0.2, 2, 1, 2)),
	ROW(amax, 1, IN(1, 0, 2, 3)),
	ROW(amin, 1, IN(1, 0, 2, 3)),
	ROW(min, 1, IN(1, 0, 2, 3)),
	ROW(min_dim, 1, IN(1, 0, 2, 3)),
	PAIR_ROWS(aminmax, IN(1, 0, 2, 3)),
	ROW(min_first, 1, IN(1, 0, 2, 3, 2)),
	ROW(max_first, 1, IN(1, 0, 2, 3, 2)),
	ROW(max_first_kept, 1, IN_T(1, 0, 3, 2, 2)),
	PAIR_ROWS(aminmax_negative, IN(1, 0, 2, 3, 2)),
	ROW(var_two, 1, IN(1, 0, 2, 4)),
	ROW(var_zero, 1, IN_T(1, 0, 3, 2)),
	ROW(var_fraction, 1, IN(1, 0, 2, 2, 3)),
	ROW(var_default, 1, IN(1, 0, 2, 3)),
	ROW(std_two, 1, IN_T(1, 0, 2, 3)),
	ROW(std_zero, 1, IN(1, 0, 2, 3)),
	ROW(std_fraction, 1, IN(1, 0, 2, 3)),
	ROW(std_default, 1, IN(1, 0, 2, 3)),
	PAIR_ROWS(var_mean_two, IN(1, 0, 2, 4)),
	PAIR_ROWS(std_mean_fraction, IN(1, 0, 2, 2, 3)),
	ROW(var, 1, IN(1, 0, 2, 3)),
	ROW(var_dim, 1, IN(1, 0, 2, 3)),
	ROW(std, 1, IN_T(1, 0, 3, 2)),
	PAIR_ROWS(var_mean, IN(1, 0, 2, 3)),
	PAIR_ROWS(std_mean, IN(1, 0, 3, 2)),
	ROW(logsumexp, 1, IN(1, 0, 2, 3)),
	ROW(norm2, 1, IN(1, 0, 2, 3)),
	ROW(norm1, 1, IN(1, 0, 2, 3)),
	ROW(norm3, 1, IN(1, 0, 2, 3)),
	ROW(norm_half, 1, IN(1, 0, 2, 3)),
	ROW(norm_minus1, 1, IN(1, 0, 2, 3)),
	ROW(norm_minus_half, 1, IN_T(1, 0, 2, 3)),
	ROW(norm_below_2, 1, IN(1, 0, 2, 3)),
	ROW_ONCE(norm_count, 1, IN(1, 0, 2, 3)),
	ROW(norm_most, 1, IN(1, 0, 2, 3)),
	ROW(norm_least, 1, IN(1, 0, 2, 3)),
	ROW(cumsum, 1, IN_T(1, 0, 2, 3)),
	ROW(cumsum_middle, 1, IN(1, 0, 2, 3, 2)),
	ROW(cumprod_middle, 1, IN_T(1, 0, 2, 3, 2)),
	ROW(cumprod_zero_middle, 3, IN(1, 0, 2, 1, 2), IN(0, 0, 2, 1, 2), IN(1, 0, 2, 1, 2)),
	ROW(complex_cumprod_zero, 3, IN(1, 0.2, 2, 1, 2), IN(0, 0, 2, 1, 2), IN(1, 0.2, 2, 2, 2)),
	ROW(complex_norm_minus2, 1, IN(1, 0, 3, 2)),
	ROW(complex_norm_most, 1, IN(1, 0, 3, 2)),
	ROW(cumprod, 1, IN(1, 0, 3, 2)),
	ROW(complex_cumprod, 1, IN(1, 0, 3, 2)),
	ROW(complex_norm1, 1, IN(1, 0, 3, 2)),
	ROW(complex_logcumsumexp, 1, IN(1, 0, 3, 2)),
	ROW(complex_logsumexp, 1, IN(1, 0, 3, 2)),
	ROW(complex_norm3, 1, IN(1, 0, 3, 2)),
	ROW(cumprod_zero, 3, IN(1, 0, 2, 1), IN(0, 0, 2, 1), IN(1, 0, 2, 2)),
	ROW(logcumsumexp, 1, IN(1, 0, 2, 3)),
	ROW(cummax, 1, IN(1, 0, 2, 3)),
	ROW(cummin, 1, IN(1, 0, 2, 3)),
	ROW(sort, 1, IN(1, 0, 3, 2)),
	ROW(topk, 1, IN(1, 0, 2, 4)),
	ROW(kthvalue, 1, IN(1, 0, 2, 3)),
	ROW(median_dim, 1, IN_T(1, 0, 2, 3)),
	ROW(sort_stable, 1, IN_T(1, 0, 3, 2)),
	ROW(nanmedian_dim, 1, IN(1, 0, 3, 2)),
	ROW(mode, 1, IN(1, 0, 2, 3)),
	ROW(nanmedian, 1, IN_T(1, 0, 3, 2)),
	ROW(median, 1, IN(1, 0, 3, 3)),
	ROW(msort, 1, IN(1, 0, 3)),
};

FORMULA_TESTS

static void gradient_of_a_nan_maximum_goes_to_the_nans(void **state)
{
	tensor *(*const fn[])(tensor *) = { tensor_max, tensor_min, tensor_median };
	const float values[] = { 1, NAN, 2, NAN };

	for (size_t i = 0; i < 3; i++)
		tensor_scope {
			tensor *t = ok(tensor_from_data(values, TENSOR_INTS(4), F32));

			tensor_set_requires_grad(t, true);
			assert_done(tensor_backward(ok(fn[i](t))));
			assert_values(tensor_grad(t), 0, 0, 0.5, 0, 0.5);
		}
}

/* The maximum is found in the dtype of the norm: |1 + 3i| in f32 differs from that in f64. */
static void greatest_norm_of_another_dtype_has_a_gradient(void **state)
{
	static const float parts[] = { 1, 3, 0.5f, 0 };

	tensor_scope {
		tensor *x = ok(tensor_from_data(parts, TENSOR_SHAPE(2),
						TENSOR_OPTIONS(.dtype = TENSOR_C64)));
		tensor *norm;

		assert_done(tensor_set_requires_grad(x, true));
		norm = ok(tensor_linalg_vector_norm_opt(x, tensor_scalar_float(INFINITY),
							TENSOR_NO_INTS, false, TENSOR_C128));
		assert_done(tensor_backward(norm));
		assert_values(tensor_abs(tensor_grad(x)), 1e-6, 1, 0);
	}
}

/* The first and second derivatives of |x| at 0 are defined as 0. */
static void second_derivative_of_a_norm_at_zero_is_zero(void **state)
{
	static const int64_t lengths[] = { 0, 3 };

	for (int i = 0; i < 2; i++)
		tensor_scope {
			tensor *x = ok(tensor_zeros(TENSOR_INTS(lengths[i]), F64)),
			       *w = ok(tensor_ones(TENSOR_SCALAR_SHAPE, F64));
			tensor *n, *y, *g[2], *h[2];

			assert_done(tensor_set_requires_grad(x, true));
			assert_done(tensor_set_requires_grad(w, true));
			n = ok(tensor_linalg_vector_norm(x, S(2), TENSOR_NO_INTS, false));
			y = ok(tensor_mul(ok(tensor_mul(w, w)), n));
			assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x, w), g,
						       TENSOR_CREATE_GRAPH));
			y = ok(tensor_add(ok(tensor_sum(g[0])), g[1]));
			assert_done(
				tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x, w), h, 0));
			assert_values(tensor_sum(ok(tensor_isnan(h[0]))), 0, 0);
			assert_values(h[1], 0, 0);
		}
}

/* The mean of no elements is NaN, but it does not depend on x: its second derivative is 0. */
static void second_derivative_of_an_empty_mean_is_zero(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(1, 1), F64)), *y, *g[1], *h[1];

		assert_done(tensor_set_requires_grad(x, true));
		y = ok(tensor_sum(
			ok(tensor_mean_dim(ok(tensor_narrow(x, 0, 0, 0)), TENSOR_INTS(0), true))));
		y = ok(tensor_sum(ok(tensor_mul(y, x))));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), g,
					       TENSOR_CREATE_GRAPH));
		y = ok(tensor_sum(ok(tensor_mul(
			ok(tensor_nan_to_num(g[0], 2, TENSOR_NO_FLOAT, TENSOR_NO_FLOAT)), x))));
		y = ok(tensor_add(y, ok(tensor_sum(g[0]))));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), h, 0));
		assert_values(h[0], 0, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_derivative_of_a_norm_at_zero_is_zero),
		cmocka_unit_test(second_derivative_of_an_empty_mean_is_zero),
		FORMULA_TEST_LIST,
		cmocka_unit_test(gradient_of_a_nan_maximum_goes_to_the_nans),
		cmocka_unit_test(greatest_norm_of_another_dtype_has_a_gradient),
	};

	return cmocka_run_group_tests_name("autograd_reduce", tests, NULL, NULL);
}
