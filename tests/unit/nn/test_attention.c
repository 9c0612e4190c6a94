// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Attention as one kernel, compared with its definition in f64. test_attention_tiles.c runs the tests with tiles. */
#include "autograd.h"

#include <math.h>

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

#ifndef NAME
#define NAME  "attention"
#define TESTS ARRAY_SIZE(tests)
#endif

enum mask_kind {
	NO_MASK,
	CAUSAL,
	BOOL_MASK,   /* [l, s] */
	FLOAT_MASK,  /* [batch, 1, l, s] */
	KEYS_MASK,   /* bool [batch, 1, 1, s] */
	SLICED_MASK, /* [heads, l, s], transposed, every second key */
	EMPTY_ROWS,  /* bool: the first queries have no permitted key */
};

struct attention_case {
	int64_t batch, heads, l, s, e, v;
	enum mask_kind mask;
	bool transposed; /* heads of [batch, length, heads, features] */
	double scale;	 /* 0: the default */
};

static const struct attention_case cases[] = {
	{ 1, 1, 1, 1, 1, 1, NO_MASK, false, 0 },
	{ 2, 3, 5, 7, 3, 2, NO_MASK, false, 0 },
	{ 2, 3, 5, 7, 3, 2, CAUSAL, true, 0 },
	{ 1, 2, 48, 48, 16, 16, CAUSAL, true, 0 },
	{ 1, 2, 128, 128, 32, 32, CAUSAL, true, 0 },
	{ 2, 1, 129, 130, 33, 31, NO_MASK, true, 0.25 },
	{ 1, 2, 200, 300, 17, 40, CAUSAL, false, 0 },
	{ 1, 1, 300, 100, 8, 8, CAUSAL, true, -0.5 },
	{ 1, 3, 65, 257, 24, 48, BOOL_MASK, true, 0 },
	{ 3, 2, 33, 140, 16, 5, FLOAT_MASK, false, 0 },
	{ 3, 2, 70, 131, 20, 16, KEYS_MASK, true, 0 },
	{ 2, 3, 50, 45, 16, 16, SLICED_MASK, false, 0 },
	{ 2, 2, 60, 150, 9, 16, EMPTY_ROWS, true, 0 },
	{ 1, 1, 20, 40, 700, 600, NO_MASK, false, 0.01 },
	{ 1, 1, 60, 65, 600, 500, CAUSAL, true, 0.01 },
	{ 1, 2, 9, 9, 64, 64, CAUSAL, false, 0 },
	{ 1, 1, 33, 31, 32, 64, NO_MASK, false, 0 },
	{ 1, 1, 97, 63, 65, 47, CAUSAL, true, 0 },
	{ 1, 1, 209, 209, 64, 80, CAUSAL, false, 0 },
	{ 1, 1, 80, 144, 96, 17, FLOAT_MASK, false, 0 },
	{ 1, 2, 8, 5, 0, 3, NO_MASK, false, 0 },
	{ 1, 2, 8, 5, 3, 0, NO_MASK, false, 0 },
	{ 1, 2, 8, 0, 3, 4, NO_MASK, false, 0 },
	{ 1, 2, 0, 5, 3, 4, NO_MASK, false, 0 },
	{ 1, 17, 0, 5, 3, 4, NO_MASK, false, 0 },
	{ 0, 2, 4, 5, 3, 4, NO_MASK, false, 0 },
	{ 2, 2, 8, 0, 3, 4, EMPTY_ROWS, false, 0 },
};

