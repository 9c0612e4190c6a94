// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CUDA: attention and its gradients against the CPU's results. */
#include "cuda_results.h"

#include <tensor/autograd.h>

enum mask_kind {
	NO_MASK,
	CAUSAL,
	BOOL_MASK,  /* [l, s]; the first queries have no permitted key */
	FLOAT_MASK, /* [batch, 1, l, s] */
	SAME_MASK, /* a large number for all keys, beside which the logarithm of a sum is rounded away */
	KEYS_MASK, /* f32 [batch, 1, 1, s], large numbers among them */
};

struct attention_case {
	int64_t batch, heads, l, s, e, v;
	enum mask_kind mask;
	bool transposed; /* heads of [batch, length, heads, features] */
	bool long_case;	 /* much work */
};

/* Sizes around those of tiles and slices; features that matrix instructions take, and more. */
static const struct attention_case cases[] = {
	{ 1, 1, 1, 1, 1, 1, NO_MASK, false, false },
	{ 2, 3, 5, 7, 3, 2, CAUSAL, true, false },
	{ 1, 1, 65, 70, 16, 24, NO_MASK, true, false },
	{ 1, 1, 130, 67, 20, 64, CAUSAL, false, true },
	{ 1, 1, 20, 70, 8, 8, CAUSAL, true, false },
	{ 1, 1, 66, 20, 72, 100, CAUSAL, false, true },
	{ 2, 1, 17, 35, 20, 16, BOOL_MASK, true, false },
	{ 2, 2, 9, 40, 5, 7, FLOAT_MASK, false, false },
	{ 2, 1, 12, 31, 16, 16, KEYS_MASK, false, false },
	{ 1, 1, 9, 12, 140, 130, NO_MASK, true, false },
	{ 1, 1, 9, 40, 5, 7, SAME_MASK, false, false },
	{ 1, 1, 9, 70, 5, 7, SAME_MASK, false, false },
	{ 1, 1, 9, 40, 5, 7, SAME_MASK, false, true },
	{ 1, 2, 8, 5, 0, 3, NO_MASK, false, false },
	{ 1, 2, 8, 5, 3, 0, NO_MASK, false, false },
	{ 1, 2, 8, 0, 3, 4, NO_MASK, false, false },
	{ 1, 2, 0, 5, 3, 4, NO_MASK, false, false },
	{ 0, 2, 4, 5, 3, 4, NO_MASK, false, false },
};
static const enum tensor_dtype floats[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16 };

static tensor *heads_of(const struct attention_case *c, int64_t length, int64_t size,
			enum tensor_dtype d)
{
	if (!c->transposed)
		return pseudo_random(TENSOR_SHAPE(c->batch, c->heads, length, size), d);
	return ok(tensor_transpose(pseudo_random(TENSOR_SHAPE(c->batch, length, c->heads, size), d),
				   1, 2));
}

static tensor *mask_of(const struct attention_case *c, enum tensor_dtype d)
{
	tensor *t;

	switch (c->mask) {
	case BOOL_MASK:
		t = ok(tensor_gt_scalar(pseudo_random(TENSOR_SHAPE(c->l, c->s), TENSOR_F32),
					TENSOR_SCALAR(-1)));
		ok(tensor_fill_(tensor_narrow(t, 0, 0, c->l / 2), TENSOR_SCALAR(0)));
		return t;
	case FLOAT_MASK:
		return pseudo_random(TENSOR_SHAPE(c->batch, 1, c->l, c->s), d);
	case SAME_MASK:
		return ok(tensor_full(TENSOR_SHAPE(c->l, c->s), TENSOR_SCALAR(-1e9), F32));
	case KEYS_MASK:
		return ok(tensor_mul_scalar(pseudo_random(TENSOR_SHAPE(c->batch, 1, 1, c->s), d),
					    TENSOR_SCALAR(500)));
	default:
		return tensor_none;
	}
}

/* bf16 and f16 round the weights, too. */
static double attention_tolerance(enum tensor_dtype d)
{
	return d == TENSOR_F64 ? 1e-12 : d == TENSOR_F32 ? 2e-5 : d == TENSOR_F16 ? 5e-3 : 4e-2;
}

static void attention_equals_the_cpu_in(const struct attention_case *c, enum tensor_dtype d)
{
	tensor *q = heads_of(c, c->l, c->e, d), *k = heads_of(c, c->s, c->e, d);
	tensor *v = heads_of(c, c->s, c->v, d), *mask = mask_of(c, d);
	tensor *grad = heads_of(c, c->l, c->v, d);
	tensor *gq = on_cuda(q), *gk = on_cuda(k), *gv = on_cuda(v);
	tensor *gmask = mask == tensor_none ? mask : on_cuda(mask);
	const bool causal = c->mask == CAUSAL;
	const double tol = attention_tolerance(d);
	const double scale = 0.2;
	tensor *y[2], *g[2], *dy[3], *dg[3];

	assert_done(tensor__attention(mask, TENSOR_LIST(q, k, v), causal, scale, &y[0], &y[1]));
	assert_done(tensor__attention(gmask, TENSOR_LIST(gq, gk, gv), causal, scale, &g[0], &g[1]));
	for (int i = 0; i < 2; i++)
		assert_near(g[i], y[i], tol);
	assert_done(tensor__attention_backward(grad, q, k, v, mask, y[0], y[1], causal, scale,
					       &dy[0], &dy[1], &dy[2]));
	assert_done(tensor__attention_backward(on_cuda(grad), gq, gk, gv, gmask, on_cuda(y[0]),
					       on_cuda(y[1]), causal, scale, &dg[0], &dg[1],
					       &dg[2]));
	for (int i = 0; i < 3; i++)
		assert_near(dg[i], dy[i], 4 * tol);
}

static void attention_equals_the_cpu(void **state)
{
	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(floats); i++)
		tensor_scope {
			const size_t k = i / ARRAY_SIZE(floats), d = i % ARRAY_SIZE(floats);

			/* Each case in one dtype, and the long ones in f32 and bf16 if there is time. */
			if (cases[k].long_case ? long_cases() && d % 3 == 0 :
						 k % ARRAY_SIZE(floats) == d)
				attention_equals_the_cpu_in(&cases[k], floats[d]);
		}
}

/* The operator that programs call takes the kernel, which is recorded. */
static void programs_use_the_kernel(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *t = pseudo_random(TENSOR_SHAPE(1, 2, 70, 32), TENSOR_F32);
		tensor *leaf[] = { t, on_cuda(t) };

		for (int i = 0; i < 2; i++) {
			tensor *y;

			assert_done(tensor_set_requires_grad(leaf[i], true));
			y = ok(tensor_scaled_dot_product_attention(leaf[i], leaf[i], leaf[i],
								   tensor_none, 0, true));
			assert_string_equal(tensor_node_name(tensor_grad_fn(y)),
					    "AttentionBackward");
			assert_done(tensor_backward(ok(tensor_sum(y))));
		}
		assert_near(tensor_grad(leaf[1]), tensor_grad(leaf[0]), 1e-4);
		assert_int_equal(tensor_cuda_fallbacks("_attention"), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_equals_the_cpu),
		cmocka_unit_test(programs_use_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
