// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* softmax, log_softmax and their gradients against plain loops in f64. */
#include "check.h"

/* Pseudo-random values between -4 and 4. */
static tensor *numbers(tensor_ints shape, tensor_options options, unsigned seed)
{
	tensor *t = ok(tensor_zeros(shape, F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (double)((i + seed) * 2654435761u % 8009) / 1001 - 4;
	return ok(tensor_to(t, options));
}

/* Computes softmax or its logarithm of n elements that are `step` apart. */
static void line_by_hand(double *v, int64_t n, int64_t step, bool log)
{
	double max = -INFINITY, sum = 0;

	for (int64_t i = 0; i < n; i++)
		max = v[i * step] > max ? v[i * step] : max;
	for (int64_t i = 0; i < n; i++)
		sum += exp(v[i * step] - max);
	for (int64_t i = 0; i < n; i++) {
		double x = v[i * step] - max - (double)logl(sum);

		v[i * step] = log ? x : exp(x);
	}
}

static void backward_by_hand(double *g, const double *y, int64_t n, int64_t step, bool log)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += log ? g[i * step] : g[i * step] * y[i * step];
	for (int64_t i = 0; i < n; i++)
		g[i * step] = log ? g[i * step] - exp(y[i * step]) * sum :
				    (g[i * step] - sum) * y[i * step];
}

/* The same for all lines along `dim` of row-major values in the shape of t. */
static void lines_by_hand(const tensor *t, int dim, double *v, const double *y, bool log)
{
	const int64_t *size = tensor_sizes(t);
	int64_t n = size[dim], step = 1;

	for (int d = dim + 1; d < tensor_dim(t); d++)
		step *= size[d];
	for (int64_t i = 0; i < tensor_numel(t); i++) {
		if (i / step % n)
			continue;
		if (y)
			backward_by_hand(v + i, y + i, n, step, log);
		else
			line_by_hand(v + i, n, step, log);
	}
}

static tensor *forward(tensor *t, int dim, bool log)
{
	return ok(log ? tensor_log_softmax(t, dim) : tensor_softmax(t, dim));
}

static void check_softmax(tensor *t, tensor *grad, int dim, bool log)
{
	double tolerance = tensor_dtype(t) == TENSOR_F64 ? 1e-13 : 3e-6;
	double *want = values_of(t), *g = values_of(grad);
	tensor *y = forward(t, dim, log), *back;

	lines_by_hand(t, dim, want, NULL, log);
	check_values_(y, want, tensor_numel(t), tolerance, __FILE__, __LINE__);
	back = ok(log ? tensor_log_softmax_backward(grad, y, dim) :
			tensor_softmax_backward(grad, y, dim));
	lines_by_hand(t, dim, g, want, log);
	check_values_(back, g, tensor_numel(t), tolerance * 300, __FILE__, __LINE__);
	free(want);
	free(g);
}

static void every_size_and_layout_agrees_with_plain_loops(void **state)
{
	static const int64_t shapes[][3] = { { 1, 1, 1 },   { 4, 4, 1 },     { 2, 3, 4 },
					     { 5, 31, 16 }, { 3, 33, 17 },   { 2, 5, 300 },
					     { 7, 513, 2 }, { 2, 1025, 40 }, { 1, 2, 2000 } };

	for (size_t k = 0; k < ARRAY_SIZE(shapes); k++)
		for (int way = 0; way < 16; way++)
			tensor_scope {
				tensor_options o = way & 1 ? F64 : F32;
				tensor *t = numbers((tensor_ints){ shapes[k], 3 }, o, 0);
				tensor *g = numbers((tensor_ints){ shapes[k], 3 }, o, 777);

				if (way & 2) {
					t = ok(tensor_transpose(t, 0, 2));
					g = ok(tensor_transpose(g, 0, 2));
				}
				if (way & 4)
					g = ok(tensor_expand(ok(tensor_narrow(g, 1, 0, 1)),
							     tensor_shape(t)));
				for (int dim = 0; dim < 3; dim++)
					check_softmax(t, g, dim, way & 8);
			}
}

static void strides_and_negative_strides_agree(void **state)
{
	tensor_scope {
		tensor *whole = numbers(TENSOR_INTS(6, 80), F32, 5);
		tensor *t = ok(tensor_slice(whole, 1, 1, 80, 2));
		tensor *back =
			ok(tensor_as_strided(whole, TENSOR_INTS(6, 80), TENSOR_INTS(80, -1), 79));

		for (int dim = 0; dim < 2; dim++)
			for (int log = 0; log < 2; log++) {
				check_softmax(t, t, dim, log);
				check_softmax(back, whole, dim, log);
			}
	}
}

static void large_numbers_do_not_overflow(void **state)
{
	tensor_scope {
		const float v[] = { 1000, 999, -1000, -INFINITY };
		tensor *t = ok(tensor_from_data(v, TENSOR_INTS(1, 4), F32));

		assert_values(tensor_softmax(t, 1), 1e-7, 1 / (1 + exp(-1)), 1 / (1 + exp(1)), 0,
			      0);
		assert_values(tensor_log_softmax(t, 1), 2e-4, -log1p(exp(-1)), -log1p(exp(1)),
			      -2000 - log1p(exp(-1)), -INFINITY);
		assert_values(tensor_softmax(ok(tensor_t(t)), 0), 1e-7, 1 / (1 + exp(-1)),
			      1 / (1 + exp(1)), 0, 0);
	}
}

static void lines_with_nan_or_infinity_are_nan(void **state)
{
	for (int n = 3; n < 700; n += 231)
		tensor_scope {
			tensor *t = numbers(TENSOR_INTS(3, n), F32, 1), *y;

			ok(tensor_fill_(ok(tensor_select(t, 0, 0)), TENSOR_SCALAR(-INFINITY)));
			ok(tensor_fill_(ok(tensor_narrow(ok(tensor_select(t, 0, 2)), 0, n - 1, 1)),
					TENSOR_SCALAR(NAN)));
			for (int way = 0; way < 4; way++) {
				y = way & 1 ? forward(ok(tensor_contiguous(ok(tensor_t(t)))), 0,
						      way & 2) :
					      ok(tensor_t(forward(t, 1, way & 2)));
				for (int i = 0; i < 3; i++) {
					double first, last;

					assert_done(tensor_at(y, TENSOR_INTS(0, i), &first));
					assert_done(tensor_at(y, TENSOR_INTS(-1, i), &last));
					assert_true(isnan(first) == (i != 1));
					assert_true(isnan(last) == (i != 1));
				}
			}
		}
}

static void empty_and_zero_dim_tensors_keep_their_shape(void **state)
{
	tensor_scope {
		tensor *zero = ok(tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(3.0), F32)), *y;

		y = ok(tensor_softmax(zero, -1));
		assert_values(y, 0, 1);
		assert_int_equal(tensor_dim(y), 0);
		assert_values(tensor_log_softmax(zero, 0), 0, 0);
		assert_values(tensor_softmax_backward(zero, y, 0), 0, 0);
		assert_shape(ok(tensor_softmax(ok(tensor_empty(TENSOR_INTS(0, 3), F32)), 1)), 0, 3);
		assert_shape(ok(tensor_softmax(ok(tensor_empty(TENSOR_INTS(3, 0), F32)), 1)), 3, 0);
	}
}