/* Pseudo-random numbers in [-1, 1]. */
static tensor *noise(unsigned seed, tensor_ints shape)
{
	tensor *t = ok(tensor_empty(shape, F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (double)((uint32_t)((uint64_t)(i + 1 + seed * 977) * 2654435761u >> 8) %
				4096) /
			       2048 -
		       1;
	return t;
}

static tensor *heads_of(const struct attention_case *c, unsigned seed, int64_t length, int64_t size)
{
	if (!c->transposed)
		return noise(seed, TENSOR_INTS(c->batch, c->heads, length, size));
	return ok(
		tensor_transpose(noise(seed, TENSOR_INTS(c->batch, length, c->heads, size)), 1, 2));
}

static tensor *positive(tensor *t)
{
	return ok(tensor_gt_scalar(t, S(-0.3)));
}

static tensor *mask_of(const struct attention_case *c)
{
	const int64_t b = c->batch, l = c->l, s = c->s;
	tensor *t;

	switch (c->mask) {
	case BOOL_MASK:
		return positive(noise(5, TENSOR_INTS(l, s)));
	case FLOAT_MASK:
		return noise(5, TENSOR_INTS(b, 1, l, s));
	case KEYS_MASK:
		return positive(noise(5, TENSOR_INTS(b, 1, 1, s)));
	case SLICED_MASK:
		t = noise(5, TENSOR_INTS(c->heads, 2 * s, l));
		return ok(tensor_transpose(ok(tensor_slice(t, 1, 0, 2 * s, 2)), 1, 2));
	case EMPTY_ROWS:
		t = positive(noise(5, TENSOR_INTS(l, s)));
		assert_done(tensor_fill_(ok(tensor_narrow(t, 0, 0, l / 2)), S(0)) ? 0 : -1);
		return t;
	default:
		return tensor_none;
	}
}

static double scale_of(const struct attention_case *c)
{
	return c->scale != 0 ? c->scale : TENSOR_NO_FLOAT;
}

static tensor *fused(tensor *const *in, tensor *mask, bool causal, double scale)
{
	tensor *out, *sums;

	assert_done(tensor__attention(mask, TENSOR_LIST(in[0], in[1], in[2]), causal, scale, &out,
				      &sums));
	return out;
}

/* The definition. */
static tensor *defined(tensor *const *in, tensor *mask, bool causal, double scale)
{
	const int64_t l = tensor_size(in[0], -2), s = tensor_size(in[1], -2),
		      e = tensor_size(in[0], -1);
	tensor *scores, *never = ok(tensor_full(TENSOR_SCALAR_SHAPE, S(-INFINITY), F64));

	scale = scale != scale ? 1 / sqrt((double)(e ? e : 1)) : scale;
	scores = ok(tensor_matmul(ok(tensor_mul_scalar(in[0], S(scale))),
				  ok(tensor_transpose(in[1], -2, -1))));
	if (causal)
		mask = ok(tensor_tril(ok(tensor_ones(TENSOR_INTS(l, s), OF(TENSOR_BOOL))), 0));
	if (mask != tensor_none && tensor_dtype(mask) == TENSOR_BOOL)
		scores = ok(tensor_where(mask, scores, never));
	else if (mask != tensor_none)
		scores = ok(tensor_add(scores, mask));
	return ok(tensor_matmul(ok(tensor_safe_softmax(scores, -1, TENSOR_DTYPE_NONE)), in[2]));
}

static void make(const struct attention_case *c, enum tensor_dtype dtype, tensor **in)
{
	in[0] = heads_of(c, 1, c->l, c->e);
	in[1] = heads_of(c, 2, c->s, c->e);
	in[2] = heads_of(c, 3, c->s, c->v);
	for (int i = 0; i < 3; i++)
		in[i] = leaf(ok(tensor_to(in[i], OF(dtype))));
}

/* Sets the gradients of in for a gradient that is not contiguous. */
static void differentiate(tensor *out, tensor *const *in)
{
	tensor *seed =
		ok(tensor_transpose(noise(9, TENSOR_INTS(tensor_size(out, 0), tensor_size(out, 1),
							 tensor_size(out, 3), tensor_size(out, 2))),
				    2, 3));

	for (int i = 0; i < 3; i++)
		tensor_set_grad(in[i], NULL);
	assert_done(tensor_backward_ex(
		TENSOR_LIST(out), (tensor *const[]){ ok(tensor_to(seed, OF(tensor_dtype(out)))) },
		(tensor_list){ 0 }, NULL, 0));
}

static double difference(tensor *a, tensor *b)
{
	double v = 0;

	assert_int_equal(tensor_dim(a), tensor_dim(b));
	for (int d = 0; d < tensor_dim(a); d++)
		assert_int_equal(tensor_size(a, d), tensor_size(b, d));
	a = ok(tensor_to(ok(tensor_detach(a)), F64));
	b = ok(tensor_to(ok(tensor_detach(b)), F64));
	if (tensor_numel(a))
		assert_done(tensor_item(ok(tensor_max(ok(tensor_abs(ok(tensor_sub(a, b)))))), &v));
	return v;
}

static void check_case(const struct attention_case *c, enum tensor_dtype dtype, double tolerance)
{
	tensor_scope {
		tensor *in[3], *wide[3], *mask = mask_of(c), *out, *want, *given = mask;

		make(c, dtype, in);
		for (int i = 0; i < 3; i++)
			wide[i] = leaf(ok(tensor_to(ok(tensor_detach(in[i])), F64)));
		if (mask != tensor_none && tensor_dtype(mask) == TENSOR_F64) {
			given = ok(tensor_to(mask, OF(dtype)));
			mask = ok(tensor_to(given, F64));
		}
		out = fused(in, given, c->mask == CAUSAL, scale_of(c));
		want = defined(wide, mask, c->mask == CAUSAL, scale_of(c));
		assert_int_equal(tensor_dtype(out), dtype);
		if (!(difference(out, want) <= tolerance))
			fail_msg("case %d: output differs by %g", (int)(c - cases),
				 difference(out, want));
		differentiate(out, in);
		differentiate(want, wide);
		for (int i = 0; i < 3; i++) {
			double size =
				1 + difference(tensor_grad(wide[i]),
					       ok(tensor_zeros_like(wide[i], TENSOR_OPTIONS(0))));
			double d = difference(tensor_grad(in[i]), tensor_grad(wide[i]));

			if (!(d <= tolerance * size))
				fail_msg("case %d: gradient %d differs by %g", (int)(c - cases), i,
					 d);
		}
	}
}

static void output_and_gradients_are_those_of_the_definition(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		check_case(&cases[i], TENSOR_F64, 2e-14);
		check_case(&cases[i], TENSOR_F32, 4e-6);
	}
}

/* Rounded once: half an ulp of numbers up to 1, and errors of the rounded output in the gradients. */
static void reduced_floats_are_summed_in_f32(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		check_case(&cases[i], TENSOR_BF16, 0x1p-8);
		check_case(&cases[i], TENSOR_F16, 0x1p-11);
	}
}

