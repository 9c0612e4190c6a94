// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of bf16 and the gradients of their inputs, which pair channels, and of their weights, which pair
 * positions, against f64. test_conv_tiles.c runs them with tiles.
 */
#include "bf16.h"

#include <stdlib.h>

#ifndef TILES
#define TILES "none"
#define NAME  "conv_bf16"
#endif

struct shape {
	int64_t batch, in, out, groups, size[3], taps, stride, padding, dilation;
	int spatial;
	bool transposed;
};

static void check_close(tensor *c, tensor *exact, tensor *sizes, const struct shape *s)
{
	if (!is_rounded_once(c, exact, sizes))
		fail_msg("%d spatial, batch %lld, in %lld, out %lld, groups %lld, taps %lld",
			 s->spatial, (long long)s->batch, (long long)s->in, (long long)s->out,
			 (long long)s->groups, (long long)s->taps);
}

struct parameters {
	int64_t stride[3], padding[3], dilation[3], none[3];
};

static struct parameters parameters_of(const struct shape *s)
{
	struct parameters p = { .none = { 0 } };

	for (int d = 0; d < s->spatial; d++) {
		p.stride[d] = s->stride;
		p.padding[d] = s->padding;
		p.dilation[d] = s->dilation;
	}
	return p;
}

static tensor *convolve(const struct shape *s, tensor *x, tensor *w, tensor *bias)
{
	struct parameters p = parameters_of(s);
	int n = s->spatial;

	return ok(tensor_convolution(x, w, bias, (tensor_ints){ p.stride, n },
				     (tensor_ints){ p.padding, n }, (tensor_ints){ p.dilation, n },
				     s->transposed, (tensor_ints){ p.none, n }, s->groups));
}

/* The gradients of x and w; the others are NULL. */
struct gradients {
	tensor *x, *w, *bias;
};

static struct gradients gradients_of(const struct shape *s, tensor *grad, tensor *x, tensor *w)
{
	struct parameters p = parameters_of(s);
	struct gradients g;
	int n = s->spatial;

	assert_done(tensor_convolution_backward(
		grad, x, w, TENSOR_INTS(s->out), (tensor_ints){ p.stride, n },
		(tensor_ints){ p.padding, n }, (tensor_ints){ p.dilation, n }, s->transposed,
		(tensor_ints){ p.none, n }, s->groups, 3, &g.x, &g.w, &g.bias));
	return g;
}

static void check_gradients(const struct shape *s, tensor *grad, tensor *x, tensor *w)
{
	struct gradients g = gradients_of(s, grad, x, w),
			 exact = gradients_of(s, in_f64(grad), in_f64(x), in_f64(w)),
			 sizes = gradients_of(s, tensor_abs(in_f64(grad)), tensor_abs(in_f64(x)),
					      tensor_abs(in_f64(w)));

	check_close(g.x, exact.x, sizes.x, s);
	check_close(g.w, exact.w, sizes.w, s);
}

static void check_shape(const struct shape *s)
{
	int64_t x_size[5] = { s->batch, s->in }, w_size[5] = { s->out, s->in / s->groups };
	tensor *x, *w, *bias, *y, *grad, *sizes;

	if (s->transposed) {
		w_size[0] = s->in;
		w_size[1] = s->out / s->groups;
	}
	for (int d = 0; d < s->spatial; d++) {
		x_size[2 + d] = s->size[d];
		w_size[2 + d] = s->taps;
	}
	x = bf16_values((tensor_ints){ x_size, 2 + s->spatial });
	w = bf16_values((tensor_ints){ w_size, 2 + s->spatial });
	bias = bf16_values(TENSOR_SHAPE(s->out));
	y = convolve(s, x, w, bias);
	sizes = convolve(s, tensor_abs(in_f64(x)), tensor_abs(in_f64(w)), tensor_abs(in_f64(bias)));
	check_close(y, convolve(s, in_f64(x), in_f64(w), in_f64(bias)), sizes, s);
	grad = bf16_values(tensor_shape(y));
	check_gradients(s, grad, x, w);
}

