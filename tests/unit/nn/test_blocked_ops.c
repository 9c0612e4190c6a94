// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The blocked layout: linear, pooling and elementwise operators against the dense kernels, and the
 * gradients of a network.
 */
#include "blocked.h"
#include "formulas.h"

/* ---- linear ---- */

static void linear_equals_the_dense_one(void **state)
{
	const int64_t shapes[][3] = {
		{ 1, 1, 1 }, { 3, 17, 5 }, { 1, 300, 1000 }, { 64, 128, 33 }, { 9, 64, 64 }
	};

	NEED_ONEDNN();
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		tensor_scope {
			int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
			tensor *x = noise(1, m, k), *w = noise(2, n, k), *b = noise(3, n);
			tensor *want = ok(tensor_linear(x, w, b)), *bw = blocked(w);
			tensor *ready = ok(tensor__reorder_linear_weight(bw, m));
			tensor *y = ok(tensor_linear(blocked(x), bw, blocked(b)));

			assert_int_equal(tensor_layout(y), TENSOR_BLOCKED);
			assert_like(y, want, 1e-3);
			assert_like(ready, w, 0);
			assert_like(tensor_linear(blocked(x), ready, b), want, 1e-3);
			y = ok(tensor_mkldnn_linear(x, ready, b));
			assert_int_equal(tensor_layout(y), TENSOR_STRIDED);
			assert_like(y, want, 1e-3);
			assert_like(tensor_linear(blocked(x), w, tensor_none),
				    tensor_linear(x, w, tensor_none), 1e-3);
		}
	tensor_scope {
		tensor *x = noise(1, 2, 3, 8), *w = noise(2, 5, 8);

		assert_like(tensor_linear(blocked(x), blocked(w), tensor_none),
			    tensor_linear(x, w, tensor_none), 1e-5);
		assert_like(tensor_linear(blocked(noise(3, 3, 4, 8)), blocked(w),
					  blocked(noise(4, 5))),
			    tensor_linear(noise(3, 3, 4, 8), w, noise(4, 5)), 1e-5);
		assert_like(tensor_linear(noise(3, 3, 4, 8), blocked(w), tensor_none),
			    tensor_linear(noise(3, 3, 4, 8), w, tensor_none), 1e-5);
		assert_like(tensor_linear(blocked(noise(1, 0, 8)), w, tensor_none), noise(1, 0, 5),
			    0);
		assert_fails(tensor_linear(blocked(noise(1, 2, 7)), w, tensor_none) != NULL, EINVAL,
			     "[..., k]");
		assert_fails(tensor_linear(blocked(x), w, noise(1, 4)) != NULL, EINVAL,
			     "bias must be");
		assert_fails(tensor__reorder_linear_weight(blocked(w), 0) != NULL, EINVAL,
			     "positive");
	}
}

/* ---- pooling ---- */

static void pooling_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	for (int i = 0; i < 64; i++)
		tensor_scope {
			bool ceil = i & 1, padded = i & 2;
			tensor_ints kernel = I(i & 4 ? 3 : 2), stride = I(i & 8 ? 2 : 1);
			tensor_ints padding = I(i & 16 ? 1 : 0);
			tensor *x = noise(i, 2, i & 32 ? 17 : 3, 9, 12);
			/* A blocked tensor whose 17 channels are padded. */
			tensor *w = noise(1, i & 32 ? 17 : 3, 1, 1, 1), *b;

			b = ok(tensor_conv2d(blocked(x), blocked(w), tensor_none, I(1), I(0), I(1),
					     i & 32 ? 17 : 3));
			x = ok(tensor_to_dense(b));
			assert_like(tensor_max_pool2d(b, kernel, stride, padding, I(1), ceil),
				    tensor_max_pool2d(x, kernel, stride, padding, I(1), ceil), 0);
			assert_like(tensor_max_pool2d(b, kernel, stride, padding, I(2), ceil),
				    tensor_max_pool2d(x, kernel, stride, padding, I(2), ceil), 0);
			assert_like(tensor_avg_pool2d(b, kernel, stride, padding, ceil, padded,
						      TENSOR_NONE),
				    tensor_avg_pool2d(x, kernel, stride, padding, ceil, padded,
						      TENSOR_NONE),
				    1e-6);
			assert_like(tensor_avg_pool2d(b, kernel, stride, padding, ceil, padded, 7),
				    tensor_avg_pool2d(x, kernel, stride, padding, ceil, padded, 7),
				    1e-6);
		}
}