/* ---- the public operator ---- */

/* A batch dimension of key, and grouped heads: [2, 4, l, e] with [1, 4, s, e] and two heads of value. */
static void batches_and_heads_broadcast(void **state)
{
	(void)state;
	for (int causal = 0; causal < 2; causal++)
		tensor_scope {
			tensor *q = leaf(noise(1, TENSOR_INTS(2, 4, 20, 6))),
			       *k = leaf(noise(2, TENSOR_INTS(1, 4, 23, 6))),
			       *v = leaf(noise(3, TENSOR_INTS(23, 5))), *in[] = { q, k, v };
			tensor *wide[3], *out = fused(in, tensor_none, causal, TENSOR_NO_FLOAT);

			for (int i = 0; i < 3; i++)
				wide[i] = leaf(ok(tensor_clone(ok(tensor_detach(in[i])))));
			differentiate(out, in);
			differentiate(defined(wide, tensor_none, causal, NAN), wide);
			assert_true(difference(out, defined(wide, tensor_none, causal, NAN)) <
				    1e-14);
			for (int i = 0; i < 3; i++)
				assert_true(difference(tensor_grad(in[i]), tensor_grad(wide[i])) <
					    1e-13);
		}
}

static void grouped_heads_are_those_of_repeated_heads(void **state)
{
	(void)state;
	tensor_scope {
		tensor *q = noise(1, TENSOR_INTS(2, 4, 20, 6)),
		       *k = noise(2, TENSOR_INTS(2, 2, 23, 6)),
		       *v = noise(3, TENSOR_INTS(2, 1, 23, 5));
		tensor *in[] = { q, ok(tensor_repeat_interleave(k, 2, 1)),
				 ok(tensor_repeat_interleave(v, 4, 1)) };

		assert_true(
			difference(ok(tensor_scaled_dot_product_attention_opt(
					   q, k, v, tensor_none, 0, true, TENSOR_NO_FLOAT, true)),
				   defined(in, tensor_none, true, NAN)) < 1e-14);
	}
}

