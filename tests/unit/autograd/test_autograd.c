// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The graph and the engine: what is recorded and saved, where gradients are accumulated, and
 * errors.
 */
#include "autograd.h"

/* ---- the example of the documentation ---- */

/* sin(a * i + b), in f64, so that all languages compute the same values. */
static tensor *wave(int64_t rows, int64_t cols, double a, double b)
{
	double *v = malloc(rows * cols * sizeof(*v));
	tensor *t;

	for (int64_t i = 0; i < rows * cols; i++)
		v[i] = 0.5 * sin(a * (double)i + b);
	t = ok(tensor_from_data(v, TENSOR_INTS(rows, cols), F64));
	free(v);
	return t;
}

struct rnn {
	tensor *W_x, *W_h, *x, *prev_h, *i2h, *h2h, *next_h, *loss;
};

static struct rnn rnn_cell(void)
{
	struct rnn r = { .W_x = leaf(wave(20, 10, 0.37, 0.1)),
			 .W_h = leaf(wave(20, 20, 0.23, 0.7)),
			 .x = wave(1, 10, 0.9, 0.3),
			 .prev_h = wave(1, 20, 0.6, 0.2) };

	r.i2h = ok(tensor_mm(r.W_x, tensor_t(r.x)));
	r.h2h = ok(tensor_mm(r.W_h, tensor_t(r.prev_h)));
	r.next_h = ok(tensor_tanh(tensor_add(r.i2h, r.h2h)));
	r.loss = ok(tensor_sum(r.next_h));
	return r;
}

/*
 * next_h, the first row of the gradient of W_x and the last of W_h, as PyTorch computes them in
 * f64.
 */
static void assert_close(tensor *t, const double *want, int64_t n)
{
	double got[20];

	assert_done(tensor_copy_to(ok(t), got, n * sizeof(*got)));
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= 1e-14))
			fail_msg("element %d is %.17g, expected %.17g", (int)i, got[i], want[i]);
}

static void rnn_cell_gives_reference_gradients(void **state)
{
	static const double next_h[] = {
		0.3595754905674137,   -0.07367219671548303, -0.4815152918450833, 0.168050128735153,
		0.5974372016433653,   -0.5685681349565469,  -0.1991797069421417, 0.406066091979856,
		0.200626345820725,    -0.3654938217468219,  -0.3573472314132225, 0.6688694821335862,
		-0.1298714751315742,  -0.5176015106184956,  0.2281251228858612,	 0.3454994484420317,
		-0.01360342360740414, -0.6072265894170337,  0.4310589288082963,	 0.4277583617783425,
	};
	static const double W_x_row0[] = {
		0.1286555297129132, 0.4057657636104383,	 0.3758005571734997,  0.06143698123099608,
		-0.29942087726621,  -0.4336829852650427, -0.2397424561540504, 0.1356303841389416,
		0.4083608537163417, 0.3720519705042514,
	};
	static const double W_h_row19[] = {
		0.08115868486371722, 0.2930481352274719,   0.402567440908483,	0.3714583575421649,
		0.2105881829623205,  -0.02384650258632761, -0.2499509187133842, -0.3887402878007725,
		-0.3917314902310475, -0.2578796129378801,  -0.0339429676024624, 0.2018509328618046,
		0.3671324951896419,  0.4041641144795307,   0.3000095807071362,	0.09105306906390753,
		-0.1497108992165891, -0.3381765431911165,  -0.4085073912287501, -0.3361348546787412,
	};

	tensor_scope {
		struct rnn r = rnn_cell();
		double loss;

		assert_done(tensor_item(r.loss, &loss));
		assert_true(fabs(loss - 0.5189872204008241) < 1e-13);
		assert_close(r.next_h, next_h, 20);
		assert_done(tensor_backward(r.loss));
		assert_shape(tensor_grad(r.W_x), 20, 10);
		assert_shape(tensor_grad(r.W_h), 20, 20);
		assert_close(tensor_select(tensor_grad(r.W_x), 0, 0), W_x_row0, 10);
		assert_close(tensor_select(tensor_grad(r.W_h), 0, 19), W_h_row19, 20);
		assert_null(tensor_grad(r.x));
		assert_null(tensor_grad(r.prev_h));
	}
}