static void pool3d_and_adaptive_pooling_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = noise(1, 2, 3, 6, 7, 8), *y = noise(1, 2, 18, 12, 8), *b = blocked(y);

		assert_like(tensor_max_pool3d(blocked(x), I(2, 3, 2), I(2), I(1, 0, 1), I(1),
					      false),
			    tensor_max_pool3d(x, I(2, 3, 2), I(2), I(1, 0, 1), I(1), false), 0);
		assert_like(tensor_avg_pool3d(blocked(x), I(2), I(2), I(1), false, true,
					      TENSOR_NONE),
			    tensor_avg_pool3d(x, I(2), I(2), I(1), false, true, TENSOR_NONE), 1e-6);
		assert_like(tensor_adaptive_avg_pool2d(b, I(1)),
			    tensor_adaptive_avg_pool2d(y, I(1)), 1e-6);
		assert_like(tensor_adaptive_avg_pool2d(b, I(4, 2)),
			    tensor_adaptive_avg_pool2d(y, I(4, 2)), 1e-6);
		assert_like(tensor_adaptive_avg_pool2d(b, I(5, 3)),
			    tensor_adaptive_avg_pool2d(y, I(5, 3)), 1e-6);
		assert_like(tensor_adaptive_avg_pool3d(blocked(x), I(3, 7, 1)),
			    tensor_adaptive_avg_pool3d(x, I(3, 7, 1)), 1e-6);
		assert_like(tensor_max_pool2d(blocked(noise(1, 0, 3, 4, 4)), I(2), I(2), I(0), I(1),
					      false),
			    noise(1, 0, 3, 2, 2), 0);
		assert_like(tensor_mkldnn_max_pool2d(y, I(2), I(2), I(0), I(1), false),
			    tensor_max_pool2d(y, I(2), I(2), I(0), I(1), false), 0);
		x = noise(1, 3, 4, 4);
		assert_like(tensor_max_pool2d(blocked(x), I(2), I(2), I(0), I(1), false),
			    tensor_max_pool2d(x, I(2), I(2), I(0), I(1), false), 0);
		/* Windows that contain only padding. */
		x = noise(1, 1, 1, 1, 4);
		y = ok(tensor_to_dense(
			tensor_max_pool2d(blocked(x), I(2), I(1), I(1), I(2), false)));
		assert_values(tensor_isinf(y), 0, 1, 1, 1, 1);
		assert_fails(tensor_max_pool2d(b, I(2), I(2), I(2), I(1), false) != NULL, EINVAL,
			     "half");
	}
}

/* ---- elementwise ---- */

/* A blocked tensor with padding: 17 channels from a convolution. */
static tensor *gapped(unsigned seed)
{
	return ok(tensor_conv2d(blocked(noise(seed, 2, 17, 5, 6)),
				blocked(noise(seed + 1, 17, 17, 1, 1)), tensor_none, I(1), I(0),
				I(1), 1));
}

static void functions_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = gapped(1), *x = ok(tensor_to_dense(b)), *c;

		assert_like(tensor_relu(b), tensor_relu(x), 0);
		assert_like(tensor_sigmoid(b), tensor_sigmoid(x), 0);
		assert_like(tensor_tanh(b), tensor_tanh(x), 0);
		assert_like(tensor_gelu(b), tensor_gelu(x), 0);
		assert_like(tensor_gelu_opt(b, "tanh"), tensor_gelu_opt(x, "tanh"), 0);
		/*
		 * The padding of the blocks is set to zero again, since a sum over channels reads
		 * it.
		 */
		assert_like(tensor_conv2d(tensor_sigmoid(b),
					  blocked(tensor_ones(I(1, 17, 1, 1), F32)), tensor_none,
					  I(1), I(0), I(1), 1),
			    tensor_conv2d(tensor_sigmoid(x), tensor_ones(I(1, 17, 1, 1), F32),
					  tensor_none, I(1), I(0), I(1), 1),
			    1e-5);
		assert_fails(tensor_gelu_opt(b, "no") != NULL, EINVAL, "none or tanh");
		assert_like(tensor_softmax(b, 1), tensor_softmax(x, 1), 1e-6);
		assert_like(tensor_softmax(b, -1), tensor_softmax(x, -1), 1e-6);
		assert_fails(tensor_softmax(b, 4) != NULL, ERANGE, "out of range");
		c = ok(tensor_clone(b));
		assert_ptr_equal(tensor_sigmoid_(c), c);
		assert_like(c, tensor_sigmoid(x), 0);
	}
}