/* Heads of one projection give heads that are side by side in memory, and so do the gradients. */
static void results_have_the_order_of_dimensions_of_the_query(void **state)
{
	const struct attention_case c = { 2, 3, 10, 12, 4, 5, CAUSAL, true, 0 };

	(void)state;
	tensor_scope {
		tensor *in[3], *out;

		make(&c, TENSOR_F64, in);
		out = ok(tensor_scaled_dot_product_attention(in[0], in[1], in[2], tensor_none, 0,
							     true));
		assert_strides(out, 150, 5, 15, 1);
		assert_true(difference(out, defined(in, tensor_none, true, NAN)) < 1e-14);
		/* A dimension that query lacks stays the outermost. */
		out = ok(tensor_scaled_dot_product_attention(ok(tensor_select(in[0], 0, 0)), in[1],
							     in[2], tensor_none, 0, true));
		assert_strides(out, 150, 5, 15, 1);
		out = ok(tensor_scaled_dot_product_attention(
			ok(tensor_contiguous(ok(tensor_select(in[0], 0, 0)))), in[1], in[2],
			tensor_none, 0, true));
		assert_true(tensor_is_contiguous(out));
	}
}

/* The operator computes all cases by the kernel or by the composition. */
static void operator_gives_the_definition(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		tensor_scope {
			const struct attention_case *c = &cases[i];
			tensor *in[3], *mask = mask_of(c);

			make(c, TENSOR_F64, in);
			assert_true(difference(ok(tensor_scaled_dot_product_attention_opt(
						       in[0], in[1], in[2], mask, 0,
						       c->mask == CAUSAL, scale_of(c), false)),
					       defined(in, mask, c->mask == CAUSAL, scale_of(c))) <
				    1e-13);
		}
}

static void autocast_converts_the_inputs(void **state)
{
	(void)state;
	tensor_scope {
		tensor *q = leaf(ok(tensor_to(noise(1, TENSOR_INTS(9, 4)), F32))),
		       *in[] = { q, q, q }, *out = NULL;

		tensor_autocast(TENSOR_BF16) out = fused(in, tensor_none, true, TENSOR_NO_FLOAT);
		assert_int_equal(tensor_dtype(out), TENSOR_BF16);
		assert_done(tensor_backward(ok(tensor_sum(out))));
		assert_int_equal(tensor_dtype(tensor_grad(q)), TENSOR_F32);
	}
}

static tensor *both_results(tensor *const *in, void *ctx)
{
	tensor *out, *sums, *mask = ctx ? in[3] : tensor_none;

	if (tensor__attention(mask, TENSOR_LIST(in[0], in[1], in[2]), !ctx, 0.7, &out, &sums) < 0)
		return NULL;
	return tensor_add(tensor_sum(tensor_mul(out, out)), tensor_sum(sums));
}

static tensor *of_heads(tensor *const *in, void *ctx)
{
	return tensor_scaled_dot_product_attention(in[0], in[1], in[2], ctx ? in[3] : tensor_none,
						   0, !ctx);
}

