// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products of bf16 without the tiles of AMX (main() sets TENSOR_CPU_TILES and TENSOR_CPU_PAIRS), against f64: sums that one tile computes
 * and longer ones, rows of a that tiles read in place and rows that are packed.
 */
#include "bf16.h"

#include <stdlib.h>

static void check_product(tensor *c, tensor *a, tensor *b, const char *what)
{
	tensor *exact = ok(tensor_matmul(in_f64(a), in_f64(b)));
	tensor *sizes = ok(tensor_matmul(ok(tensor_abs(in_f64(a))), ok(tensor_abs(in_f64(b)))));

	if (!is_rounded_once(c, exact, sizes))
		fail_msg("%s, m %lld, k %lld, n %lld", what, (long long)tensor_size(a, -2),
			 (long long)tensor_size(a, -1), (long long)tensor_size(b, -1));
}

static void sizes_around_tiles_and_depths(void **state)
{
	static const int64_t m[] = { 1, 7, 9, 30, 64, 65, 131 };
	static const int64_t k[] = { 0, 1, 2, 31, 64, 511, 512, 513, 514 };
	static const int64_t n[] = { 1, 5, 16, 17, 48, 50, 64, 97 };

	for (size_t i = 0; i < sizeof(m) / sizeof(*m); i++)
		for (size_t j = 0; j < sizeof(k) / sizeof(*k); j++)
			for (size_t l = 0; l < sizeof(n) / sizeof(*n); l++)
				tensor_scope {
					tensor *a = bf16_values(TENSOR_SHAPE(m[i], k[j]));
					tensor *b = bf16_values(TENSOR_SHAPE(k[j], n[l]));

					check_product(ok(tensor_mm(a, b)), a, b, "dense");
				}
}

/* Heads of attention: [batch, tokens, heads, size], with rows at even and odd distances and addresses. */
static void heads_between_others(void **state)
{
	static const int64_t size[] = { 32, 63, 64, 128 };

	for (size_t i = 0; i < 4; i++)
		for (int64_t heads = 1; heads < 4; heads++)
			tensor_scope {
				tensor *q = bf16_values(TENSOR_SHAPE(70, heads, size[i]));
				tensor *k = bf16_values(TENSOR_SHAPE(50, heads, size[i]));

				q = ok(tensor_permute(q, TENSOR_INTS(1, 0, 2)));
				k = ok(tensor_permute(k, TENSOR_INTS(1, 2, 0)));
				check_product(ok(tensor_bmm(q, k)), q, k, "heads");
			}
}

/* Rows with NaN between them. */
static void rows_at_odd_addresses_and_of_pages(void **state)
{
	static const int64_t row[] = { 65, 66, 67, 2048, 4096 };

	for (size_t i = 0; i < 5; i++)
		for (int64_t first = 0; first < 3; first++)
			tensor_scope {
				int64_t k = 61 + first % 2;
				tensor *all = ok(tensor_to(ok(tensor_full(TENSOR_SHAPE(33, row[i]),
									  TENSOR_SCALAR(NAN), F32)),
							   TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
				tensor *a = ok(tensor_slice(all, 1, first, first + k, 1));
				tensor *b = bf16_values(TENSOR_SHAPE(k, 40));

				ok(tensor_copy_(a, bf16_values(TENSOR_SHAPE(33, k))));
				check_product(ok(tensor_mm(a, b)), a, b, "rows");
			}
}

static void adds_to_columns_and_rows(void **state)
{
	for (int order = 0; order < 2; order++)
		tensor_scope {
			tensor *a = bf16_values(TENSOR_SHAPE(70, 64)),
			       *b = bf16_values(TENSOR_SHAPE(64, 50));
			tensor *c = order ? ok(tensor_t(bf16_values(TENSOR_SHAPE(50, 70)))) :
					    bf16_values(TENSOR_SHAPE(70, 50));
			tensor *exact = ok(tensor_addmm(in_f64(c), in_f64(a), in_f64(b)));
			tensor *sizes = ok(tensor_matmul(ok(tensor_abs(in_f64(a))),
							 ok(tensor_abs(in_f64(b)))));

			sizes = ok(tensor_add_scalar(sizes, TENSOR_SCALAR(1)));
			ok(tensor_addmm_(c, a, b));
			assert_true(is_rounded_once(c, exact, sizes));
		}
}

static void the_same_bits_on_one_thread(void **state)
{
	int before = tensor_get_num_threads();

	tensor_scope {
		tensor *a = bf16_values(TENSOR_SHAPE(40, 130, 64)),
		       *b = bf16_values(TENSOR_SHAPE(40, 64, 100));
		tensor *many = ok(tensor_bmm(a, b)), *one;

		assert_done(tensor_set_num_threads(1));
		one = ok(tensor_bmm(a, b));
		assert_done(tensor_set_num_threads(before));
		assert_memory_equal(tensor_data(many), tensor_data(one), tensor_numel(one) * 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_around_tiles_and_depths),
		cmocka_unit_test(heads_between_others),
		cmocka_unit_test(rows_at_odd_addresses_and_of_pages),
		cmocka_unit_test(adds_to_columns_and_rows),
		cmocka_unit_test(the_same_bits_on_one_thread),
	};

	setenv("TENSOR_CPU_TILES", "none", 1);
	setenv("TENSOR_CPU_PAIRS", "all", 0);
	return cmocka_run_group_tests_name("product_pairs", tests, NULL, NULL);
}
