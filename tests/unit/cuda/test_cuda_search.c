// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: searches, counts, modes, dot products and draws against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype dtypes[] = { TENSOR_U8,	TENSOR_I16, TENSOR_I64,
					    TENSOR_F32, TENSOR_F64, TENSOR_BF16 };

static tensor *searched(tensor *sequence, tensor *values, bool right, tensor *sorter)
{
	return ok(tensor_searchsorted_opt(sequence, values, false, right, NULL, sorter));
}

static void searches_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes) * 2; i++)
		tensor_scope {
			const enum tensor_dtype d = dtypes[i / 2];
			const bool right = i % 2;
			tensor *x = pseudo_random(TENSOR_SHAPE(3, 70), d), *sorted, *order, *row;
			tensor *v = pseudo_random(TENSOR_SHAPE(3, 41), d), *none, *across;

			assert_done(tensor_sort(x, -1, false, &sorted, &order));
			assert_near(searched(on_cuda(sorted), on_cuda(v), right, tensor_none),
				    searched(sorted, v, right, tensor_none), 0);
			across = ok(tensor_transpose(on_cuda(tensor_transpose(v, 0, 1)), 0, 1));
			assert_near(searched(on_cuda(x), across, right, on_cuda(order)),
				    searched(sorted, v, right, tensor_none), 0);
			row = ok(tensor_select(sorted, 0, 1));
			assert_near(tensor_bucketize_opt(on_cuda(v), on_cuda(row), true, right),
				    tensor_bucketize_opt(v, row, true, right), 0);
			none = ok(tensor_narrow(sorted, 1, 0, 0));
			assert_near(searched(on_cuda(none), on_cuda(v), right, tensor_none),
				    searched(none, v, right, tensor_none), 0);
		}
}

static void a_sorter_out_of_range_is_refused(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = on_cuda(pseudo_random(TENSOR_SHAPE(3), TENSOR_F32));
		tensor *order = on_cuda(integers(TENSOR_SHAPE(3), (int64_t[]){ 0, 3, 1 }));

		assert_fails(tensor_searchsorted_opt(x, x, false, false, NULL, order), EINVAL,
			     "sorter has 3 for 3 elements");
	}
}

static void counts_equal_the_cpu(void **state)
{
	static const enum tensor_dtype counted[] = { TENSOR_U8, TENSOR_I32, TENSOR_I64,
						     TENSOR_I16 };
	static const int64_t lengths[] = { 0, 1, 300, 9000 };

	NEED_DEVICE();
	for (size_t i = 0; i < 16; i++)
		tensor_scope {
			tensor *x = ok(tensor_abs(tensor_mul_scalar(
				pseudo_random(TENSOR_SHAPE(lengths[i / 4]), TENSOR_I64),
				TENSOR_SCALAR(i % 4 ? 1000 : 20))));

			x = ok(tensor_to(x, TENSOR_OPTIONS(.dtype = counted[i % 4])));
			assert_near(tensor_bincount(on_cuda(x), tensor_none, 7),
				    tensor_bincount(x, tensor_none, 7), 0);
		}
	tensor_scope {
		tensor *x = integers(TENSOR_SHAPE(2), (int64_t[]){ 4, -3 });

		assert_fails(tensor_bincount(on_cuda(x), tensor_none, 0), EINVAL,
			     "must not be negative, got -3");
	}
}

static void modes_equal_the_cpu_in(tensor *x, int dim)
{
	tensor *y[2], *g[2];

	x = ok(tensor_to(tensor_floor(tensor_to(x, F32)), OF(tensor_dtype(x))));
	if (tensor_dtype(x) >= TENSOR_F32)
		ok(tensor_fill_(tensor_slice(x, dim, 2, tensor_size(x, dim), 3),
				TENSOR_SCALAR(NAN)));
	assert_done(tensor_mode(x, dim, dim == 1, &y[0], &y[1]));
	assert_done(tensor_mode(on_cuda(x), dim, dim == 1, &g[0], &g[1]));
	assert_near(g[0], y[0], 0);
	assert_near(g[1], y[1], 0);
}

static void modes_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			modes_equal_the_cpu_in(pseudo_random(TENSOR_SHAPE(2, 300, 2), dtypes[i]),
					       1);
			modes_equal_the_cpu_in(pseudo_random(TENSOR_SHAPE(2, 3, 9), dtypes[i]), 2);
			modes_equal_the_cpu_in(pseudo_random(TENSOR_SHAPE(5, 3), dtypes[i]), 0);
		}
}