static void shapes_of_models_and_odd_ones(void **state)
{
	static const struct shape shapes[] = {
		{ 2, 3, 16, 1, { 23, 23 }, 7, 2, 3, 1, 2, false },
		{ 2, 16, 24, 1, { 14, 14 }, 3, 1, 1, 1, 2, false },
		{ 2, 33, 17, 1, { 9, 11 }, 3, 2, 1, 1, 2, false },
		{ 1, 64, 64, 1, { 7, 7 }, 1, 1, 0, 1, 2, false },
		{ 3, 20, 40, 2, { 10, 8 }, 3, 1, 2, 2, 2, false },
		{ 2, 27, 36, 3, { 12, 5 }, 3, 2, 1, 1, 2, false },
		{ 2, 5, 7, 1, { 60 }, 5, 1, 2, 1, 1, false },
		{ 1, 80, 90, 1, { 150 }, 3, 2, 1, 1, 1, false },
		{ 1, 7, 9, 1, { 5, 6, 7 }, 3, 1, 1, 1, 3, false },
		{ 2, 9, 8, 1, { 6, 7 }, 3, 2, 1, 1, 2, true },
		{ 1, 18, 20, 2, { 9 }, 4, 3, 0, 1, 1, true },
		{ 1, 1, 4, 1, { 8, 8 }, 3, 1, 1, 1, 2, false },
		{ 2, 8, 8, 8, { 8, 8 }, 3, 1, 1, 1, 2, false },
		{ 1, 512, 300, 1, { 1, 1 }, 3, 1, 1, 1, 2, false },
		{ 3, 40, 210, 1, { 7, 7 }, 3, 1, 1, 1, 2, false },
		{ 2, 17, 33, 1, { 41, 39 }, 3, 3, 2, 1, 2, false },
		{ 1, 3, 16, 1, { 9, 30, 31 }, 3, 2, 1, 1, 3, false },
		{ 1, 1, 24, 1, { 260 }, 10, 5, 0, 1, 1, false },
		{ 8, 40, 300, 1, { 7, 7 }, 3, 1, 1, 1, 2, false },
		{ 4, 290, 48, 1, { 7, 7 }, 1, 1, 0, 1, 2, false },
		{ 9, 34, 270, 2, { 5, 5 }, 3, 1, 1, 1, 2, false },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		tensor_scope
			check_shape(&shapes[i]);
}

static void strided_and_channels_last_inputs(void **state)
{
	const struct shape s = {
		.stride = 1, .padding = 1, .dilation = 1, .groups = 1, .spatial = 2
	};

	tensor_scope {
		tensor *x = ok(tensor_permute(bf16_values(TENSOR_SHAPE(2, 9, 9, 12)),
					      TENSOR_INTS(0, 3, 1, 2)));
		tensor *w = ok(tensor_slice(bf16_values(TENSOR_SHAPE(10, 24, 3, 3)), 1, 0, 24, 2));
		tensor *y = convolve(&s, x, w, tensor_none);

		check_close(y, convolve(&s, in_f64(x), in_f64(w), tensor_none),
			    convolve(&s, tensor_abs(in_f64(x)), tensor_abs(in_f64(w)), tensor_none),
			    &s);
	}
}

static void results_have_the_same_bits_on_one_thread(void **state)
{
	const struct shape s = {
		.stride = 1, .padding = 1, .dilation = 1, .groups = 1, .spatial = 2
	};
	int before = tensor_get_num_threads();

	tensor_scope {
		tensor *x = bf16_values(TENSOR_SHAPE(4, 32, 30, 30)),
		       *w = bf16_values(TENSOR_SHAPE(40, 32, 3, 3));
		tensor *many = convolve(&s, x, w, tensor_none), *one;
		struct gradients gs = gradients_of(&s, many, x, w), g;

		assert_done(tensor_set_num_threads(1));
		one = convolve(&s, x, w, tensor_none);
		g = gradients_of(&s, many, x, w);
		assert_done(tensor_set_num_threads(before));
		assert_memory_equal(tensor_data(gs.x), tensor_data(g.x), tensor_numel(g.x) * 2);
		assert_memory_equal(tensor_data(gs.w), tensor_data(g.w), tensor_numel(g.w) * 2);
		assert_memory_equal(tensor_data(many), tensor_data(one), tensor_numel(one) * 2);
	}
}

/* An odd number of positions of an image is paired with zero, not with an element that no tap reads. */
static void pairs_do_not_read_other_elements(void **state)
{
	const struct shape s = { .stride = 1, .dilation = 1, .groups = 1, .out = 4, .spatial = 1 };

	tensor_scope {
		tensor *x = bf16_values(TENSOR_SHAPE(2, 3, 9)),
		       *w = bf16_values(TENSOR_SHAPE(4, 3, 3));
		tensor *grad = bf16_values(TENSOR_SHAPE(2, 4, 7));
		struct gradients g, exact,
			sizes = gradients_of(&s, tensor_abs(in_f64(grad)), tensor_abs(in_f64(x)),
					     tensor_abs(in_f64(w)));

		/* The last element of a row is read by the last tap only. */
		ok(tensor_fill_(ok(tensor_select(x, 2, 8)), INFINITY));
		g = gradients_of(&s, grad, x, w);
		exact = gradients_of(&s, in_f64(grad), in_f64(x), in_f64(w));
		check_close(ok(tensor_slice(g.w, 2, 0, 2, 1)),
			    ok(tensor_slice(exact.w, 2, 0, 2, 1)),
			    ok(tensor_slice(sizes.w, 2, 0, 2, 1)), &s);
	}
}

/* Freed memory, which kernels get next, has NaN. */
static void leave_nan(void)
{
	for (int64_t n = 1 << 10; n <= 1 << 21; n += n / 4)
		tensor_scope
			ok(tensor_full(TENSOR_SHAPE(n), TENSOR_SCALAR(NAN), F32));
}

/* Elements that are not finite change only the sums that contain them. */
static void not_finite_elements_stay_in_their_sums(void **state)
{
	const struct shape s = {
		.stride = 1, .padding = 1, .dilation = 1, .groups = 1, .out = 17, .spatial = 2
	};

	tensor_scope {
		tensor *x = bf16_values(TENSOR_SHAPE(5, 21, 9, 5)),
		       *w = bf16_values(TENSOR_SHAPE(17, 21, 3, 3)), *y, *finite;
		struct gradients g;
		double n;

		leave_nan();
		ok(tensor_fill_(ok(tensor_select(x, 0, 3)), TENSOR_SCALAR(INFINITY)));
		ok(tensor_fill_(ok(tensor_select(w, 0, 16)), TENSOR_SCALAR(NAN)));
		y = convolve(&s, x, w, tensor_none);
		finite = ok(tensor_isfinite(y));
		assert_done(tensor_item(ok(tensor_sum(finite)), &n));
		assert_true(n == 4 * 16 * 45);
		assert_done(
			tensor_item(ok(tensor_all(ok(tensor_slice(
					    ok(tensor_slice(finite, 0, 0, 3, 1)), 1, 0, 16, 1)))),
				    &n));
		assert_true(n == 1);
		ok(tensor_fill_(y, TENSOR_SCALAR(1)));
		ok(tensor_fill_(ok(tensor_select(x, 0, 3)), TENSOR_SCALAR(1)));
		ok(tensor_fill_(ok(tensor_select(x, 1, 20)), TENSOR_SCALAR(INFINITY)));
		g = gradients_of(&s, y, x, w);
		finite = ok(tensor_isfinite(g.w));
		assert_done(tensor_item(ok(tensor_sum(finite)), &n));
		assert_true(n == 17 * 20 * 9);
	}
}

/* Positions of an image that end a unit and a vector before the end of a tile. */
static void not_finite_memory_is_not_read(void **state)
{
	const struct shape s = { .stride = 1, .dilation = 1, .groups = 1, .out = 17, .spatial = 1 };

	tensor_scope {
		tensor *x = bf16_values(TENSOR_SHAPE(2, 16, 93)),
		       *w = bf16_values(TENSOR_SHAPE(17, 16, 1));
		tensor *y = bf16_values(TENSOR_SHAPE(2, 17, 93));
		double all;

		leave_nan();
		assert_done(tensor_item(
			ok(tensor_all(ok(tensor_isfinite(gradients_of(&s, y, x, w).w)))), &all));
		assert_true(all == 1);
	}
}

static void empty_results_and_sums(void **state)
{
	const struct shape s = {
		.stride = 1, .padding = 1, .dilation = 1, .groups = 1, .spatial = 2
	};

	tensor_scope {
		tensor *bias = bf16_values(TENSOR_SHAPE(3));
		tensor *y = convolve(&s, bf16_values(TENSOR_SHAPE(2, 0, 4, 4)),
				     bf16_values(TENSOR_SHAPE(3, 0, 3, 3)), bias);
		double x, b;

		assert_done(tensor_at(y, TENSOR_INTS(1, 2, 3, 3), &x));
		assert_done(tensor_at(bias, TENSOR_INTS(2), &b));
		assert_true(x == b);
		y = convolve(&s, bf16_values(TENSOR_SHAPE(0, 4, 4, 4)),
			     bf16_values(TENSOR_SHAPE(3, 4, 3, 3)), bias);
		assert_int_equal(tensor_numel(y), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_of_models_and_odd_ones),
		cmocka_unit_test(strided_and_channels_last_inputs),
		cmocka_unit_test(results_have_the_same_bits_on_one_thread),
		cmocka_unit_test(pairs_do_not_read_other_elements),
		cmocka_unit_test(not_finite_elements_stay_in_their_sums),
		cmocka_unit_test(not_finite_memory_is_not_read),
		cmocka_unit_test(empty_results_and_sums),
	};

	setenv("TENSOR_CPU_TILES", TILES, 0);
	setenv("TENSOR_CPU_PAIRS", "all", 0);
	return cmocka_run_group_tests_name(NAME, tests, NULL, NULL);
}
