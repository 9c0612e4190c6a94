// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Products with a bias and an activation in one kernel, against a copy of the bias, addmm in place and the activation: the
 * same bits, for every algorithm of products.
 */
#include "check.h"

#include <math.h>

static const enum tensor_dtype dtypes[] = { TENSOR_F32, TENSOR_F64, TENSOR_BF16, TENSOR_F16 };
static const char *const names[] = { "none", "relu", "gelu", "gelu_tanh", "silu" };

static tensor *activated(tensor *t, const char *name)
{
	if (!strcmp(name, "relu"))
		return ok(tensor_relu(t));
	if (!strcmp(name, "gelu"))
		return ok(tensor_gelu(t));
	if (!strcmp(name, "gelu_tanh"))
		return ok(tensor_gelu_opt(t, "tanh"));
	return strcmp(name, "silu") ? t : ok(tensor_silu(t));
}

static tensor *numbers(enum tensor_dtype dtype, tensor_ints shape)
{
	return ok(tensor_to(ok(tensor_randn(shape, F32)), OF(dtype)));
}

/* Numbers of shape [r, c], held as [c, r] if turned. */
static tensor *matrix(enum tensor_dtype dtype, int64_t r, int64_t c, bool turned)
{
	return turned ? ok(tensor_t(numbers(dtype, TENSOR_INTS(c, r)))) :
			numbers(dtype, TENSOR_INTS(r, c));
}

/* f(beta * bias + alpha * a b) by operators that know no bias of rows. */
static tensor *apart(tensor *bias, tensor *a, tensor *b, double beta, double alpha,
		     const char *name)
{
	tensor *c = ok(tensor_contiguous(
		ok(tensor_expand(bias, TENSOR_INTS(tensor_size(a, 0), tensor_size(b, 1))))));

	/* A vector that is expanded to one row is its own memory. */
	c = ok(tensor_clone(c));
	return activated(ok(tensor_addmm_opt_(c, a, b, S(beta), S(alpha))), name);
}

static void check_one(enum tensor_dtype d, int64_t m, int64_t k, int64_t n, int turned,
		      const char *name, double beta, double alpha)
{
	tensor *a = matrix(d, m, k, turned & 1), *b = matrix(d, k, n, turned & 2);
	tensor *bias = numbers(d, TENSOR_INTS(n)), *want = apart(bias, a, b, beta, alpha, name);

	for (int threads = 1; threads <= 3; threads++) {
		assert_done(tensor_set_num_threads(threads));
		assert_same(ok(tensor__addmm_pointwise_opt(bias, a, b, name, S(beta), S(alpha))),
			    want);
		if (!strcmp(name, "none"))
			assert_same(ok(tensor_addmm_opt(bias, a, b, S(beta), S(alpha))), want);
	}
}

static void the_bits_are_those_of_separate_operators(void **state)
{
	static const int64_t shapes[][3] = {
		{ 1, 5, 7 },	   { 1, 300, 200 },    { 1, 40, 3000 },	  { 2, 9, 5 },
		{ 3, 0, 4 },	   { 40, 0, 33 },      { 0, 3, 4 },	  { 3, 4, 0 },
		{ 7, 130, 70 },	   { 9, 200, 100 },    { 33, 150, 6 },	  { 50, 20, 2 },
		{ 5000, 3, 1 },	   { 64, 64, 64 },     { 65, 400, 500 },  { 200, 300, 520 },
		{ 100, 513, 49 },  { 300, 400, 1000 }, { 700, 200, 700 }, { 1, 2100, 700 },
		{ 12, 1100, 2100 }
	};
	const int before = tensor_get_num_threads();
	int at = 0;

	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++)
		for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
			for (int turned = 0; turned < 4; turned++)
				tensor_scope {
					const int64_t *n = shapes[s];
					const bool plain = at % 3;

					check_one(dtypes[d], n[0], n[1], n[2], turned,
						  names[at++ % 5], plain ? 1 : -0.7,
						  plain ? 1 : 1.3);
				}
	assert_done(tensor_set_num_threads(before));
}

static void results_may_have_any_strides(void **state)
{
	static const int64_t strides[][2] = { { 70, 1 }, { 1, 70 }, { 150, 2 }, { 2, 150 } };

	for (size_t s = 0; s < ARRAY_SIZE(strides); s++)
		for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
			for (int n = 1; n < 70; n += 17)
				tensor_scope {
					enum tensor_dtype dt = dtypes[d];
					tensor *base = numbers(dt, TENSOR_INTS(20000));
					tensor *out = ok(tensor_as_strided(
						base, TENSOR_INTS(66, n),
						TENSOR_INTS(strides[s][0], strides[s][1]), 3));
					tensor *a = matrix(dt, 66, 30, false);
					tensor *b = matrix(dt, 30, n, n & 16);
					tensor *bias = numbers(dt, TENSOR_INTS(n));

					ok(tensor__addmm_pointwise_opt_out(out, bias, a, b, "silu",
									   S(1), S(1)));
					assert_same(out, apart(bias, a, b, 1, 1, "silu"));
				}
}