static void gradients_are_those_of_finite_differences(void **state)
{
	static bool masked = true;

	(void)state;
	tensor_scope {
		tensor *in[] = { leaf(noise(1, TENSOR_INTS(1, 9, 3))),
				 leaf(noise(2, TENSOR_INTS(2, 10, 3))),
				 leaf(noise(3, TENSOR_INTS(2, 10, 2))),
				 leaf(noise(4, TENSOR_INTS(9, 10))) };

		for (int i = 0; i < 2; i++) {
			void *ctx = i ? &masked : NULL;
			tensor_list list = { in, i ? 4 : 3 };

			assert_done(tensor_gradcheck(of_heads, ctx, list, 1e-6, 1e-7, 1e-5));
			assert_done(tensor_gradcheck(both_results, ctx, list, 1e-6, 1e-7, 1e-5));
			assert_done(tensor_gradgradcheck(of_heads, ctx, list, 1e-6, 1e-6, 1e-4));
			assert_done(
				tensor_gradgradcheck(both_results, ctx, list, 1e-6, 1e-6, 1e-4));
			assert_done(tensor_forwardcheck(of_heads, ctx, list, 1e-9, 1e-7));
		}
	}
}

/* ---- bits ---- */

static bool same_bits(tensor *a, tensor *b)
{
	size_t n = (size_t)tensor_numel(a) * 8;
	char *p = calloc(2, n);
	bool same;

	assert_non_null(p);
	assert_done(tensor_copy_to(ok(tensor_to(a, F64)), p, n));
	assert_done(tensor_copy_to(ok(tensor_to(b, F64)), p + n, n));
	same = !memcmp(p, p + n, n);
	free(p);
	return same;
}

static void results_do_not_depend_on_the_number_of_threads(void **state)
{
	static const struct attention_case some[] = {
		{ 1, 1, 700, 400, 16, 16, CAUSAL, false, 0 },
		{ 2, 3, 300, 300, 24, 8, NO_MASK, true, 0 },
		{ 3, 7, 20, 30, 8, 8, BOOL_MASK, true, 0 },
	};
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_BF16, TENSOR_F64 };
	const int before = tensor_get_num_threads();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(some) * ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			const struct attention_case *c = &some[i % ARRAY_SIZE(some)];
			tensor *in[3], *mask = mask_of(c), *out[2], *grads[2][3];

			make(c, dtypes[i / ARRAY_SIZE(some)], in);
			for (int n = 0; n < 2; n++) {
				assert_done(tensor_set_num_threads(n ? 3 : 1));
				out[n] = fused(in, mask, c->mask == CAUSAL, TENSOR_NO_FLOAT);
				differentiate(out[n], in);
				for (int k = 0; k < 3; k++)
					grads[n][k] = ok(tensor_clone(tensor_grad(in[k])));
			}
			assert_true(
				same_bits(ok(tensor_detach(out[0])), ok(tensor_detach(out[1]))));
			for (int k = 0; k < 3; k++)
				assert_true(same_bits(grads[0][k], grads[1][k]));
		}
	assert_done(tensor_set_num_threads(before));
}

/* ---- special values ---- */

static tensor *constant(double value, tensor_ints shape)
{
	return ok(tensor_full(shape, S(value), F32));
}

static double first(tensor *t)
{
	double v;

	while (tensor_dim(t))
		t = ok(tensor_select(t, 0, 0));
	assert_done(tensor_item(t, &v));
	return v;
}

/* The first output and logsumexp of queries of ones, for keys of this value and a mask. */
static void attend_to(double key, tensor *mask, double *out, double *sum)
{
	tensor *q = constant(1, TENSOR_INTS(9, 2)), *k = constant(key, TENSOR_INTS(3, 2)), *y, *s;

	assert_done(tensor__attention(mask, TENSOR_LIST(q, k, constant(5, TENSOR_INTS(3, 4))),
				      false, 1, &y, &s));
	*out = first(y);
	*sum = first(s);
}