static void rnn_nodes_hold_exactly_what_their_formulas_read(void **state)
{
	tensor_scope {
		struct rnn r = rnn_cell();
		tensor_node *sum = tensor_grad_fn(r.loss), *tanh_, *add, *mm;
		int nr = -1;

		assert_name(sum, "SumBackward");
		assert_int_equal(tensor_node_saved(sum), 0);
		tanh_ = tensor_node_edge(sum, 0, &nr);
		assert_name(tanh_, "TanhBackward");
		assert_int_equal(nr, 0);
		assert_int_equal(tensor_node_saved(tanh_), 1);
		assert_string_equal(tensor_node_saved_name(tanh_, 0), "result");
		assert_true(tensor_shares_storage(tensor_node_saved_get(tanh_, 0), r.next_h));
		add = tensor_node_edge(tanh_, 0, NULL);
		assert_name(add, "AddBackward");
		assert_int_equal(tensor_node_edges(add), 2);
		assert_int_equal(tensor_node_saved(add), 0);
		assert_ptr_equal(tensor_node_edge(add, 0, NULL), tensor_grad_fn(r.i2h));
		assert_ptr_equal(tensor_node_edge(add, 1, NULL), tensor_grad_fn(r.h2h));
		mm = tensor_grad_fn(r.i2h);
		assert_name(mm, "MmBackward");
		assert_int_equal(tensor_node_edges(mm), 2);
		assert_name(tensor_node_edge(mm, 0, NULL), "AccumulateGrad");
		assert_ptr_equal(tensor_node_edge(mm, 0, NULL), tensor_grad_fn(r.W_x));
		assert_null(tensor_node_edge(mm, 1, NULL)); /* x needs no gradient */
		assert_int_equal(tensor_node_saved(mm), 1);
		assert_string_equal(tensor_node_saved_name(mm, 0), "mat2");
		assert_true(tensor_shares_storage(tensor_node_saved_get(mm, 0), r.x));
		assert_null(tensor_node_saved_name(mm, 1));
		assert_fails(tensor_node_saved_get(mm, 1), EINVAL, "no saved tensor 1");
		assert_null(tensor_grad_fn(r.x));
	}
}

/* ---- leaves ---- */

static void gradients_accumulate_in_a_leaf(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(3));

		assert_done(tensor_backward(tensor_sum(tensor_mul(w, w))));
		assert_values(tensor_grad(w), 0, 2, 4, 6);
		assert_done(tensor_backward(tensor_sum(tensor_mul(w, w))));
		assert_values(tensor_grad(w), 0, 4, 8, 12);
		assert_done(tensor_set_grad(w, NULL));
		assert_null(tensor_grad(w));
		assert_done(tensor_backward(tensor_sum(w)));
		assert_values(tensor_grad(w), 0, 1, 1, 1);
		assert_true(tensor_is_contiguous(tensor_grad(w)));
	}
}

/* Both leaves receive the same gradient: only one of them may keep that tensor without a copy. */
static void leaves_do_not_share_a_gradient(void **state)
{
	tensor_scope {
		tensor *a = leaf_iota(0, TENSOR_INTS(3)), *b = leaf_iota(5, TENSOR_INTS(3));
		tensor *g = iota(1, TENSOR_INTS(3)), *c = ok(tensor_add(a, b));

		assert_done(tensor_backward_ex(TENSOR_LIST(c), &g, (tensor_list){ 0 }, NULL, 0));
		assert_values(tensor_grad(a), 0, 1, 2, 3);
		assert_values(tensor_grad(b), 0, 1, 2, 3);
		assert_false(tensor_shares_storage(tensor_grad(a), tensor_grad(b)));
		assert_false(tensor_shares_storage(tensor_grad(a), g));
		assert_false(tensor_shares_storage(tensor_grad(b), g));
	}
}

static void requires_grad_is_for_floating_leaves(void **state)
{
	tensor_scope {
		tensor *i = ok(tensor_zeros(TENSOR_INTS(2), I64));
		tensor *w = leaf_iota(0, TENSOR_INTS(2));
		tensor *y = ok(tensor_neg(w));

		assert_fails(tensor_set_requires_grad(i, true), EINVAL, "floating");
		assert_fails(tensor_set_requires_grad(y, false), EINVAL, "NegBackward");
		assert_done(tensor_set_requires_grad(y, true));
		assert_true(tensor_is_leaf(w) && tensor_requires_grad(w));
		assert_true(!tensor_is_leaf(y) && tensor_requires_grad(y));
		assert_done(tensor_set_requires_grad(w, false));
		assert_false(tensor_requires_grad(w) || tensor_requires_grad(tensor_neg(w)));
		assert_false(tensor_requires_grad(tensor_gt_scalar(y, S(0))));
		assert_false(tensor_requires_grad(tensor_detach(y)));
	}
}

