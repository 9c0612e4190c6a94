// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Attention of reduced floats with large scores, by the kernel and by the composition, compared with f64. */
#include "autograd.h"

enum { HEADS = 2, KEYS = 70, FEATURES = 64 };

static tensor *noise(unsigned seed, tensor_ints shape, enum tensor_dtype dtype)
{
	tensor *t = ok(tensor_empty(shape, F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (double)((uint32_t)((uint64_t)(i + 1 + seed * 977) * 2654435761u >> 8) %
				4096) /
			       2048 -
		       1;
	return ok(tensor_to(t, OF(dtype)));
}

static tensor *attention(tensor *const *in, tensor *mask, bool causal, double scale)
{
	return ok(tensor_scaled_dot_product_attention_opt(in[0], in[1], in[2], mask, 0, causal,
							  scale, false));
}

static double error_of(tensor *out, tensor *want)
{
	double v;

	out = ok(tensor_to(ok(tensor_detach(out)), F64));
	assert_done(tensor_item(ok(tensor_max(ok(tensor_abs(ok(tensor_sub(out, want)))))), &v));
	return v;
}

/* Values are at most 1, and so is the sum of the weights: each of both is rounded once. */
static void check(int64_t queries, enum tensor_dtype dtype, double scale, double tolerance)
{
	tensor_scope {
		tensor *in[] = { noise(1, TENSOR_INTS(1, HEADS, queries, FEATURES), dtype),
				 noise(2, TENSOR_INTS(1, HEADS, KEYS, FEATURES), dtype),
				 noise(3, TENSOR_INTS(1, HEADS, KEYS, FEATURES), dtype) };
		tensor *mask = leaf(noise(4, TENSOR_INTS(queries, KEYS), dtype)), *wide[3];
		tensor *wide_mask = ok(tensor_to(ok(tensor_detach(mask)), F64));
		double plain, causal, masked;

		for (int i = 0; i < 3; i++)
			wide[i] = ok(tensor_to(in[i], F64));
		plain = error_of(attention(in, tensor_none, false, scale),
				 attention(wide, tensor_none, false, scale));
		causal = error_of(attention(in, tensor_none, true, scale),
				  attention(wide, tensor_none, true, scale));
		/* A mask with a gradient is not for the kernel. */
		masked = error_of(attention(in, mask, false, scale),
				  attention(wide, wide_mask, false, scale));
		if (!(plain <= tolerance && causal <= tolerance && masked <= tolerance))
			fail_msg("%s, %lld queries, scale %g: errors %g, %g causal, %g with a mask",
				 tensor_dtype_name(dtype), (long long)queries, scale, plain, causal,
				 masked);
	}
}

static void large_scores_are_not_rounded(void **state)
{
	static const int64_t queries[] = { 1, 5, 8, 33 };
	static const double scales[] = { 1, -4, 30 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
		for (size_t k = 0; k < ARRAY_SIZE(scales); k++) {
			check(queries[i], TENSOR_BF16, scales[k], 0x1p-7);
			check(queries[i], TENSOR_F16, scales[k], 0x1p-10);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_scores_are_not_rounded),
	};

	return cmocka_run_group_tests_name("attention_scores", tests, NULL, NULL);
}