static void special_values_give_what_softmax_gives(void **state)
{
	(void)state;
	tensor_scope {
		tensor *never = ok(tensor_zeros(TENSOR_INTS(9, 3), OF(TENSOR_BOOL)));
		double y, sum;

		attend_to(1, tensor_none, &y, &sum);
		assert_true(y == 5 && fabs(sum - (2 + log(3))) < 1e-6);
		attend_to(1, never, &y, &sum); /* no permitted key */
		assert_true(y == 0 && sum == -INFINITY);
		attend_to(1, constant(-INFINITY, TENSOR_INTS(3)), &y, &sum);
		assert_true(y == 0 && sum == -INFINITY);
		attend_to(1, constant(INFINITY, TENSOR_INTS(1, 3)), &y, &sum);
		assert_true(isnan(y) && isnan(sum));
		attend_to(1, constant(NAN, TENSOR_INTS(9, 1)), &y, &sum);
		assert_true(isnan(y) && isnan(sum));
		attend_to(-INFINITY, tensor_none, &y, &sum);
		assert_true(isnan(y));
		attend_to(NAN, never, &y, &sum);
		assert_true(isnan(y));
		attend_to(1e30, tensor_none, &y, &sum); /* no overflow */
		assert_true(y == 5);
	}
}

/* Weights of excluded keys are 0: their gradients are, too, and those of a query without keys. */
static void excluded_keys_have_gradient_zero(void **state)
{
	(void)state;
	tensor_scope {
		tensor *q = leaf(constant(1, TENSOR_INTS(10, 2))), *out, *sums,
		       *k = leaf(ok(tensor_to(noise(1, TENSOR_INTS(4, 2)), F32))),
		       *mask = ok(tensor_ones(TENSOR_INTS(10, 4), OF(TENSOR_BOOL)));

		tensor_fill_(ok(tensor_select(mask, 0, 0)), S(0));
		tensor_fill_(ok(tensor_select(mask, 1, 3)), S(0));
		assert_done(tensor__attention(mask, TENSOR_LIST(q, k, k), false, TENSOR_NO_FLOAT,
					      &out, &sums));
		assert_done(tensor_backward(ok(tensor_sum(tensor_mul(out, out)))));
		assert_values(ok(tensor_select(tensor_grad(q), 0, 0)), 0, 0, 0);
		assert_values(ok(tensor_select(tensor_grad(k), 0, 3)), 0, 0, 0);
	}
}

/* Odd numbers of queries, keys and features: what fills the last pair does not reach a result. */
static void last_pairs_are_filled_with_zero(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_BF16, TENSOR_F16 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
		tensor_scope {
			struct tensor_options o = OF(dtypes[i]);
			tensor *q = leaf(ok(tensor_ones(TENSOR_INTS(9, 3), o))),
			       *k = ok(tensor_ones(TENSOR_INTS(5, 3), o)),
			       *v = leaf(ok(tensor_ones(TENSOR_INTS(5, 3), o))), *out, *sums;
			double finite;

			/* Freed memory, which kernels get next. */
			for (int64_t n = 1 << 8; n < 1 << 20; n += n / 4)
				tensor_scope
					ok(tensor_full(TENSOR_SHAPE(n), TENSOR_SCALAR(NAN), F32));
			/* Its scores are -inf, and NaN with a query of zeros. */
			tensor_fill_(ok(tensor_select(k, 0, 4)), TENSOR_SCALAR(-INFINITY));
			assert_done(tensor__attention(tensor_none, TENSOR_LIST(q, k, v), false,
						      TENSOR_NO_FLOAT, &out, &sums));
			assert_done(tensor_item(ok(tensor_all(ok(tensor_isfinite(out)))), &finite));
			assert_true(finite == 1);
			assert_done(tensor_backward(ok(tensor_sum(out))));
			assert_values(ok(tensor_to(ok(tensor_select(tensor_grad(v), 0, 4)), F32)),
				      0, 0, 0, 0);
			assert_done(tensor_item(ok(tensor_all(ok(tensor_isfinite(tensor_grad(v))))),
						&finite));
			assert_true(finite == 1);
		}
}

/* ---- errors ---- */