static void functions_propagate_nan_and_infinity(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		const float v[] = { NAN, -INFINITY, INFINITY, -0.0f, 1 };
		tensor *x = ok(tensor_from_data(v, I(5), F32)), *b = blocked(x);

		assert_values(tensor_to_dense(tensor_relu(b)), 0, NAN, 0, INFINITY, 0, 1);
		assert_values(tensor_to_dense(tensor_tanh(b)), 0, NAN, -1, 1, 0, tanhf(1));
		assert_values(tensor_to_dense(tensor_add(b, b)), 0, NAN, -INFINITY, INFINITY, 0, 2);
	}
}

static void sums_and_products_equal_the_dense_ones(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *a = gapped(1), *b = gapped(5), *x = ok(tensor_to_dense(a)), *c;
		tensor *y = ok(tensor_to_dense(b)), *row = noise(1, 17, 1, 1);

		assert_like(tensor_add(a, b), tensor_add(x, y), 0);
		assert_like(tensor_add(a, blocked(y)), tensor_add(x, y), 0);
		assert_like(tensor_sub(blocked(x), b), tensor_sub(x, y), 0);
		assert_like(tensor_add_opt(a, b, TENSOR_SCALAR(0.5)),
			    tensor_add_opt(x, y, TENSOR_SCALAR(0.5)), 1e-6);
		assert_like(tensor_mul(a, b), tensor_mul(x, y), 0);
		assert_like(tensor_mul(a, blocked(row)), tensor_mul(x, row), 0);
		c = ok(tensor_add(a, y));
		assert_int_equal(tensor_layout(c), TENSOR_BLOCKED);
		assert_like(c, tensor_add(x, y), 0);
		c = ok(tensor_add(y, a));
		assert_int_equal(tensor_layout(c), TENSOR_STRIDED);
		assert_like(c, tensor_add(x, y), 0);
		c = ok(tensor_clone(a));
		ok(tensor_add_(c, b));
		ok(tensor_mul_(c, a));
		assert_like(c, tensor_mul(tensor_add(x, y), x), 1e-6);
		assert_fails(tensor_add_(c, y) != NULL, EINVAL, "must be blocked");
		c = ok(tensor_clone(x));
		ok(tensor_sub_(c, b));
		assert_like(c, tensor_sub(x, y), 0);
	}
}

static void batch_norm_with_running_statistics_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = gapped(1), *x = ok(tensor_to_dense(b)), *w = noise(2, 17),
		       *v = noise(3, 17);
		tensor *mean = noise(4, 17), *var = ok(tensor_abs(noise(5, 17)));

		assert_like(tensor_batch_norm(b, w, v, mean, var, false, 0.1, 1e-5, false),
			    tensor_batch_norm(x, w, v, mean, var, false, 0.1, 1e-5, false), 1e-4);
		assert_like(tensor_batch_norm(b, tensor_none, blocked(v), mean, var, false, 0.1,
					      1e-2, false),
			    tensor_batch_norm(x, tensor_none, v, mean, var, false, 0.1, 1e-2,
					      false),
			    1e-4);
		assert_fails(tensor_batch_norm(b, w, v, mean, var, true, 0.1, 1e-5, false) != NULL,
			     EOPNOTSUPP, "training");
		assert_fails(tensor_batch_norm(b, noise(1, 16), v, mean, var, false, 0.1, 1e-5,
					       false) != NULL,
			     EINVAL, "weight must be [17]");
	}
}

/* ---- gradients of a network ---- */

struct net {
	tensor *w1, *b1, *w2, *gain, *shift, *mean, *var, *w3, *b3;
};

static struct net make_net(void)
{
	return (struct net){ leaf(noise(1, 17, 3, 3, 3)),
			     leaf(noise(2, 17)),
			     leaf(noise(3, 17, 17, 3, 3)),
			     leaf(noise(4, 17)),
			     leaf(noise(5, 17)),
			     noise(6, 17),
			     ok(tensor_abs(noise(7, 17))),
			     leaf(noise(8, 10, 17 * 4)),
			     leaf(noise(9, 10)) };
}

