// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: reductions against the CPU's results, over each dimension, two of them and all. */
#include "cuda_results.h"

static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,  TENSOR_I32, TENSOR_I64,
					    TENSOR_F32,	 TENSOR_F64, TENSOR_F16, TENSOR_BF16 };

struct reduction {
	const char *name;
	tensor *(*call)(tensor *t, tensor_ints dims);
	bool floats;   /* only for floats */
	double factor; /* of the tolerance */
};

/* NaN where an element is above 3. */
static tensor *without_some(tensor *t)
{
	return tensor_masked_fill(t, tensor_gt_scalar(t, TENSOR_SCALAR(3)), TENSOR_SCALAR(NAN));
}

#define CALL(NAME, EXPRESSION)                           \
	static tensor *NAME(tensor *t, tensor_ints dims) \
	{                                                \
		return EXPRESSION;                       \
	}
CALL(amax, tensor_amax(t, dims, false))
CALL(amin, tensor_amin(t, dims, false))
CALL(any, tensor_any_dims(t, dims, true))
CALL(all, tensor_all_dims(t, dims, false))
CALL(count, tensor_count_nonzero_dim(t, dims))
CALL(sum, tensor_sum_dim(t, dims, true))
CALL(mean, tensor_mean_dim(t, dims, false))
CALL(nansum, tensor_nansum(without_some(t), dims, false))
CALL(var, tensor_var_correction_opt(t, dims, TENSOR_SCALAR(2), false))
CALL(std, tensor_std_correction_opt(t, dims, TENSOR_SCALAR(1), false))
CALL(logsumexp, tensor_logsumexp(t, dims, false))
CALL(norm_0, tensor_linalg_vector_norm(t, TENSOR_SCALAR(0), dims, false))
CALL(norm_1, tensor_linalg_vector_norm(t, TENSOR_SCALAR(1), dims, false))
CALL(norm_2, tensor_linalg_vector_norm(t, TENSOR_SCALAR(2), dims, false))
CALL(norm_3, tensor_linalg_vector_norm(t, TENSOR_SCALAR(3), dims, false))
CALL(norm_max, tensor_linalg_vector_norm(t, TENSOR_SCALAR(INFINITY), dims, false))
CALL(norm_min, tensor_linalg_vector_norm(t, TENSOR_SCALAR(-INFINITY), dims, true))
/* These operators take one dimension. */
CALL(prod, tensor_prod_dim(t, dims.data[0], false))
CALL(argmax, tensor_argmax(t, dims.data[0], false))
CALL(argmin, tensor_argmin(t, dims.data[0], true))
#undef CALL

static const struct reduction reductions[] = {
	{ "amax", amax, false, 0 },
	{ "amin", amin, false, 0 },
	{ "any", any, false, 0 },
	{ "all", all, false, 0 },
	{ "count_nonzero", count, false, 0 },
	{ "sum", sum, true, 10 },
	{ "mean", mean, true, 1 },
	{ "nansum", nansum, true, 10 },
	{ "var", var, true, 1 },
	{ "std", std, true, 1 },
	{ "logsumexp", logsumexp, true, 1 },
	{ "norm 0", norm_0, true, 1 },
	{ "norm 1", norm_1, true, 1 },
	{ "norm 2", norm_2, true, 1 },
	{ "norm 3", norm_3, true, 1 },
	{ "norm inf", norm_max, true, 0 },
	{ "norm -inf", norm_min, true, 0 },
	{ "prod", prod, false, 1 },
	{ "argmax", argmax, false, 0 },
	{ "argmin", argmin, false, 0 },
};

