// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: operators with a mask against the CPU's results. */
#include "cuda_results.h"

static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_BF16, TENSOR_F32, TENSOR_F64 };
/* Within a tile, a chunk, and in more chunks than one block sums at once. */
static const int64_t lengths[] = { 0, 1, 255, 256, 257, 4096, 4097, 20000, 1100000 };

/* `which`: none, all, every third or some. */
static tensor *mask_of(int64_t n, int which)
{
	tensor *t = ok(tensor_empty(TENSOR_SHAPE(n), TENSOR_OPTIONS(.dtype = TENSOR_BOOL)));
	uint8_t *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < n; i++)
		p[i] = which == 1 || (which == 2 && i % 3 == 0) || (which == 3 && i * i % 7 == 2);
	return t;
}

static void masks_equal_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * 4; i++)
		tensor_scope {
			/* The longest once. */
			const bool once = i % 4 == 3 && long_cases();
			const int64_t n = lengths[i / 4] <= 20000 || once ? lengths[i / 4] : 2;
			tensor *m = mask_of(n, (int)(i % 4)), *gm = on_cuda(m);
			tensor *a = pseudo_random(TENSOR_SHAPE(n), dtypes[i % 4]), *g = on_cuda(a);
			tensor *s = pseudo_random(TENSOR_SHAPE(n), dtypes[i % 4]);

			assert_near(tensor_nonzero(gm), tensor_nonzero(m), 0);
			assert_near(tensor_masked_select(g, gm), tensor_masked_select(a, m), 0);
			assert_near(tensor_masked_scatter(g, gm, on_cuda(s)),
				    tensor_masked_scatter(a, m, s), 0);
		}
}

static void masks_of_any_shape(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(5, 6, 7), TENSOR_F32), *g = on_cuda(a);
		tensor *zero = ok(tensor_zeros(TENSOR_SCALAR_SHAPE, F32));
		tensor *row = ok(tensor_gt_scalar(ok(tensor_select(a, 0, 0)), TENSOR_SCALAR(0)));
		tensor *t = ok(tensor_transpose(a, 0, 2)), *gt = ok(tensor_transpose(g, 0, 2));

		assert_near(tensor_nonzero(g), tensor_nonzero(a), 0);
		assert_near(tensor_nonzero(tensor_gt_scalar(gt, TENSOR_SCALAR(1))),
			    tensor_nonzero(tensor_gt_scalar(t, TENSOR_SCALAR(1))), 0);
		assert_near(tensor_masked_select(g, on_cuda(row)), tensor_masked_select(a, row), 0);
		assert_near(tensor_nonzero(on_cuda(zero)), tensor_nonzero(zero), 0);
		assert_near(tensor_nonzero(tensor_slice(g, 0, 0, 0, 1)),
			    tensor_nonzero(tensor_slice(a, 0, 0, 0, 1)), 0);
	}
}

static void a_source_that_is_too_short_is_refused(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(100), TENSOR_F32), *g = on_cuda(a);

		assert_fails(tensor_masked_scatter_(g, on_cuda(mask_of(100, 1)),
						    tensor_slice(g, 0, 0, 99, 1)),
			     EINVAL, "100 true elements, source only 99");
		assert_near(g, a, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_equal_the_cpu),
		cmocka_unit_test(masks_of_any_shape),
		cmocka_unit_test(a_source_that_is_too_short_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
