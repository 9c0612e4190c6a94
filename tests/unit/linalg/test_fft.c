// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Fourier transforms against their defining sums, inverse transforms, and derivatives. */
#include "formulas.h"

/* The discrete Fourier transform of x by its definition. */
static void check_line(const double *x, const double *got, int64_t n, int64_t kept)
{
	for (int64_t k = 0; k < kept; k++) {
		double re = 0, im = 0;

		for (int64_t j = 0; j < n; j++) {
			double angle = -2 * M_PI * (double)(j * k % n) / (double)n;

			re += x[j] * cos(angle);
			im += x[j] * sin(angle);
		}
		assert_true(fabs(got[2 * k] - re) < 1e-9 && fabs(got[2 * k + 1] - im) < 1e-9);
	}
}

static void transform_of_every_length_equals_its_definition(void **state)
{
	static const int64_t lengths[] = { 1, 2, 3, 4, 5, 8, 12, 31, 35, 37, 64, 74, 101, 128, 210 };
	double x[210], got[2 * 210];

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		tensor_scope {
			int64_t n = lengths[i];
			tensor *t, *f;

			for (int64_t k = 0; k < n; k++)
				x[k] = sin(1.3 * (double)(k * k)) + 0.2;
			t = ok(tensor_from_data(x, TENSOR_INTS(n), F64));
			f = ok(tensor_fft_r2c(t, TENSOR_INTS(0), 0, true));
			assert_shape(f, n / 2 + 1);
			assert_done(tensor_copy_to(f, got, (n / 2 + 1) * 16));
			check_line(x, got, n, n / 2 + 1);
			f = ok(tensor_fft_fft(t, TENSOR_NONE, -1, NULL));
			assert_done(tensor_copy_to(f, got, n * 16));
			check_line(x, got, n, n);
		}
}

static void inverse_transform_restores_the_input(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_to(iota(0, TENSOR_INTS(3, 10, 7)), F64)), *f, *y;
		tensor_ints all = TENSOR_INTS(0, 2, 1);

		f = ok(tensor_fft_r2c(x, all, 1, true));
		assert_shape(f, 3, 6, 7);
		y = ok(tensor_fft_c2r(f, all, 1, 10));
		assert_values(tensor_max(tensor_abs(tensor_sub(x, y))), 1e-10, 0);
		f = ok(tensor_fft_c2c(tensor_fft_r2c(x, all, 0, false), all, 2, false));
		assert_values(tensor_max(tensor_abs(tensor_sub(tensor_to(f, F64), x))), 1e-10, 0);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(4, 4)),
		       *f = ok(tensor_fft_r2c(x, TENSOR_INTS(1), 0, true));

		assert_fails(tensor_fft_r2c(x, TENSOR_INTS(1, -1), 0, true) == NULL, EINVAL,
			     "named twice");
		assert_fails(tensor_fft_r2c(x, TENSOR_INTS(0), 3, true) == NULL, EINVAL,
			     "normalization");
		assert_fails(tensor_fft_r2c(f, TENSOR_INTS(0), 0, true) == NULL, EINVAL,
			     "must be f32 or f64");
		assert_fails(tensor_fft_c2c(x, TENSOR_INTS(0), 0, true) == NULL, EINVAL,
			     "must be complex");
		assert_fails(tensor_fft_c2r(f, TENSOR_INTS(1), 0, 7) == NULL, EINVAL,
			     "7 / 2 + 1 positions");
		assert_fails(tensor_fft_fft(x, 0, -1, NULL) == NULL, EINVAL,
			     "positions must be positive");
		assert_fails(tensor_fft_fft(x, -1, -1, NULL) == NULL, EINVAL, "got -1");
		assert_fails(tensor_fft_irfft(f, -1, -1, NULL) == NULL, EINVAL, "got -1");
		assert_fails(tensor_fft_fft(x, 3, -1, "other") == NULL, EINVAL, "got 'other'");
	}
}

static void real_transforms_convert_other_dtypes(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F16, TENSOR_BF16, TENSOR_F32,
						    TENSOR_F64, TENSOR_U8,   TENSOR_I64 };

	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 4));

		for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
			enum tensor_dtype dtype = dtypes[i],
					  result = dtype == TENSOR_F64 ? TENSOR_C128 : TENSOR_C64;
			tensor *y = ok(tensor_to(x, TENSOR_OPTIONS(.dtype = dtype))), *f;

			f = ok(tensor_fft_rfft(y, TENSOR_NONE, -1, NULL));
			assert_int_equal(tensor_dtype(f), result);
			assert_values(tensor_to(f, F32), 0, 10, -2, -2, 26, -2, -2);
			f = ok(tensor_fft_ihfft(y, TENSOR_NONE, -1, NULL));
			assert_int_equal(tensor_dtype(f), result);
			f = ok(tensor_fft_rfft2(y, TENSOR_NO_INTS, TENSOR_INTS(-2, -1), NULL));
			assert_int_equal(tensor_dtype(f), result);
		}
	}
}

CASE(fn_half, tensor_to(tensor_fft_r2c(a, TENSOR_INTS(0, 1), 1, true), F64))
CASE(fn_whole, tensor_to(tensor_fft_r2c(a, TENSOR_INTS(1), 0, false), F64))
/* The last dimension of two has an odd size, so that its last position counts twice too. */
CASE(fn_real_odd, tensor_fft_c2r(AS_COMPLEX(a), TENSOR_INTS(0, 1), 0, 5))
CASE(fn_real_even, tensor_fft_c2r(AS_COMPLEX(a), TENSOR_INTS(1, 0), 1, 4))
CASE(fn_real_odd_plane,
     tensor_fft_irfft2(AS_COMPLEX(a), TENSOR_INTS(3, 3), TENSOR_INTS(-2, -1), NULL))
CASE(fn_half_odd, AS_REAL(tensor_fft_r2c(a, TENSOR_INTS(-1, -2), 2, true)))
CASE(fn_there_and_back, tensor_fft_irfft(tensor_fft_rfft(a, 6, -1, NULL), 5, -1, "ortho"))

static const struct formula formulas[] = {
	ROW(half, 1, IN(1, 0, 2, 5)),
	ROW(whole, 1, IN_T(1, 0, 2, 4)),
	ROW(real_odd, 1, IN(1, 0, 3, 3, 2)),
	ROW(real_even, 1, IN(1, 0, 3, 2, 2)),
	ROW(real_odd_plane, 1, IN(1, 0, 2, 3, 2, 2)),
	ROW(half_odd, 1, IN_T(1, 0, 3, 5)),
	ROW(there_and_back, 1, IN(1, 0, 2, 5)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transform_of_every_length_equals_its_definition),
		cmocka_unit_test(inverse_transform_restores_the_input),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(real_transforms_convert_other_dtypes),
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("fft", tests, NULL, NULL);
}