static void dtype_argument_is_the_dtype_of_the_computation(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2)), *i = ok(tensor_arange(TENSOR_SCALAR(2), I64));
		tensor *y = ok(tensor_softmax_opt(i, 0, TENSOR_F64));

		assert_int_equal(tensor_dtype(y), TENSOR_F64);
		assert_values(y, 1e-16, 1 / (1 + exp(1)), 1 / (1 + exp(-1)));
		assert_fails(tensor_softmax(i, 0), EINVAL, "floating dtype is needed, got i64");
		assert_fails(tensor_softmax(t, 1), ERANGE, "out of range");
		assert_fails(tensor_log_softmax(t, -2), ERANGE, "log_softmax");
		assert_fails(tensor_softmax_backward(t, y, 0), EINVAL, "grad_output");
	}
}

/* The f16 or bf16 result is the rounded f32 result, within one unit in the last place. */
static void assert_rounded(tensor *half, tensor *single, double unit)
{
	double *a = values_of(half), *b = values_of(single);

	for (int64_t i = 0; i < tensor_numel(half); i++)
		assert_true(fabs(a[i] - b[i]) <= unit * fabs(b[i]) + 1e-6);
	free(a);
	free(b);
}

static void f16_and_bf16_are_the_rounded_f32_result(void **state)
{
	/* Lines above 8192 elements are converted in blocks. */
	static const int64_t sizes[] = { 1, 7, 16, 100, 513, 8192, 8193, 12289 };

	for (int way = 0; way < 4 * 8; way++)
		tensor_scope {
			bool log = way & 1, brain = way & 2;
			tensor_options o = { .dtype = brain ? TENSOR_BF16 : TENSOR_F16 };
			tensor *t = numbers(TENSOR_INTS(6, sizes[way / 4]), o, 3);
			/* Positive: the sum of a long line is great beside its terms. */
			tensor *g = ok(tensor_abs(numbers(TENSOR_INTS(6, sizes[way / 4]), o, 99)));
			tensor *t32 = ok(tensor_to(t, F32)), *g32 = ok(tensor_to(g, F32));
			double unit = brain ? 0x1p-7 : 0x1p-10;

			for (int dim = 0; dim < 2; dim++) {
				tensor *y = forward(t, dim, log), *y32 = ok(tensor_to(y, F32));

				assert_rounded(y, forward(t32, dim, log), unit);
				assert_rounded(ok(log ? tensor_log_softmax_backward(g, y, dim) :
							tensor_softmax_backward(g, y, dim)),
					       ok(log ? tensor_log_softmax_backward(g32, y32, dim) :
							tensor_softmax_backward(g32, y32, dim)),
					       unit);
			}
		}
}

