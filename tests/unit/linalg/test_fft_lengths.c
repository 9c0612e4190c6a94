// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fourier transforms of all kinds of lengths and layouts against their defining sums: each length
 * is computed in other ways for one line, for many, and for lines that are side by side in memory.
 */
#include "check.h"

#include <tensor/index.h>

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

/* Numbers in [-0.5, 0.5) that depend on the seed. */
static tensor *noise(tensor_ints shape, enum tensor_dtype dtype, uint64_t seed)
{
	tensor *t = ok(tensor_empty(shape, F64));
	double *v = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		v[i] = (double)(seed >> 40) / (1 << 24) - 0.5;
	}
	return ok(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype)));
}

static tensor *complex_noise(tensor_ints shape, bool f64, uint64_t seed)
{
	int64_t sizes[8];

	memcpy(sizes, shape.data, (size_t)shape.len * sizeof(*sizes));
	sizes[shape.len] = 2;
	return ok(tensor_view_as_complex(
		noise((tensor_ints){ sizes, shape.len + 1 }, f64 ? TENSOR_F64 : TENSOR_F32, seed)));
}

/* Real and imaginary parts of all elements as f64; the caller frees them. */
static double *parts_of(tensor *t)
{
	double *v;

	tensor_scope
		v = values_of(ok(tensor_view_as_real(ok(tensor_contiguous(t)))));
	return v;
}

/* Relative error of got, in the Euclidean norm, as the forward transform of x. */
static double error_of(const double *x, const double *got, int64_t n)
{
	double *root = malloc((size_t)n * 2 * sizeof(*root)), error = 0, norm = 0;

	for (int64_t k = 0; k < n; k++) {
		root[2 * k] = cos(2 * M_PI * (double)k / (double)n);
		root[2 * k + 1] = -sin(2 * M_PI * (double)k / (double)n);
	}
	for (int64_t k = 0; k < n; k++) {
		long double re = 0, im = 0;

		for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n) {
			re += x[2 * j] * root[2 * at] - x[2 * j + 1] * root[2 * at + 1];
			im += x[2 * j] * root[2 * at + 1] + x[2 * j + 1] * root[2 * at];
		}
		error += pow(got[2 * k] - (double)re, 2) + pow(got[2 * k + 1] - (double)im, 2);
		norm += (double)(re * re + im * im);
	}
	free(root);
	return sqrt(error / (norm + 1e-300));
}

/* Fails unless a and b, of the same shape, differ by at most `limit` anywhere. */
static void check_near(tensor *a, tensor *b, double limit)
{
	double far;

	assert_true(tensor_numel(ok(a)) == tensor_numel(ok(b)));
	if (!tensor_numel(a))
		return;
	assert_done(tensor_item(ok(tensor_max(tensor_abs(tensor_sub(a, b)))), &far));
	if (!(far <= limit))
		fail_msg("values differ by %g, limit %g", far, limit);
}

/* Complex and real transforms of `lines` lines of n elements that are `inner` elements apart. */
static void check_length(int64_t lines, int64_t n, int64_t inner, bool f64)
{
	double limit = f64 ? 1e-14 : 2e-6, each = limit * sqrt((double)n) * 4;
	enum tensor_dtype real = f64 ? TENSOR_F64 : TENSOR_F32;

	tensor_scope {
		tensor *x = complex_noise(TENSOR_INTS(lines, n, inner), f64, (uint64_t)n);
		tensor *y = ok(tensor_fft_c2c(x, TENSOR_INTS(1), 0, true)), *r, *whole, *half;
		int64_t line = n * 7 % lines, place = n * 5 % inner;
		double *in = parts_of(tensor_select(tensor_select(x, 2, place), 0, line));
		double *out = parts_of(tensor_select(tensor_select(y, 2, place), 0, line));
		double error = error_of(in, out, n);

		if (!(error < limit))
			fail_msg("error %g: %lld lines of %lld, %lld apart", error,
				 (long long)lines, (long long)n, (long long)inner);
		free(in);
		free(out);
		check_near(tensor_fft_c2c(y, TENSOR_INTS(1), 2, false), x, each);
		r = noise(TENSOR_INTS(lines, n, inner), real, (uint64_t)n + 1);
		whole = ok(tensor_fft_c2c(tensor_to(r, TENSOR_OPTIONS(.dtype = tensor_dtype(x))),
					  TENSOR_INTS(1), 0, true));
		half = ok(tensor_fft_r2c(r, TENSOR_INTS(1), 0, true));
		check_near(half, tensor_narrow(whole, 1, 0, n / 2 + 1), each);
		check_near(tensor_fft_r2c(r, TENSOR_INTS(1), 0, false), whole, each);
		check_near(tensor_fft_c2r(half, TENSOR_INTS(1), 2, n), r, each);
	}
}