static void set_grad_checks_shape_and_dtype(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(0, TENSOR_INTS(2));

		assert_fails(tensor_set_grad(w, iota(0, TENSOR_INTS(3))), EINVAL, "[2]");
		assert_fails(tensor_set_grad(w, tensor_zeros(TENSOR_INTS(2), F64)), EINVAL, "f64");
		assert_fails(tensor_set_grad(w, w), EINVAL, "its own");
		assert_done(tensor_set_grad(w, iota(4, TENSOR_INTS(2))));
		assert_done(tensor_backward(tensor_sum(w)));
		assert_values(tensor_grad(w), 0, 5, 6);
	}
}

/* ---- backward ---- */

static void second_backward_needs_retain_graph(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_sum(tensor_exp(w)));

		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, (tensor_list){ 0 }, NULL,
					       TENSOR_RETAIN_GRAPH));
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(w), 1e-5, 2 * exp(1), 2 * exp(2));
		assert_fails(tensor_backward(y), EINVAL, "TENSOR_RETAIN_GRAPH");
		assert_values(tensor_grad(w), 1e-5, 2 * exp(1), 2 * exp(2));
	}
}

static void backward_refuses_invalid_roots(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(0, TENSOR_INTS(2)), *y = ok(tensor_neg(w)), *g[1];
		tensor *other = iota(0, TENSOR_INTS(2)), *wrong = iota(0, TENSOR_INTS(3));
		tensor_list none = { 0 };

		assert_fails(tensor_backward(NULL), EINVAL, "NULL");
		assert_fails(tensor_backward(y), EINVAL, "shape [2]");
		assert_fails(tensor_backward(other), EINVAL, "does not require");
		assert_fails(tensor_backward_ex(TENSOR_LIST(y), &wrong, none, NULL, 0), EINVAL,
			     "[3]");
		assert_fails(tensor_backward_ex(TENSOR_LIST(y), &other, TENSOR_LIST(other), g, 0),
			     EINVAL, "input 0");
		assert_fails(tensor_backward_ex(none, NULL, none, NULL, 0), EINVAL, "0 outputs");
		assert_fails(tensor_backward_ex(TENSOR_LIST(y), &other, none, NULL, 8), EINVAL,
			     "flags");
		assert_null(tensor_grad(w));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), &other, none, NULL, 0));
		assert_values(tensor_grad(w), 0, -0.0, -1);
	}
}

static void gradients_of_chosen_inputs_do_not_change_leaves(void **state)
{
	tensor_scope {
		tensor *a = leaf_iota(1, TENSOR_INTS(2)), *b = leaf_iota(3, TENSOR_INTS(2));
		tensor *unused = leaf_iota(0, TENSOR_INTS(2)), *m = ok(tensor_mul(a, b));
		tensor *y = ok(tensor_sum(tensor_mul(m, m))), *g[4];

		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(m, a, unused, a),
					       g, 0));
		assert_values(g[0], 0, 6, 16);
		assert_values(g[1], 0, 18, 64);
		assert_null(g[2]);
		assert_values(g[3], 0, 18, 64);
		assert_null(tensor_grad(a));
		assert_null(tensor_grad(b));
	}
}

static void several_outputs_share_their_graph(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *m = ok(tensor_mul_scalar(w, S(3)));
		tensor *s = ok(tensor_sum(m)), *g = iota(10, TENSOR_INTS(2));

		/* m is an output and also an intermediate result of s */
		assert_done(tensor_backward_ex(TENSOR_LIST(s, m), (tensor *const[]){ NULL, g },
					       (tensor_list){ 0 }, NULL, 0));
		assert_values(tensor_grad(w), 0, 33, 36);
	}
}

static void nothing_is_recorded_under_no_grad(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *y = NULL;

		tensor_no_grad {
			assert_false(tensor_is_grad_enabled());
			y = ok(tensor_mul(w, w));
			assert_ptr_equal(tensor_add_(w, iota(1, TENSOR_INTS(2))), w);
		}
		assert_true(tensor_is_grad_enabled());
		assert_false(tensor_requires_grad(y));
		assert_values(w, 0, 2, 4);
	}
}