/* Uses the same operators for both layouts. */
static tensor *forward(const struct net *n, tensor *x, bool is_blocked)
{
	tensor *w1 = is_blocked ? blocked(n->w1) : n->w1, *w3 = is_blocked ? blocked(n->w3) : n->w3;
	tensor *y = ok(tensor_relu(ok(tensor_conv2d(x, w1, n->b1, I(1), I(1), I(1), 1)))), *z;

	z = ok(tensor_conv2d(y, n->w2, tensor_none, I(1), I(1), I(1), 1));
	z = ok(tensor_batch_norm(z, n->gain, n->shift, n->mean, n->var, false, 0.1, 1e-1, false));
	z = ok(tensor_add_(z, y));
	z = ok(tensor_max_pool2d(tensor_gelu(z), I(2), I(2), I(0), I(1), false));
	z = ok(tensor_mul(z, tensor_sigmoid(z)));
	z = ok(tensor_avg_pool2d(z, I(2), I(1), I(1), false, true, TENSOR_NONE));
	z = ok(tensor_flatten(tensor_adaptive_avg_pool2d(z, I(2)), 1, -1));
	z = ok(tensor_softmax(tensor_tanh(tensor_linear(z, w3, n->b3)), 1));
	return is_blocked ? ok(tensor_to_dense(z)) : z;
}

static void gradients_equal_those_of_the_dense_network(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		struct net a = make_net(), b = make_net();
		tensor *x = leaf(noise(10, 2, 3, 12, 12)), *u = leaf(noise(10, 2, 3, 12, 12));
		tensor *pick = noise(11, 2, 10), *want, *got;

		want = forward(&a, x, false);
		got = forward(&b, tensor_to_mkldnn(u, NONE), true);
		assert_like(got, want, 1e-5);
		assert_done(tensor_backward(tensor_sum(tensor_mul(want, pick))));
		assert_done(tensor_backward(tensor_sum(tensor_mul(got, pick))));
		assert_like(tensor_grad(u), tensor_grad(x), 1e-4);
		assert_like(tensor_grad(b.w1), tensor_grad(a.w1), 1e-4);
		assert_like(tensor_grad(b.b1), tensor_grad(a.b1), 1e-4);
		assert_like(tensor_grad(b.w2), tensor_grad(a.w2), 1e-4);
		assert_like(tensor_grad(b.gain), tensor_grad(a.gain), 1e-4);
		assert_like(tensor_grad(b.shift), tensor_grad(a.shift), 1e-4);
		assert_like(tensor_grad(b.w3), tensor_grad(a.w3), 1e-4);
		assert_like(tensor_grad(b.b3), tensor_grad(a.b3), 1e-4);
	}
}

/* Blocked copies of f64 inputs, and back: the operators compute in f32. */
static tensor *narrow(tensor *t)
{
	return tensor_to_mkldnn(tensor_to(t, F32), NONE);
}

static tensor *wide(tensor *t)
{
	return tensor_to(tensor_to_dense(t), F64);
}

CASE(fn_to_blocked, wide(narrow(a)))
CASE(fn_blocked_linear, wide(tensor_mkldnn_linear(narrow(a), narrow(b), narrow(c))))
CASE(fn_blocked_linear_plain, wide(tensor_mkldnn_linear(narrow(a), narrow(b), tensor_none)))
CASE(fn_blocked_max2d, wide(tensor_mkldnn_max_pool2d(narrow(a), I(2), I(1), I(0), I(1), false)))
CASE(fn_blocked_max3d,
     wide(tensor_mkldnn_max_pool3d(narrow(tensor_unsqueeze(a, 0)), I(2), I(1), I(0), I(1), false)))
CASE(fn_weight2d,
     wide(tensor_mkldnn_reorder_conv2d_weight(narrow(a), I(0), I(1), I(1), 1, TENSOR_NO_INTS)))
CASE(fn_weight3d, wide(tensor_mkldnn_reorder_conv3d_weight(narrow(tensor_unsqueeze(a, 0)), I(0),
							   I(1), I(1), 1, TENSOR_NO_INTS)))
CASE(fn_weight, wide(tensor__reorder_linear_weight(narrow(a), 4)))
CASE(fn_blocked_reshape, wide(tensor__mkldnn_reshape(narrow(a), I(3, -1))))

