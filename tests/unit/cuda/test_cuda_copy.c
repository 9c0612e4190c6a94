// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: copies from, to and on a device. Skipped with a reason where there is none. */
#include "cuda_results.h"

static void copies_keep_every_element(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_BOOL, TENSOR_U8,  TENSOR_I32,
						    TENSOR_I64,	 TENSOR_F32, TENSOR_F64 };

	NEED_DEVICE();
	for (size_t i = 0; i < 6; i++) {
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(5, 6, 7), dtypes[i]);
			tensor *p = tensor_permute(a, TENSOR_INTS(2, 0, 1));
			tensor *s = tensor_slice(a, 2, 1, 7, 2);

			assert_near(on_cuda(a), a, 0);
			assert_near(on_cuda(p), p, 0);
			assert_near(on_cuda(s), s, 0);
			assert_near(tensor_permute(on_cuda(a), TENSOR_INTS(2, 0, 1)), p, 0);
			assert_near(tensor_slice(on_cuda(a), 2, 1, 7, 2), s, 0);
			assert_near(tensor_clone(tensor_slice(on_cuda(a), 2, 1, 7, 2)), s, 0);
		}
	}
}

static void copies_convert_dtypes(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 9), TENSOR_F64), *g = on_cuda(a);

		for (int to = TENSOR_BOOL; to <= TENSOR_F64; to++) {
			if (to == TENSOR_F16 || to == TENSOR_BF16 || to == TENSOR_U8)
				continue;
			assert_near(tensor_to(g, CUDA_OF(to)),
				    tensor_to(a, TENSOR_OPTIONS(.dtype = to)), 0);
			assert_near(tensor_to(a, CUDA_OF(to)),
				    tensor_to(a, TENSOR_OPTIONS(.dtype = to)), 0);
		}
		assert_values(tensor_to(on_cuda(iota(-1, TENSOR_SHAPE(3))),
					TENSOR_OPTIONS(.dtype = TENSOR_BOOL,
						       .device = TENSOR_DEVICE_CPU)),
			      0, 1, 0, 1);
	}
}

static void copies_write_strided_tensors(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = ok(tensor_zeros(TENSOR_SHAPE(6, 8), F32)), *g = on_cuda(a);
		tensor *row = pseudo_random(TENSOR_SHAPE(4), TENSOR_F32);
		tensor *back = ok(tensor_zeros(TENSOR_SHAPE(8, 6), F32));

		ok(tensor_copy_(tensor_slice(a, 1, 0, 8, 2), row)); /* broadcast */
		ok(tensor_copy_(tensor_slice(g, 1, 0, 8, 2), row));
		assert_near(g, a, 0);
		ok(tensor_copy_(tensor_t(back), g));
		assert_near(g, tensor_t(back), 0);
	}
}

/* The host's side has gaps, in both directions: the CPU's copy kernel gathers and scatters. */
static void copies_of_strided_host_tensors(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_F32, TENSOR_I64,
						    TENSOR_C128 };

	NEED_DEVICE();
	for (size_t i = 0; i < 4; i++) {
		tensor_scope {
			tensor *a = ok(tensor_arange(TENSOR_SCALAR(120), F32));
			tensor *to = ok(tensor_zeros(TENSOR_SHAPE(4, 10, 6),
						     TENSOR_OPTIONS(.dtype = dtypes[i])));
			tensor *gaps, *g;

			a = ok(tensor_to(tensor_reshape(a, TENSOR_SHAPE(4, 5, 6)),
					 TENSOR_OPTIONS(.dtype = dtypes[i])));
			gaps = ok(tensor_slice(a, 2, 0, 6, 2));
			g = on_cuda(gaps);
			ok(tensor_copy_(tensor_slice(tensor_slice(to, 1, 1, 10, 2), 2, 0, 6, 2),
					g));
			assert_true(equal(tensor_slice(tensor_slice(to, 1, 1, 10, 2), 2, 0, 6, 2),
					  gaps));
			assert_true(equal(ok(tensor_to(g, CPU)), gaps));
			/* The elements between them keep their zeros. */
			assert_true(equal(tensor_slice(to, 1, 0, 10, 2),
					  tensor_zeros_like(a, TENSOR_OPTIONS(0))));
		}
	}
}

/* Gaps in three dimensions, which the CPU's kernel visits with a loop of another kind. */
static void copies_of_host_tensors_with_gaps_in_each_dimension(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = iota(0, TENSOR_SHAPE(2, 5, 6, 8)), *gaps = a, *to, *g;

		for (int d = 1; d < 4; d++)
			gaps = ok(tensor_slice(gaps, d, 0, 8, 2));
		g = on_cuda(gaps);
		assert_near(g, gaps, 0);
		to = ok(tensor_zeros_like(a, TENSOR_OPTIONS(0)));
		for (int d = 1; d < 4; d++)
			to = ok(tensor_slice(to, d, 0, 8, 2));
		ok(tensor_copy_(to, g));
		assert_true(equal(to, gaps));
	}
}

static void item_reads_single_elements(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(iota(5, TENSOR_SHAPE(2, 3)));
		double v;

		assert_done(tensor_at(g, TENSOR_INTS(1, 2), &v));
		assert_true(v == 10);
		assert_done(tensor_item(tensor_select(tensor_select(g, 0, 1), 0, 0), &v));
		assert_true(v == 8);
		assert_null(tensor_data(g));
	}
}

/* A buffer that is pinned at the first copy, and again after it was reused. */
static void large_copies_go_through_pinned_memory(void **state)
{
	NEED_DEVICE();
	for (int round = 0; round < 3; round++) {
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(512, 1024), TENSOR_F32);
			tensor *g = on_cuda(a), *back;
			bool before = tensor_cuda_set_nonblocking(true);

			assert_false(before);
			assert_done(tensor_share_memory(a));
			back = ok(tensor_to(g, CPU));
			ok(tensor_copy_(g, a));
			assert_done(tensor_cuda_synchronize(0));
			assert_true(tensor_cuda_set_nonblocking(false));
			assert_memory_equal(tensor_data(back), tensor_data(a), 512 * 1024 * 4);
			assert_near(g, a, 0);
		}
		if (round == 1)
			tensor_cache_trim(); /* unmaps the cached buffers, after unpinning them */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_keep_every_element),
		cmocka_unit_test(copies_convert_dtypes),
		cmocka_unit_test(copies_write_strided_tensors),
		cmocka_unit_test(copies_of_strided_host_tensors),
		cmocka_unit_test(copies_of_host_tensors_with_gaps_in_each_dimension),
		cmocka_unit_test(item_reads_single_elements),
		cmocka_unit_test(large_copies_go_through_pinned_memory),
	};

	return cmocka_run_group_tests_name("cuda_copy", tests, NULL, NULL);
}