/* All keys are alike, so that the weights of a query are equal however large its scores are. */
static void check_large_scores(double key, double added, bool causal, enum tensor_dtype dtype)
{
	const int64_t l = 300;

	tensor_scope {
		tensor *wide[] = { noise(1, TENSOR_INTS(1, 2, l, 4)),
				   ok(tensor_full(TENSOR_INTS(1, 2, l, 4), S(key), F64)),
				   noise(3, TENSOR_INTS(1, 2, l, 5)) };
		tensor *mask = causal ? tensor_none :
					ok(tensor_full(TENSOR_INTS(l, 1), S(added), F64)),
		       *in[3];

		/* Queries that keep their small scores are in the same blocks. */
		if (!causal)
			assert_done(tensor_fill_(ok(tensor_narrow(mask, 0, 0, 9)), S(1)) ? 0 : -1);
		for (int i = 0; i < 3; i++) {
			in[i] = leaf(ok(tensor_to(wide[i], OF(dtype))));
			wide[i] = leaf(ok(tensor_to(ok(tensor_detach(in[i])), F64)));
		}
		differentiate(fused(in, causal ? mask : ok(tensor_to(mask, OF(dtype))), causal, 1),
			      in);
		differentiate(defined(wide, causal ? mask : constant(0, TENSOR_INTS(1, 1)), causal,
				      1),
			      wide);
		for (int i = 1; i < 3; i++)
			assert_true(difference(tensor_grad(in[i]), tensor_grad(wide[i])) <
				    (dtype == TENSOR_BF16 ? 0.04 : 2e-4));
	}
}

static void weights_in_gradients_are_those_of_large_scores(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		check_large_scores(1, -1e9, false, dtypes[i]);
		check_large_scores(1, -3e38, false, dtypes[i]);
		check_large_scores(1, 1e30, false, dtypes[i]);
		check_large_scores(0x1p40, 0, true, dtypes[i]);
	}
}

static void arguments_that_do_not_fit_fail(void **state)
{
	(void)state;
	tensor_scope {
		tensor *q = constant(1, TENSOR_INTS(2, 9, 4)),
		       *k = constant(1, TENSOR_INTS(2, 5, 4)), *out, *sums, *grads[3];
		tensor *sparse = ok(tensor_to_sparse(constant(1, TENSOR_INTS(9, 4))));
		tensor *mask = ok(tensor_ones(TENSOR_INTS(9, 5), OF(TENSOR_BOOL)));
		tensor *wide = ok(tensor_expand(constant(1, TENSOR_INTS(9, 1)),
						TENSOR_INTS(9, (int64_t)1 << 40)));

#define FAILS(mask, causal, words, ...)                                                         \
	assert_fails(tensor__attention(mask, TENSOR_LIST(__VA_ARGS__), causal, TENSOR_NO_FLOAT, \
				       &out, &sums),                                            \
		     EINVAL, words)
		FAILS(tensor_none, false, "3 inputs", q, k);
		FAILS(tensor_none, false, "do not fit", q, k, q);
		FAILS(tensor_none, false, "do not fit", q, constant(1, TENSOR_INTS(3, 5, 4)), k);
		FAILS(tensor_none, false, "2 dimensions", q, k, constant(1, TENSOR_INTS(5)));
		FAILS(tensor_none, false, "one dtype", q, k, ok(tensor_to(k, F64)));
		FAILS(tensor_none, false, "floating", ok(tensor_to(q, I64)), ok(tensor_to(k, I64)),
		      ok(tensor_to(k, I64)));
		FAILS(tensor_none, false, "too many features", wide, wide, wide);
		FAILS(mask, true, "is_causal", q, k, k);
		FAILS(ok(tensor_to(mask, I64)), false, "bool", q, k, k);
		FAILS(ok(tensor_ones(TENSOR_INTS(9, 4), OF(TENSOR_BOOL))), false, "do not fit", q,
		      k, k);
		FAILS(ok(tensor_ones(TENSOR_INTS(3, 1, 9, 5), OF(TENSOR_BOOL))), false,
		      "do not fit", q, k, k);
#undef FAILS
		assert_true(tensor__attention(tensor_none, TENSOR_LIST(sparse, sparse, sparse),
					      false, 1, &out, &sums) < 0);
		tensor_clear_error();
		assert_done(tensor__attention(mask, TENSOR_LIST(q, k, k), false, 1, &out, &sums));
		assert_fails(tensor__attention_backward(q, q, k, k, mask, out, out, false, 1,
							&grads[0], &grads[1], &grads[2]),
			     EINVAL, "do not fit");
		assert_fails(tensor__attention_backward(out, q, k, k, mask, out,
							ok(tensor_to(sums, F64)), false, 1,
							&grads[0], &grads[1], &grads[2]),
			     EINVAL, "f32");
	}
}