static void dot_products_equal_the_cpu(void **state)
{
	static const enum tensor_dtype all[] = { TENSOR_I32, TENSOR_I64,  TENSOR_F32, TENSOR_F64,
						 TENSOR_F16, TENSOR_BF16, TENSOR_U8 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(all) * 3; i++)
		tensor_scope {
			const enum tensor_dtype d = all[i / 3];
			const int64_t n = (int64_t[]){ 0, 33, 9001 }[i % 3];
			tensor *a = pseudo_random(TENSOR_SHAPE(2 * n), d);
			tensor *b = pseudo_random(TENSOR_SHAPE(n), d);

			a = ok(tensor_slice(a, 0, 0, 2 * n, 2));
			assert_near(tensor_dot(on_cuda(a), on_cuda(b)), tensor_dot(a, b),
				    100 * tolerance(d));
		}
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(50, 2), TENSOR_F32), *b, *g, *y;

		a = ok(tensor_view_as_complex(a));
		b = ok(tensor_mul_scalar(a, tensor_scalar_complex(1, 2)));
		g = ok(tensor_vdot(on_cuda(a), on_cuda(b)));
		y = ok(tensor_vdot(a, b));
		assert_near(tensor_view_as_real(g), tensor_view_as_real(y), 1e-4);
	}
}

/* A mean divides by counts. */
static void scattered_means_equal_the_cpu(void **state)
{
	static const enum tensor_dtype all[] = { TENSOR_I32, TENSOR_F32, TENSOR_F64, TENSOR_BF16 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		tensor_scope {
			tensor *x = pseudo_random(TENSOR_SHAPE(9, 5), all[i]);
			tensor *from = pseudo_random(TENSOR_SHAPE(20, 5), all[i]);
			tensor *index = ok(tensor_remainder_scalar(
				pseudo_random(TENSOR_SHAPE(20, 5), TENSOR_I64), TENSOR_SCALAR(9)));

			assert_near(tensor_scatter_reduce(on_cuda(x), 0, on_cuda(index),
							  on_cuda(from), "mean"),
				    tensor_scatter_reduce(x, 0, index, from, "mean"),
				    2 * tolerance(all[i]));
		}
}

static tensor *drawn(tensor *weights, int64_t k, bool replacement)
{
	tensor_manual_seed(11);
	return ok(tensor_multinomial_opt(weights, k, replacement, NULL));
}

static void draws_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (int i = 0; i < 4; i++)
		tensor_scope {
			const bool replacement = i % 2;
			tensor *w = pseudo_random(TENSOR_SHAPE(3, 600),
						  i < 2 ? TENSOR_F32 : TENSOR_F64);

			w = ok(tensor_clamp_min(w, TENSOR_SCALAR(0)));
			assert_near(drawn(on_cuda(w), 100, replacement), drawn(w, 100, replacement),
				    0);
			assert_near(drawn(on_cuda(tensor_select(w, 0, 1)), 1, replacement),
				    drawn(tensor_select(w, 0, 1), 1, replacement), 0);
		}
}

static void wrong_weights_are_refused(void **state)
{
	static const struct {
		double value;
		const char *text;
	} wrong[] = { { -1, "not negative" }, { NAN, "finite" }, { 0, "fewer weights" } };

	NEED_DEVICE();
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
	for (int i = 0; i < 3; i++)
		tensor_scope {
			tensor *w = ok(tensor_ones(TENSOR_SHAPE(2, 5), F32));

			ok(tensor_fill_(tensor_narrow(tensor_select(w, 0, 1), 0, 1, 2),
					TENSOR_SCALAR(wrong[i].value)));
			assert_fails(tensor_multinomial(on_cuda(w), 4, false), EINVAL,
				     wrong[i].text);
		}
	tensor_scope {
		assert_fails(tensor_multinomial(on_cuda(ok(tensor_zeros(TENSOR_SHAPE(5), F32))), 1,
						true),
			     EINVAL, "a finite sum");
	}
	tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(searches_equal_the_cpu),
		cmocka_unit_test(a_sorter_out_of_range_is_refused),
		cmocka_unit_test(counts_equal_the_cpu),
		cmocka_unit_test(modes_equal_the_cpu),
		cmocka_unit_test(dot_products_equal_the_cpu),
		cmocka_unit_test(scattered_means_equal_the_cpu),
		cmocka_unit_test(draws_equal_the_cpu),
		cmocka_unit_test(wrong_weights_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