static void reduce_each_way(const struct reduction *r, tensor *a, double tol)
{
	tensor *g = on_cuda(a), *ta = ok(tensor_permute(a, TENSOR_INTS(2, 0, 1)));
	tensor *tg = ok(tensor_permute(g, TENSOR_INTS(2, 0, 1)));

	for (int k = 0; k < 3; k++) {
		assert_near(r->call(g, TENSOR_INTS(k)), r->call(a, TENSOR_INTS(k)), tol);
		assert_near(r->call(tg, TENSOR_INTS(k)), r->call(ta, TENSOR_INTS(k)), tol);
	}
	assert_near(r->call(g, TENSOR_INTS(0, 2)), r->call(a, TENSOR_INTS(0, 2)), tol);
	assert_near(r->call(tg, TENSOR_INTS(0, 1, 2)), r->call(ta, TENSOR_INTS(0, 1, 2)), tol);
}

static void reductions_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(reductions) * ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			const struct reduction *r = &reductions[i / ARRAY_SIZE(dtypes)];
			enum tensor_dtype d = dtypes[i % ARRAY_SIZE(dtypes)];
			tensor *a = pseudo_random(TENSOR_SHAPE(5, 33, 40), d);

			if (r->floats && d < TENSOR_F16)
				continue;
			if (r->call == prod) /* of numbers near 1 */
				a = ok(tensor_to(
					tensor_add_scalar(tensor_mul_scalar(tensor_to(a, F64),
									    TENSOR_SCALAR(0.01)),
							  TENSOR_SCALAR(1)),
					TENSOR_OPTIONS(.dtype = d)));
			reduce_each_way(r, a, r->factor * tolerance(d));
		}
}

/* Cut into pieces, along rows and across them. */
static void long_rows_are_reduced_in_pieces(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(reductions); i++)
		tensor_scope {
			const struct reduction *r = &reductions[i];
			tensor *a = pseudo_random(TENSOR_SHAPE(2, 40000), TENSOR_F32);
			tensor *b = pseudo_random(TENSOR_SHAPE(1000, 70), TENSOR_F32);

			if (r->call == prod)
				continue;
			assert_near(r->call(on_cuda(a), TENSOR_INTS(1)), r->call(a, TENSOR_INTS(1)),
				    r->factor * 1e-4);
			assert_near(r->call(on_cuda(b), TENSOR_INTS(0)), r->call(b, TENSOR_INTS(0)),
				    r->factor * 1e-4);
		}
}

/* Rows that are loaded by 16 bytes give the bits of those that are not. */
static void alignment_does_not_change_results(void **state)
{
	static const int64_t lengths[] = { 3, 64, 300 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(reductions) * ARRAY_SIZE(dtypes) * 3; i++)
		tensor_scope {
			const struct reduction *r = &reductions[i / 3 / ARRAY_SIZE(dtypes)];
			const enum tensor_dtype d = dtypes[i / 3 % ARRAY_SIZE(dtypes)];
			const int64_t n = lengths[i % 3];
			tensor *all, *odd, *even;

			if (r->floats && d < TENSOR_F16)
				continue;
			all = on_cuda(pseudo_random(TENSOR_SHAPE(2 * n + 1), d));
			odd = ok(tensor_view(tensor_narrow(all, 0, 1, 2 * n), TENSOR_SHAPE(2, n)));
			even = ok(tensor_clone(odd));
			assert_near(r->call(odd, TENSOR_INTS(1)),
				    tensor_to(r->call(even, TENSOR_INTS(1)), CPU), 0);
		}
}

/* The first element, from which the sums of a variance begin, is far from the others, or all are equal. */
static void variances_of_rows_far_from_zero(void **state)
{
	NEED_DEVICE();
	for (int64_t n = 5; n < 50000; n = n * 9 + 4)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(5, n), TENSOR_F32), *wide;
			float *p = tensor_mutable_data(a);

			p[0] = 1e6f;
			for (int64_t i = n; i < 2 * n; i++)
				p[i] = 123456.7f;
			for (int64_t i = 2 * n; i < 3 * n; i++)
				p[i] = 1e6f + p[i] / 4;
			p[3 * n] = NAN;
			p[4 * n + 1] = INFINITY;
			wide = ok(tensor_to(a, F64));
			wide = ok(var(wide, TENSOR_INTS(1)));
			assert_near(var(on_cuda(a), TENSOR_INTS(1)), tensor_to(wide, F32), 1e-6);
		}
}