static void double_backward_differentiates_the_gradient(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(3)), *g, *h;
		tensor *y = ok(tensor_sum(tensor_mul(tensor_mul(w, w), w)));

		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(w), &g,
					       TENSOR_CREATE_GRAPH));
		assert_values(g, 0, 3, 12, 27);
		y = ok(tensor_sum(g));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(w), &h,
					       TENSOR_CREATE_GRAPH));
		assert_values(h, 0, 6, 12, 18);
		assert_done(tensor_backward(tensor_sum(h)));
		assert_values(tensor_grad(w), 0, 6, 6, 6);
	}
}

static void undefined_gradients_count_as_dependencies(void **state)
{
	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2)), *y = ok(tensor_mul_scalar(w, S(2)));
		tensor *z = ok(tensor_clone(y)), *u = leaf_iota(3, TENSOR_INTS(2));

		ok(tensor_zero_(z)); /* no gradient reaches y through z from here */
		assert_done(tensor_backward(tensor_sum(tensor_add(tensor_mul(z, u), y))));
		assert_values(tensor_grad(w), 0, 2, 2);
		assert_values(tensor_grad(u), 0, 0, 0);
		y = ok(tensor_sum(tensor_mul(z, u)));
		assert_done(tensor_set_grad(w, NULL));
		assert_done(tensor_backward(y));
		assert_null(tensor_grad(w));
	}
}

static void argument_without_a_derivative_is_refused(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(0, TENSOR_INTS(2, 3)), *weight = leaf_iota(1, TENSOR_INTS(3));
		tensor *target = ok(tensor_zeros(TENSOR_INTS(2), I64));

		assert_fails(tensor_nll_loss_opt(x, target, weight, 1, -100), EOPNOTSUPP,
			     "no derivative for weight");
		ok(tensor_nll_loss_opt(x, target, tensor_detach(weight), 1, -100));
	}
}

static void printing_names_the_node(void **state)
{
	char text[200];

	tensor_scope {
		tensor *w = leaf_iota(1, TENSOR_INTS(2));

		tensor_format(w, text, sizeof(text));
		assert_contains(text, ", requires_grad=True)");
		tensor_format(ok(tensor_neg(w)), text, sizeof(text));
		assert_contains(text, ", grad_fn=<NegBackward>)");
	}
}

static void broadcast_and_promoted_arguments_get_their_own_shape_and_dtype(void **state)
{
	tensor_scope {
		tensor *a = leaf_iota(1, TENSOR_INTS(3)), *b = leaf_iota(0, TENSOR_INTS(2, 1));
		tensor *c = leaf(ok(tensor_full(TENSOR_SCALAR_SHAPE, S(2.0), F64)));

		assert_done(tensor_backward(tensor_sum(tensor_mul(tensor_add(a, b), c))));
		assert_values(tensor_grad(a), 0, 4, 4, 4);
		assert_shape(tensor_grad(b), 2, 1);
		assert_values(tensor_grad(b), 0, 6, 6);
		assert_int_equal(tensor_dtype(tensor_grad(c)), TENSOR_F64);
		assert_values(tensor_grad(c), 0, 15);
	}
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnn_cell_gives_reference_gradients),
		cmocka_unit_test(rnn_nodes_hold_exactly_what_their_formulas_read),
		cmocka_unit_test(gradients_accumulate_in_a_leaf),
		cmocka_unit_test(leaves_do_not_share_a_gradient),
		cmocka_unit_test(requires_grad_is_for_floating_leaves),
		cmocka_unit_test(set_grad_checks_shape_and_dtype),
		cmocka_unit_test(second_backward_needs_retain_graph),
		cmocka_unit_test(backward_refuses_invalid_roots),
		cmocka_unit_test(gradients_of_chosen_inputs_do_not_change_leaves),
		cmocka_unit_test(several_outputs_share_their_graph),
		cmocka_unit_test(nothing_is_recorded_under_no_grad),
		cmocka_unit_test(double_backward_differentiates_the_gradient),
		cmocka_unit_test(undefined_gradients_count_as_dependencies),
		cmocka_unit_test(argument_without_a_derivative_is_refused),
		cmocka_unit_test(printing_names_the_node),
		cmocka_unit_test(broadcast_and_promoted_arguments_get_their_own_shape_and_dtype),
	};

	return cmocka_run_group_tests_name("autograd", tests, NULL, NULL);
}