/* A bias with steps, of one element, a matrix, the output, and one that beta 0 does not read. */
static void self_may_be_anything_that_broadcasts(void **state)
{
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		tensor_scope {
			enum tensor_dtype dt = dtypes[d];
			tensor *a = matrix(dt, 20, 30, false), *b = matrix(dt, 30, 50, true);
			tensor *added[] = {
				ok(tensor_as_strided(numbers(dt, TENSOR_INTS(100)), TENSOR_INTS(50),
						     TENSOR_INTS(2), 1)),
				numbers(dt, TENSOR_INTS(1)),
				numbers(dt, TENSOR_INTS(1, 50)),
				numbers(dt, TENSOR_INTS(20, 1)),
				numbers(dt, TENSOR_INTS(20, 50)),
				ok(tensor_full(TENSOR_SHAPE(50), S(NAN), OF(dt))),
			};

			for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
				double beta = i == 5 ? 0 : 0.5;
				tensor *want = apart(added[i], a, b, beta, 1, "relu");

				assert_same(ok(tensor__addmm_pointwise_opt(added[i], a, b, "relu",
									   S(beta), S(1))),
					    want);
			}
			/* self is the output. */
			tensor *want = apart(added[4], a, b, 1, 1, "gelu");

			ok(tensor__addmm_pointwise_opt_out(added[4], added[4], a, b, "gelu", S(1),
							   S(1)));
			assert_same(added[4], want);
		}
}

static void nan_and_infinity_stay(void **state)
{
	tensor *a = ok(tensor_ones(TENSOR_SHAPE(3, 2), F32));
	tensor *b = ok(tensor_ones(TENSOR_SHAPE(2, 4), F32));
	const float v[] = { NAN, INFINITY, -INFINITY, -5 };
	tensor *bias = ok(tensor_from_data(v, TENSOR_INTS(4), F32));

	assert_values(ok(tensor_select(ok(tensor__addmm_activation(bias, a, b)), 0, 2)), 0, NAN,
		      INFINITY, 0, 0);
	assert_same(ok(tensor__addmm_activation_opt(bias, a, b, S(1), S(1), true)),
		    ok(tensor_gelu_opt(ok(tensor_addmm(bias, a, b)), "tanh")));
}

static void linear_activation_is_linear_and_the_activation(void **state)
{
	for (size_t d = 0; d < ARRAY_SIZE(dtypes); d++)
		for (size_t f = 0; f < ARRAY_SIZE(names); f++)
			tensor_scope {
				enum tensor_dtype dt = dtypes[d];
				tensor *w = numbers(dt, TENSOR_INTS(70, 40));
				tensor *bias = numbers(dt, TENSOR_INTS(70));
				tensor *xs[] = { numbers(dt, TENSOR_INTS(40)),
						 numbers(dt, TENSOR_INTS(6, 40)),
						 numbers(dt, TENSOR_INTS(2, 3, 40)),
						 ok(tensor_transpose(
							 numbers(dt, TENSOR_INTS(3, 2, 40)), 0, 1)),
						 numbers(dt, TENSOR_INTS(0, 40)) };

				for (size_t i = 0; i < ARRAY_SIZE(xs); i++) {
					assert_same(ok(tensor_linear_activation(xs[i], w, bias,
										names[f])),
						    activated(ok(tensor_linear(xs[i], w, bias)),
							      names[f]));
					assert_same(
						ok(tensor_linear_activation(xs[i], w, tensor_none,
									    names[f])),
						activated(ok(tensor_linear(xs[i], w, tensor_none)),
							  names[f]));
				}
			}
}

/* A recorded call has the result and the gradients of the two operators. */
static void recorded_calls_have_the_same_gradients(void **state)
{
	for (size_t f = 0; f < ARRAY_SIZE(names); f++) {
		tensor *x = ok(tensor_randn(TENSOR_SHAPE(5, 8), F32)), *grads[2];
		tensor *w = ok(tensor_randn(TENSOR_SHAPE(12, 8), F32));
		tensor *bias = ok(tensor_randn(TENSOR_SHAPE(12), F32));

		assert_done(tensor_set_requires_grad(w, true));
		for (int i = 0; i < 2; i++) {
			tensor *y = i ? activated(ok(tensor_linear(x, w, bias)), names[f]) :
					ok(tensor_linear_activation(x, w, bias, names[f]));

			assert_done(tensor_backward(ok(tensor_sum(y))));
			grads[i] = ok(tensor_clone(tensor_grad(w)));
			ok(tensor_zero_(tensor_grad(w)));
		}
		assert_same(grads[0], grads[1]);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	tensor *a = ok(tensor_ones(TENSOR_SHAPE(3, 2), F32));
	tensor *b = ok(tensor_ones(TENSOR_SHAPE(2, 4), F32));
	tensor *bias = ok(tensor_ones(TENSOR_SHAPE(4), F32));
	tensor *i = ok(tensor_ones(TENSOR_SHAPE(2, 2), I64));

	assert_fails(tensor__addmm_pointwise(bias, a, b, "tanh"), EINVAL, "silu, got 'tanh'");
	assert_fails(tensor_linear_activation(a, ok(tensor_t(b)), tensor_none, ""), EINVAL,
		     "silu, got ''");
	assert_fails(tensor_linear_activation(a, ok(tensor_t(b)), bias, "Relu"), EINVAL,
		     "silu, got 'Relu'");
	assert_fails(tensor__addmm_activation(ok(tensor_ones(TENSOR_SHAPE(3), F32)), a, b), EINVAL,
		     "does not broadcast");
	assert_fails(tensor__addmm_activation_opt(i, i, i, S(1), S(1), true), EOPNOTSUPP, "");
	assert_same(ok(tensor__addmm_activation(i, i, i)), ok(tensor_addmm(i, i, i)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bits_are_those_of_separate_operators),
		cmocka_unit_test(results_may_have_any_strides),
		cmocka_unit_test(self_may_be_anything_that_broadcasts),
		cmocka_unit_test(nan_and_infinity_stay),
		cmocka_unit_test(linear_activation_is_linear_and_the_activation),
		cmocka_unit_test(recorded_calls_have_the_same_gradients),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("addmm_activation", tests, NULL, NULL);
}