static const struct formula formulas[] = {
	ROW(to_blocked, 1, IN_T(1, 0, 2, 3)),
	ROW(blocked_linear, 3, IN(1, 0, 4, 3), IN(1, 0, 2, 3), IN(1, 0, 2)),
	ROW(blocked_linear_plain, 2, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3)),
	ROW(blocked_max2d, 1, IN(4, 0, 1, 2, 3, 3)),
	ROW(blocked_max3d, 1, IN(4, 0, 2, 2, 3, 3)),
	ROW(weight2d, 1, IN(1, 0, 3, 2, 2, 2)),
	ROW(weight3d, 1, IN(1, 0, 3, 2, 2, 2)),
	ROW(weight, 1, IN(1, 0, 3, 4)),
	ROW(blocked_reshape, 1, IN(1, 0, 2, 3)),
};

/* The functions are linear in each input: the quotient of a large difference has no error. */
static void formulas_agree_with_differences(void **state)
{
	if (!available)
		skip_formulas("nn/blocked.yaml");
	NEED_ONEDNN();
	for (size_t i = 0; i < ARRAY_SIZE(formulas); i++)
		tensor_scope {
			const struct formula *f = &formulas[i];
			tensor *in[MAX_IN] = { NULL };

			for (int k = 0; k < f->n; k++)
				in[k] = make_input(f, k);
			if (gradcheck(f->fn, NULL, (tensor_list){ in, f->n }, 1. / 256, 1e-4, 1e-4))
				fail_msg("%s: %s", f->name, tensor_last_error()->text);
		}
}

static void a_blocked_leaf_gets_a_strided_gradient(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *b = leaf(blocked(noise(1, 2, 3))), *w = leaf(blocked(noise(2, 4, 3)));

		for (int i = 0; i < 2; i++)
			assert_done(tensor_backward(tensor_sum(tensor_to_dense(
				tensor_linear(tensor_transpose(tensor_reshape(b, I(3, 2)), 0, 1), w,
					      tensor_none)))));
		assert_int_equal(tensor_layout(tensor_grad(b)), TENSOR_STRIDED);
		assert_like(
			tensor_grad(w),
			tensor_mul_scalar(
				tensor_expand(
					tensor_sum_dim(tensor_transpose(
							       tensor_to_dense(tensor_reshape(
								       tensor_detach(b), I(3, 2))),
							       0, 1),
						       I(0), true),
					I(4, 3)),
				TENSOR_SCALAR(2)),
			1e-5);
	}
}

static void second_derivative_equals_the_dense_one(void **state)
{
	NEED_ONEDNN();
	tensor_scope {
		tensor *x = leaf(noise(1, 6)), *first[2], *second[2];

		for (int i = 0; i < 2; i++) {
			tensor *in = i ? tensor_to_mkldnn(x, NONE) : x;
			tensor *y =
				tensor_sum(tensor_to_dense(ok(tensor_tanh(tensor_mul(in, in)))));

			assert_done(tensor_backward_ex((tensor_list){ &y, 1 }, NULL,
						       (tensor_list){ &x, 1 }, &first[i],
						       TENSOR_CREATE_GRAPH));
			y = ok(tensor_sum(tensor_mul(first[i], first[i])));
			assert_done(tensor_backward_ex((tensor_list){ &y, 1 }, NULL,
						       (tensor_list){ &x, 1 }, &second[i], 0));
		}
		assert_like(first[1], first[0], 1e-5);
		assert_like(second[1], second[0], 1e-4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugin_opens_or_gives_a_reason),
		cmocka_unit_test(linear_equals_the_dense_one),
		cmocka_unit_test(pooling_equals_the_dense_one),
		cmocka_unit_test(pool3d_and_adaptive_pooling_equal_the_dense_ones),
		cmocka_unit_test(functions_equal_the_dense_ones),
		cmocka_unit_test(functions_propagate_nan_and_infinity),
		cmocka_unit_test(sums_and_products_equal_the_dense_ones),
		cmocka_unit_test(batch_norm_with_running_statistics_equals_the_dense_one),
		cmocka_unit_test(gradients_equal_those_of_the_dense_network),
		cmocka_unit_test(formulas_agree_with_differences),
		cmocka_unit_test(a_blocked_leaf_gets_a_strided_gradient),
		cmocka_unit_test(second_derivative_equals_the_dense_one),
	};

	return cmocka_run_group_tests_name("blocked_ops", tests, NULL, NULL);
}