static void every_short_length_equals_its_definition(void **state)
{
	static const int64_t lines[] = { 1, 5, 37, 3, 2 }, inner[] = { 1, 1, 1, 3, 21 };

	for (int64_t n = 1; n <= 130; n++)
		for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
			check_length(lines[i], n, inner[i], false);
			check_length(lines[i], n, inner[i], true);
		}
}

static void random_lengths_equal_their_definition(void **state)
{
	uint64_t seed = 17;

	for (int i = 0; i < 60; i++) {
		int64_t n;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		n = 131 + (int64_t)(seed >> 33) % 1870;
		check_length(i % 3 == 1 ? 18 : 1, n, i % 3 == 2 ? 9 : 1, i & 1);
	}
	check_length(1, 4096, 1, false);
	check_length(1, 4093, 1, true);
	check_length(1, 2 * 2503, 1, false);
}

/*
 * Primes whose predecessors have small factors, also twice them, for which real lines are half as long; and lines that are
 * matrices because many of them are a multiple of a page apart.
 */
static void primes_and_long_lines_of_batches_equal_their_definition(void **state)
{
	static const int64_t lengths[] = { 157,	 163,  251, 257,  2 * 337, 509,
					   1009, 1153, 512, 1024, 1536 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		for (int f64 = 0; f64 < 2; f64++) {
			check_length(1, lengths[i], 1, f64);
			check_length(18, lengths[i], 1, f64);
			check_length(9, lengths[i], 2, f64);
		}
}

/* The transform of an impulse at j is the roots exp(-2 pi i j k / n), which are known exactly. */
static void long_lines_have_exact_roots(void **state)
{
	static const int64_t lengths[] = { 1 << 17, 1 << 20, 3 * 5 * 7 * 11 * 13,
					   360360,  100003,  65537 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		tensor_scope {
			int64_t n = lengths[i], j = n / 3;
			tensor *x = ok(
				tensor_zeros(TENSOR_INTS(n), TENSOR_OPTIONS(.dtype = TENSOR_C64)));
			double *got, far = 0;

			((float *)tensor_mutable_data(x))[2 * j] = 1;
			got = parts_of(ok(tensor_fft_c2c(x, TENSOR_INTS(0), 0, true)));
			for (int64_t k = 0; k < n; k++) {
				double angle = -2 * M_PI * (double)(j * k % n) / (double)n;

				far = fmax(far, fabs(got[2 * k] - cos(angle)));
				far = fmax(far, fabs(got[2 * k + 1] - sin(angle)));
			}
			free(got);
			assert_true(far < 2e-6);
		}
}

static void views_are_transformed_like_their_copies(void **state)
{
	tensor_scope {
		tensor *x = complex_noise(TENSOR_INTS(12, 40, 18), true, 3), *v[4];

		v[0] = ok(tensor_transpose(x, 0, 2));
		v[1] = ok(tensor_slice(x, 1, 3, 40, 3));
		v[2] = ok(tensor_expand(ok(tensor_narrow(x, 2, 4, 1)), TENSOR_INTS(12, 40, 6)));
		v[3] = ok(tensor_index(x, TENSOR_ALL, TENSOR_SLICE(38, 4, -1),
				       TENSOR_SLICE(17, 0, -2)));
		for (size_t i = 0; i < ARRAY_SIZE(v); i++)
			for (int d = 0; d < 3; d++)
				assert_same(tensor_fft_c2c(v[i], TENSOR_INTS(d), 1, true),
					    tensor_fft_c2c(tensor_contiguous(v[i]), TENSOR_INTS(d),
							   1, true));
		assert_same(
			tensor_fft_r2c(tensor_slice(tensor_real(x), 0, 1, 12, 2), TENSOR_INTS(0, 1),
				       0, true),
			tensor_fft_r2c(tensor_contiguous(tensor_slice(tensor_real(x), 0, 1, 12, 2)),
				       TENSOR_INTS(0, 1), 0, true));
	}
}

static void results_may_be_given_and_may_be_the_input(void **state)
{
	tensor_scope {
		tensor *x = complex_noise(TENSOR_INTS(6, 50), false, 5), *want, *out;

		want = ok(tensor_fft_c2c(x, TENSOR_INTS(0, 1), 1, false));
		out = ok(tensor_transpose(
			ok(tensor_empty(TENSOR_INTS(50, 6), TENSOR_OPTIONS(.dtype = TENSOR_C64))),
			0, 1));
		assert_true(tensor_fft_c2c_out(out, x, TENSOR_INTS(0, 1), 1, false) == out);
		assert_same(ok(tensor_contiguous(out)), want);
		assert_true(tensor_fft_c2c_out(x, x, TENSOR_INTS(0, 1), 1, false) == x);
		assert_same(x, want);
	}
}

static void empty_batches_are_transformed(void **state)
{
	tensor_scope {
		tensor *x =
			ok(tensor_empty(TENSOR_INTS(0, 8), TENSOR_OPTIONS(.dtype = TENSOR_C64)));

		assert_shape(ok(tensor_fft_c2c(x, TENSOR_INTS(1), 0, true)), 0, 8);
		assert_shape(ok(tensor_fft_c2c(x, TENSOR_INTS(0), 0, true)), 0, 8);
		assert_shape(ok(tensor_fft_c2r(x, TENSOR_INTS(1), 0, 15)), 0, 15);
		assert_shape(ok(tensor_fft_r2c(tensor_real(x), TENSOR_INTS(1), 0, true)), 0, 5);
	}
}

static void lengths_and_norms_that_are_given(void **state)
{
	static const char *const norms[] = { "backward", "ortho", "forward" };
	static const double scale[] = { 1, 1 / 5.0, 1 / 25.0 };

	tensor_scope {
		tensor *x = complex_noise(TENSOR_INTS(3, 20), true, 7), *padded;

		padded = ok(tensor_constant_pad_nd(x, TENSOR_INTS(0, 5), tensor_scalar_float(0)));
		for (int i = 0; i < 3; i++) {
			check_near(
				tensor_fft_fft(x, 25, 1, norms[i]),
				tensor_mul_scalar(tensor_fft_c2c(padded, TENSOR_INTS(1), 0, true),
						  tensor_scalar_float(scale[i])),
				1e-13);
			check_near(tensor_fft_ifft(tensor_fft_fft(x, TENSOR_NONE, 1, norms[i]),
						   TENSOR_NONE, 1, norms[i]),
				   x, 1e-14);
			check_near(tensor_fft_hfft(tensor_fft_ihfft(tensor_real(x), TENSOR_NONE, 0,
								    norms[i]),
						   3, 0, norms[i]),
				   tensor_real(x), 1e-14);
		}
	}
}

static void threads_do_not_change_bits(void **state)
{
	static const int64_t shapes[][2] = { { 1, 1 << 16 }, { 1, 10007 }, { 3, 30030 },
					     { 64, 1000 },   { 257, 96 },  { 40, 211 },
					     { 20, 1009 },   { 3, 2017 },  { 36, 1024 } };
	int threads = tensor_get_num_threads();

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		for (int d = 0; d < 2; d++)
			tensor_scope {
				tensor_ints shape = TENSOR_INTS(shapes[i][0], shapes[i][1]);
				tensor *x = noise(shape, TENSOR_F32, i), *one, *back;

				assert_done(tensor_set_num_threads(1));
				one = ok(tensor_fft_r2c(x, TENSOR_INTS(d), 0, true));
				back = ok(tensor_fft_c2r(one, TENSOR_INTS(d), 1, shapes[i][d]));
				assert_done(tensor_set_num_threads(4));
				assert_same(tensor_fft_r2c(x, TENSOR_INTS(d), 0, true), one);
				assert_same(tensor_fft_c2r(one, TENSOR_INTS(d), 1, shapes[i][d]),
					    back);
			}
	assert_done(tensor_set_num_threads(threads));
}

/* More lengths than plans are kept. */
static void *transform_many_lengths(void *failed)
{
	for (int round = 0; round < 3; round++)
		for (int64_t n = 100; n < 190; n++)
			tensor_scope {
				tensor *x = noise(TENSOR_INTS(n), TENSOR_F64, (uint64_t)n);
				tensor *y =
					tensor_fft_c2r(tensor_fft_r2c(x, TENSOR_INTS(0), 0, true),
						       TENSOR_INTS(0), 2, n);
				double far = 1;

				if (!y ||
				    tensor_item(tensor_max(tensor_abs(tensor_sub(x, y))), &far) ||
				    !(far < 1e-13))
					atomic_store((atomic_bool *)failed, true);
			}
	return NULL;
}

/* Tables of 10 to 20 MiB each, for lengths that are prime or have no small factors. */
static void plans_of_long_lines_replace_each_other(void **state)
{
	for (int round = 0; round < 2; round++)
		for (int64_t n = 150001; n < 150100; n += 9)
			tensor_scope {
				tensor *x = complex_noise(TENSOR_INTS(n), true, (uint64_t)n), *y;

				y = ok(tensor_fft_c2c(x, TENSOR_INTS(0), 0, true));
				check_near(tensor_fft_c2c(y, TENSOR_INTS(0), 2, false), x, 1e-13);
			}
}

/* Of 40 plans with 64 to 128 KiB of tables each, which the allocator of C keeps. */
static void plans_are_freed_by_a_trim(void **state)
{
	size_t before, full;

	NOT_WATCHED(); /* its allocator has no counts */
	tensor_cache_trim();
	before = mallinfo2().uordblks;
	for (int64_t n = 8000; n < 8040; n++)
		tensor_scope
			ok(tensor_fft_c2c(complex_noise(TENSOR_INTS(n), true, 7), TENSOR_INTS(0), 0,
					  true));
	full = mallinfo2().uordblks;
	assert_true(full > before + (1 << 20));
	tensor_cache_trim();
	assert_true(mallinfo2().uordblks < before + (1 << 19));
}

static void threads_share_plans(void **state)
{
	atomic_bool failed = false;
	pthread_t t[4];

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, transform_many_lengths, &failed), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	assert_false(failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_short_length_equals_its_definition),
		cmocka_unit_test(random_lengths_equal_their_definition),
		cmocka_unit_test(primes_and_long_lines_of_batches_equal_their_definition),
		cmocka_unit_test(long_lines_have_exact_roots),
		cmocka_unit_test(views_are_transformed_like_their_copies),
		cmocka_unit_test(results_may_be_given_and_may_be_the_input),
		cmocka_unit_test(empty_batches_are_transformed),
		cmocka_unit_test(lengths_and_norms_that_are_given),
		cmocka_unit_test(threads_do_not_change_bits),
		cmocka_unit_test(plans_of_long_lines_replace_each_other),
		cmocka_unit_test(plans_are_freed_by_a_trim),
		cmocka_unit_test(threads_share_plans),
	};

	return cmocka_run_group_tests_name("fft_lengths", tests, NULL, NULL);
}