/* Lines along the middle dimension of f16 and bf16: tiles of converted lines up to 512 elements. */
static void f16_and_bf16_across_contiguous_lines_are_the_rounded_f32_result(void **state)
{
	static const int64_t shapes[][3] = { { 3, 17, 85 },  { 2, 512, 40 }, { 2, 513, 40 },
					     { 1, 3, 2900 }, { 4, 200, 5 },  { 5, 21, 3 } };

	for (int way = 0; way < 4 * 6; way++)
		tensor_scope {
			bool log = way & 1, brain = way & 2;
			tensor_options o = { .dtype = brain ? TENSOR_BF16 : TENSOR_F16 };
			const int64_t *n = shapes[way / 4];
			tensor *t = numbers(TENSOR_INTS(n[0], n[1], n[2]), o, 3);
			tensor *g = ok(tensor_abs(numbers(TENSOR_INTS(n[0], n[1], n[2]), o, 99)));
			tensor *t32 = ok(tensor_to(t, F32)), *g32 = ok(tensor_to(g, F32));
			tensor *y = forward(t, 1, log), *y32 = ok(tensor_to(y, F32));
			double unit = brain ? 0x1p-7 : 0x1p-10;

			assert_rounded(y, forward(t32, 1, log), unit);
			assert_rounded(ok(log ? tensor_log_softmax_backward(g, y, 1) :
						tensor_softmax_backward(g, y, 1)),
				       ok(log ? tensor_log_softmax_backward(g32, y32, 1) :
						tensor_softmax_backward(g32, y32, 1)),
				       unit);
		}
}

static void check_bits_on_one_and_two_threads(tensor_options o, int64_t size)
{
	int before = tensor_get_num_threads();

	for (int dim = 0; dim < 2; dim++)
		tensor_scope {
			tensor *t = numbers(TENSOR_INTS(300, 1001), o, 3), *y[2], *g[2];

			for (int n = 0; n < 2; n++) {
				assert_done(tensor_set_num_threads(n + 1));
				y[n] = ok(tensor_softmax(t, dim));
				g[n] = ok(tensor_softmax_backward(t, y[n], dim));
			}
			assert_memory_equal(tensor_data(y[0]), tensor_data(y[1]),
					    300 * 1001 * size);
			assert_memory_equal(tensor_data(g[0]), tensor_data(g[1]),
					    300 * 1001 * size);
		}
	tensor_set_num_threads(before);
}

static void same_bits_on_one_and_two_threads(void **state)
{
	check_bits_on_one_and_two_threads(F32, 4);
	check_bits_on_one_and_two_threads((tensor_options){ .dtype = TENSOR_BF16 }, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_and_layout_agrees_with_plain_loops),
		cmocka_unit_test(strides_and_negative_strides_agree),
		cmocka_unit_test(large_numbers_do_not_overflow),
		cmocka_unit_test(lines_with_nan_or_infinity_are_nan),
		cmocka_unit_test(empty_and_zero_dim_tensors_keep_their_shape),
		cmocka_unit_test(dtype_argument_is_the_dtype_of_the_computation),
		cmocka_unit_test(f16_and_bf16_are_the_rounded_f32_result),
		cmocka_unit_test(f16_and_bf16_across_contiguous_lines_are_the_rounded_f32_result),
		cmocka_unit_test(same_bits_on_one_and_two_threads),
	};

	return cmocka_run_group_tests_name("softmax", tests, NULL, NULL);
}