static void extremes_are_the_first_and_nan_wins(void **state)
{
	NEED_DEVICE();
	for (int64_t n = 7; n < 50000; n = n * 9 + 4)
		tensor_scope {
			tensor *a = ok(tensor_zeros(TENSOR_SHAPE(4, n), F32)), *g, *y[2], *v[2];
			float *p = tensor_mutable_data(a);

			p[n - 1] = p[n - 3] = 5;
			p[n + 2] = p[n + 5] = NAN;
			p[2 * n + 1] = -INFINITY;
			g = on_cuda(a);
			assert_done(tensor_max_dim(a, 1, false, &y[0], &y[1]));
			assert_done(tensor_max_dim(g, 1, false, &v[0], &v[1]));
			assert_near(v[0], y[0], 0);
			assert_near(v[1], y[1], 0);
			assert_done(tensor_min_dim(a, 1, true, &y[0], &y[1]));
			assert_done(tensor_min_dim(g, 1, true, &v[0], &v[1]));
			assert_near(v[0], y[0], 0);
			assert_near(v[1], y[1], 0);
			assert_near(tensor_max(g), tensor_max(a), 0);
			assert_near(tensor_min(tensor_slice(g, 0, 2, 4, 1)),
				    tensor_min(tensor_slice(a, 0, 2, 4, 1)), 0);
		}
}

static void logsumexp_of_rows_that_are_not_finite(void **state)
{
	NEED_DEVICE();
	for (int64_t n = 5; n < 50000; n = n * 9 + 4)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(5, n), TENSOR_F32);
			float *p = tensor_mutable_data(a);

			p[3] = INFINITY;
			p[n + 1] = NAN;
			for (int64_t i = 2 * n; i < 3 * n; i++)
				p[i] = -INFINITY;
			p[3 * n] = -INFINITY;
			assert_near(logsumexp(on_cuda(a), TENSOR_INTS(1)),
				    logsumexp(a, TENSOR_INTS(1)), 1e-5);
		}
}

/* A result of another dtype than the kernel gives is refused, not written as one of these. */
static void results_of_other_dtypes_are_correct_or_refused(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(3, 9), TENSOR_F32), *g = on_cuda(a);
		tensor *t = tensor_norm_dim_dtype(g, TENSOR_SCALAR(2), TENSOR_INTS(1), false,
						  TENSOR_F64);

		if (t)
			assert_near(t,
				    tensor_norm_dim_dtype(a, TENSOR_SCALAR(2), TENSOR_INTS(1),
							  false, TENSOR_F64),
				    1e-6);
		else
			assert_int_equal(tensor_last_error()->code, EOPNOTSUPP);
	}
}

static void empty_rows_give_the_start(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = ok(tensor_zeros(TENSOR_SHAPE(3, 0), F32)), *g = on_cuda(a);

		assert_near(any(g, TENSOR_INTS(1)), any(a, TENSOR_INTS(1)), 0);
		assert_near(all(g, TENSOR_INTS(1)), all(a, TENSOR_INTS(1)), 0);
		assert_near(prod(g, TENSOR_INTS(1)), prod(a, TENSOR_INTS(1)), 0);
		assert_near(var(g, TENSOR_INTS(1)), var(a, TENSOR_INTS(1)), 0);
		assert_near(any(g, TENSOR_INTS(0)), any(a, TENSOR_INTS(0)), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reductions_equal_the_cpu),
		cmocka_unit_test(long_rows_are_reduced_in_pieces),
		cmocka_unit_test(alignment_does_not_change_results),
		cmocka_unit_test(variances_of_rows_far_from_zero),
		cmocka_unit_test(extremes_are_the_first_and_nan_wins),
		cmocka_unit_test(logsumexp_of_rows_that_are_not_finite),
		cmocka_unit_test(results_of_other_dtypes_are_correct_or_refused),
		cmocka_unit_test(empty_rows_give_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
