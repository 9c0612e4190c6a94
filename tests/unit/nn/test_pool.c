// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pooling: windows against a plain search of the input, numbers computed by hand, errors. */
#include "check.h"

#define ONE  TENSOR_INTS(1)
#define ZERO TENSOR_INTS(0)
#define NONE TENSOR_SCALAR_SHAPE

static tensor *pseudo_random(tensor_ints shape)
{
	int64_t n = 1;
	tensor *t;
	float *p;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	p = malloc((size_t)n * sizeof(*p));
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((i * 37 + i * i % 11) % 101) - 50;
	t = ok(tensor_from_data(p, shape, F32));
	free(p);
	return t;
}

/* One plane of h by w, and the window of output (y, x). */
struct window {
	int64_t size[2], kernel[2], stride[2], padding[2], dilation[2];
};

static void search_window(const struct window *w, const float *in, int64_t y, int64_t x,
			  float *best, int64_t *at, double *sum, int64_t *count)
{
	*best = -INFINITY, *at = -1, *sum = 0, *count = 0;
	for (int64_t i = 0; i < w->kernel[0]; i++)
		for (int64_t k = 0; k < w->kernel[1]; k++) {
			int64_t r = y * w->stride[0] - w->padding[0] + i * w->dilation[0];
			int64_t c = x * w->stride[1] - w->padding[1] + k * w->dilation[1];

			if (r < 0 || c < 0 || r >= w->size[0] || c >= w->size[1])
				continue;
			*sum += in[r * w->size[1] + c];
			++*count;
			if (in[r * w->size[1] + c] > *best) {
				*best = in[r * w->size[1] + c];
				*at = r * w->size[1] + c;
			}
		}
}

static void every_window_is_searched(void **state)
{
	const struct window windows[] = {
		{ { 9, 11 }, { 3, 2 }, { 2, 1 }, { 1, 0 }, { 1, 1 } },
		{ { 8, 600 }, { 2, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } },
		{ { 9, 9 }, { 3, 3 }, { 3, 3 }, { 0, 0 }, { 2, 2 } },
		{ { 5, 7 }, { 5, 7 }, { 1, 1 }, { 2, 3 }, { 1, 1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
		tensor_scope {
			const struct window *w = &windows[i];
			tensor_ints k = { w->kernel, 2 }, s = { w->stride, 2 },
				    p = { w->padding, 2 };
			tensor *in = pseudo_random(TENSOR_INTS(2, 3, w->size[0], w->size[1])), *out,
			       *at, *avg;
			int64_t plane = w->size[0] * w->size[1], rows, cols;
			const float *x = tensor_data(in), *m;
			const int64_t *where;

			assert_done(tensor_max_pool2d_with_indices(
				in, k, s, p, (tensor_ints){ w->dilation, 2 }, false, &out, &at));
			avg = ok(tensor_avg_pool2d(in, k, s, p, false, false, TENSOR_NONE));
			rows = tensor_size(out, 2), cols = tensor_size(out, 3);
			m = tensor_data(out), where = tensor_data(at);
			for (int64_t n = 0; n < 6 * rows * cols; n++) {
				const float *in_plane = x + n / (rows * cols) * plane;
				int64_t place, count;
				double sum;
				float best;

				search_window(w, in_plane, n / cols % rows, n % cols, &best, &place,
					      &sum, &count);
				assert_true(m[n] == best);
				assert_int_equal(where[n], place);
				if (w->dilation[0] == 1)
					assert_true(fabs(((const float *)tensor_data(avg))[n] -
							 sum / (double)count) < 1e-4);
			}
		}
}

static void divisor_and_ceil_mode_give_known_values(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 5)), *y = iota(1, TENSOR_INTS(1, 3, 3));

		assert_values(tensor_avg_pool1d(x, TENSOR_INTS(2), NONE, ZERO, false, true), 0, 1.5,
			      3.5);
		assert_values(tensor_avg_pool1d(x, TENSOR_INTS(2), NONE, ZERO, true, true), 0, 1.5,
			      3.5, 5);
		assert_values(tensor_avg_pool1d(x, TENSOR_INTS(2), NONE, ONE, false, true), 0, 0.5,
			      2.5, 4.5);
		assert_values(tensor_avg_pool1d(x, TENSOR_INTS(2), NONE, ONE, false, false), 0, 1,
			      2.5, 4.5);
		assert_values(tensor_avg_pool2d(y, TENSOR_INTS(2), NONE, ZERO, false, true, 3),
			      1e-6, 4);
		assert_values(tensor_avg_pool2d(ok(tensor_to(y, I64)), TENSOR_INTS(2), ONE, ZERO,
						false, true, 3),
			      0, 4, 5, 8, 9);
		/* INT64_MIN / -1 is not a number of 64 bits, and wraps. */
		assert_values(tensor_avg_pool2d(ok(tensor_full(TENSOR_SHAPE(1, 1, 1),
							       TENSOR_SCALAR(INT64_MIN), I64)),
						ONE, ONE, ZERO, false, true, -1),
			      0, (double)INT64_MIN);
		assert_values(tensor_max_pool2d(y, TENSOR_INTS(2), NONE, ZERO, ONE, true), 0, 5, 6,
			      8, 9);
		assert_values(tensor_max_pool3d(ok(tensor_view(y, TENSOR_INTS(1, 3, 3, 1))),
						TENSOR_INTS(3, 2, 1), ONE, ZERO, ONE, false),
			      0, 8, 9);
		assert_values(tensor_avg_pool3d(ok(tensor_view(y, TENSOR_INTS(1, 3, 3, 1))),
						TENSOR_INTS(3, 2, 1), ONE, ZERO, false, true,
						TENSOR_NONE),
			      1e-6, 4.5, 5.5);
	}
}

