// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of bf16 by tiles, with a C model of AMX on every processor that adds products of pairs
 * (main() sets TENSOR_CPU_TILES): sizes around those of tiles, chunks and panels, and every order of
 * the operands, against f64.
 */
#include "bf16.h"

#include <stdlib.h>

/* Freed memory, which kernels get next, has NaN. */
static void leave_nan(void)
{
	for (int64_t n = 1 << 10; n <= 1 << 22; n *= 4)
		tensor_scope
			ok(tensor_full(TENSOR_SHAPE(n), TENSOR_SCALAR(NAN), F32));
}

static tensor *sizes_of(tensor *a, tensor *b)
{
	return ok(tensor_matmul(ok(tensor_abs(in_f64(a))), ok(tensor_abs(in_f64(b)))));
}

static void check_product(tensor *c, tensor *a, tensor *b)
{
	if (!is_rounded_once(c, ok(tensor_matmul(in_f64(a), in_f64(b))), sizes_of(a, b)))
		fail_msg("m %lld, k %lld, n %lld", (long long)tensor_size(a, -2),
			 (long long)tensor_size(a, -1), (long long)tensor_size(b, -1));
}

static void sizes_around_tiles(void **state)
{
	static const int64_t m[] = { 8, 9, 16, 17, 31, 33, 48, 64, 65, 130 };
	static const int64_t k[] = { 1, 2, 31, 32, 33, 64, 511, 513, 1030 };
	static const int64_t n[] = { 1, 15, 16, 17, 32, 33, 47, 48, 49, 64, 97 };

	for (size_t i = 0; i < 10; i++)
		for (size_t j = 0; j < 9; j++)
			for (size_t l = 0; l < 11; l++)
				tensor_scope {
					tensor *a = bf16_values(TENSOR_SHAPE(m[i], k[j]));
					tensor *b = bf16_values(TENSOR_SHAPE(k[j], n[l]));

					if (!l)
						leave_nan();
					check_product(ok(tensor_mm(a, b)), a, b);
				}
}

static void transposed_operands(void **state)
{
	for (int order = 0; order < 8; order++)
		for (int64_t k = 62; k < 67; k++)
			tensor_scope {
				tensor *a = order & 1 ?
						    ok(tensor_t(bf16_values(TENSOR_SHAPE(k, 70)))) :
						    bf16_values(TENSOR_SHAPE(70, k));
				tensor *b = order & 2 ?
						    ok(tensor_t(bf16_values(TENSOR_SHAPE(50, k)))) :
						    bf16_values(TENSOR_SHAPE(k, 50));
				tensor *c =
					order & 4 ?
						ok(tensor_t(bf16_values(TENSOR_SHAPE(50, 70)))) :
						bf16_values(TENSOR_SHAPE(70, 50));

				ok(tensor_mm_out(c, a, b));
				check_product(c, a, b);
			}
}

static void strided_operands(void **state)
{
	tensor_scope {
		tensor *a = ok(tensor_slice(bf16_values(TENSOR_SHAPE(40, 150)), 1, 3, 150, 3));
		tensor *b = ok(tensor_slice(bf16_values(TENSOR_SHAPE(49, 120)), 1, 0, 120, 2));
		tensor *c = ok(tensor_slice(bf16_values(TENSOR_SHAPE(40, 120)), 1, 1, 120, 2));

		check_product(ok(tensor_mm(a, b)), a, b);
		ok(tensor_mm_out(c, a, b));
		check_product(c, a, b);
		check_product(ok(tensor_mm(ok(tensor_t(b)), ok(tensor_t(a)))), ok(tensor_t(b)),
			      ok(tensor_t(a)));
	}
}

static void batches_and_sums(void **state)
{
	tensor_scope {
		tensor *a = bf16_values(TENSOR_SHAPE(6, 33, 64)),
		       *b = bf16_values(TENSOR_SHAPE(6, 64, 37));
		tensor *bias = bf16_values(TENSOR_SHAPE(37)), *sum, *exact;

		check_product(ok(tensor_bmm(a, b)), a, b);
		a = ok(tensor_select(a, 0, 1));
		b = ok(tensor_select(b, 0, 2));
		sum = ok(tensor_addmm_opt(bias, a, b, TENSOR_SCALAR(2), TENSOR_SCALAR(-1)));
		exact = ok(tensor_addmm_opt(in_f64(bias), in_f64(a), in_f64(b), TENSOR_SCALAR(2),
					    TENSOR_SCALAR(-1)));
		assert_true(is_rounded_once(sum, exact, sizes_of(a, b)));
	}
}

static void results_have_the_same_bits_on_one_thread(void **state)
{
	int before = tensor_get_num_threads();

	tensor_scope {
		tensor *a = bf16_values(TENSOR_SHAPE(200, 300)),
		       *b = bf16_values(TENSOR_SHAPE(300, 400));
		tensor *many = ok(tensor_mm(a, b)), *one;

		assert_done(tensor_set_num_threads(1));
		one = ok(tensor_mm(a, b));
		assert_done(tensor_set_num_threads(before));
		assert_memory_equal(tensor_data(many), tensor_data(one), 200 * 400 * 2);
	}
}

/* Zeros that fill the last tile are not multiplied with what is not finite. */
static void not_finite_elements_stay_in_their_rows(void **state)
{
	tensor_scope {
		tensor *a = bf16_values(TENSOR_SHAPE(20, 35)),
		       *b = bf16_values(TENSOR_SHAPE(35, 20)), *c;
		double v;

		ok(tensor_fill_(ok(tensor_select(a, 0, 17)), TENSOR_SCALAR(INFINITY)));
		ok(tensor_fill_(ok(tensor_select(b, 1, 3)), TENSOR_SCALAR(NAN)));
		c = ok(tensor_mm(a, b));
		for (int64_t i = 0; i < 20; i++)
			for (int64_t j = 0; j < 20; j++) {
				assert_done(tensor_at(c, TENSOR_INTS(i, j), &v));
				assert_int_equal(isfinite(v), i != 17 && j != 3);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_around_tiles),
		cmocka_unit_test(transposed_operands),
		cmocka_unit_test(strided_operands),
		cmocka_unit_test(batches_and_sums),
		cmocka_unit_test(results_have_the_same_bits_on_one_thread),
		cmocka_unit_test(not_finite_elements_stay_in_their_rows),
	};

	setenv("TENSOR_CPU_TILES", "model", 0);
	return cmocka_run_group_tests_name("product_tiles", tests, NULL, NULL);
}