/* Several ranges of queries, and gradients that are converted. */
static void without_memory_attention_gives_enomem(void **state)
{
	const struct attention_case c = { 1, 1, 400, 20, 4, 4, BOOL_MASK, false, 0 };
	struct tensor_live_counts before, after;
	bool again = true;
	long n = 0;

	(void)state;
	if (!fail_possible)
		skip();
	for (int i = 0; i < 2; i++)
		tensor_scope {
			tensor *in[3], *mask = mask_of(&c), *seed;

			make(&c, i ? TENSOR_F32 : TENSOR_F16, in);
			seed = ok(tensor_detach(in[0]));
			assert_done(tensor_backward_ex(TENSOR_LIST(fused(in, mask, false, 1)),
						       &seed, (tensor_list){ 0 }, NULL, 0));
			for (int k = 0; k < 3; k++)
				tensor_set_grad(in[k], NULL);
			fail_spare_others();
			tensor_live_counts(&before);
			for (again = true, n = 0; again && n < 2000;) {
				tensor_scope {
					tensor *out, *sums;
					int err;

					tensor_clear_error();
					fail_at(++n);
					err = tensor__attention(mask,
								TENSOR_LIST(in[0], in[1], in[2]),
								false, 1, &out, &sums);
					if (!err)
						err = tensor_backward_ex(TENSOR_LIST(out), &seed,
									 (tensor_list){ 0 }, NULL,
									 0);
					again = fail_end();
					if (err < 0)
						assert_int_equal(tensor_last_error()->code, ENOMEM);
				}
				for (int k = 0; k < 3; k++)
					tensor_set_grad(in[k], NULL);
				tensor_live_counts(&after);
				assert_int_equal(after.tensors, before.tensors);
				assert_int_equal(after.storages, before.storages);
			}
			assert_in_range(n, 2, 1999);
		}
}

int main(int argc, char **argv)
{
	/* Those that call the kernel of bf16, and the others. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reduced_floats_are_summed_in_f32),
		cmocka_unit_test(autocast_converts_the_inputs),
		cmocka_unit_test(results_do_not_depend_on_the_number_of_threads),
		cmocka_unit_test(last_pairs_are_filled_with_zero),
		cmocka_unit_test(weights_in_gradients_are_those_of_large_scores),
		cmocka_unit_test(output_and_gradients_are_those_of_the_definition),
		cmocka_unit_test(batches_and_heads_broadcast),
		cmocka_unit_test(grouped_heads_are_those_of_repeated_heads),
		cmocka_unit_test(operator_gives_the_definition),
		cmocka_unit_test(results_have_the_order_of_dimensions_of_the_query),
		cmocka_unit_test(gradients_are_those_of_finite_differences),
		cmocka_unit_test(special_values_give_what_softmax_gives),
		cmocka_unit_test(excluded_keys_have_gradient_zero),
		cmocka_unit_test(arguments_that_do_not_fit_fail),
		cmocka_unit_test(without_memory_attention_gives_enomem),
	};

	(void)argc;
#ifdef TILES
	setenv("TENSOR_CPU_TILES", TILES, 0);
#endif
	fail_without_caches(argv);
	return _cmocka_run_group_tests(NAME, tests, TESTS, NULL, NULL);
}