static void gradients_reach_the_selected_elements(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 3, 3)), *g, *out, *at;

		assert_done(tensor_max_pool2d_with_indices(x, TENSOR_INTS(2), ONE, ZERO, ONE, false,
							   &out, &at));
		assert_values(at, 0, 4, 5, 7, 8);
		g = iota(1, TENSOR_INTS(1, 2, 2));
		assert_values(tensor_max_pool2d_with_indices_backward(g, x, TENSOR_INTS(2), ONE,
								      ZERO, ONE, false, at),
			      0, 0, 0, 0, 0, 1, 2, 0, 3, 4);
		assert_values(tensor_avg_pool2d_backward(g, x, TENSOR_INTS(2), ONE, ZERO, false,
							 true, 1),
			      0, 1, 3, 2, 4, 10, 6, 3, 7, 4);
		assert_fails(tensor_max_pool2d_with_indices_backward(
				     g, x, TENSOR_INTS(2), ONE, ZERO, ONE, false,
				     ok(tensor_add_scalar(at, TENSOR_SCALAR(1)))),
			     ERANGE, "index 9 is out of range");
	}
}

static void adaptive_windows_cover_the_input(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 7)), *y = iota(0, TENSOR_INTS(2, 2, 3)), *out,
		       *at;
		tensor *z = ok(tensor_view(y, TENSOR_INTS(1, 2, 2, 3)));

		assert_values(tensor_adaptive_avg_pool1d(x, TENSOR_INTS(3)), 0, 2, 4, 6);
		assert_values(tensor_adaptive_avg_pool1d(x, ONE), 0, 4);
		assert_values(tensor_adaptive_avg_pool2d(y, TENSOR_INTS(1, 2)), 0, 2, 3, 8, 9);
		assert_values(tensor_adaptive_avg_pool3d(z, TENSOR_INTS(2, 1, 1)), 0, 2.5, 8.5);
		assert_values(tensor_adaptive_avg_pool2d(y, ONE), 0, 2.5, 8.5);
		assert_done(tensor_adaptive_max_pool1d(x, TENSOR_INTS(3), &out, &at));
		assert_values(out, 0, 3, 5, 7);
		assert_values(at, 0, 2, 4, 6);
		assert_done(tensor_adaptive_max_pool3d(z, TENSOR_INTS(1, 2, 1), &out, &at));
		assert_values(at, 0, 8, 11);
	}
}

static void max_of_a_window_with_nan_is_nan(void **state)
{
	const float v[] = { 1, NAN, 3, -INFINITY, -INFINITY, -INFINITY };

	tensor_scope {
		tensor *x = ok(tensor_from_data(v, TENSOR_INTS(1, 6), F32)), *out, *at;

		assert_done(tensor_max_pool1d_with_indices(x, TENSOR_INTS(3), NONE, ZERO, ONE,
							   false, &out, &at));
		assert_values(out, 0, NAN, -INFINITY);
		assert_values(at, 0, 1, 3);
	}
}

static void errors_name_the_argument(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(1, 1, 4, 4));

		assert_fails(tensor_max_pool2d(x, TENSOR_INTS(2, 2, 2), NONE, ZERO, ONE, false),
			     EINVAL, "kernel_size must have one number or 2, got 3");
		assert_fails(tensor_avg_pool2d(x, TENSOR_INTS(2), NONE, TENSOR_INTS(2), false, true,
					       TENSOR_NONE),
			     EINVAL, "padding must be at most half of kernel_size 2");
		assert_fails(tensor_avg_pool2d(x, TENSOR_INTS(5), NONE, ZERO, false, true,
					       TENSOR_NONE),
			     EINVAL, "too small for kernel_size 5");
		assert_fails(tensor_avg_pool2d(x, ONE, NONE, ZERO, false, true, 0), EINVAL,
			     "divisor_override must not be zero");
		assert_fails(tensor_max_pool2d(x, ONE, ZERO, ZERO, ONE, false), EINVAL,
			     "stride must be at least 1");
		assert_fails(tensor_max_pool3d(ok(tensor_select(x, 0, 0)), ONE, NONE, ZERO, ONE,
					       false),
			     EINVAL, "self must have 4 dimensions");
		assert_fails(tensor_adaptive_avg_pool2d(x, TENSOR_INTS(-1, 2)), EINVAL,
			     "output_size must be at least 0");
		assert_shape(ok(tensor_max_pool2d(ok(tensor_empty(TENSOR_INTS(0, 2, 4, 4), F32)),
						  TENSOR_INTS(2), NONE, ZERO, ONE, false)),
			     0, 2, 2, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_window_is_searched),
		cmocka_unit_test(divisor_and_ceil_mode_give_known_values),
		cmocka_unit_test(gradients_reach_the_selected_elements),
		cmocka_unit_test(adaptive_windows_cover_the_input),
		cmocka_unit_test(max_of_a_window_with_nan_is_nan),
		cmocka_unit_test(errors_name_the_argument),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
