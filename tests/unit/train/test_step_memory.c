// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Memory of a training step: the peaks of layers and gradients, counted by tensor_live_bytes(). The program executes itself with
 * TENSOR_DEBUG=1, which that needs.
 */
#include "check.h"

#include <unistd.h>

/* Bytes at the peak since the last call, above `before`; skips the test where bytes are not counted. */
static int64_t peak_above(int64_t before)
{
	int64_t peak = 0;

	if (tensor_live_bytes(&peak) == -ENOTSUP) {
		tensor_clear_error();
		skip();
	}
	return peak - before;
}

static int64_t bytes_now(void)
{
	int64_t peak, now = tensor_live_bytes(&peak);

	if (now == -ENOTSUP) {
		tensor_clear_error();
		skip();
	}
	assert_true(now >= 0 && peak >= now);
	return now;
}

static bool same_bits(tensor *a, tensor *b)
{
	const int64_t n = tensor_numel(a);
	float *p = malloc((size_t)n * 8), *q = p + n;
	bool same;

	assert_non_null(p);
	assert_int_equal(tensor_numel(b), n);
	assert_done(tensor_copy_to(a, p, (size_t)n * 4));
	assert_done(tensor_copy_to(b, q, (size_t)n * 4));
	same = !memcmp(p, q, (size_t)n * 4);
	free(p);
	return same;
}

static tensor *weight_of(int64_t rows, int64_t columns)
{
	tensor *w = ok(tensor_ones(TENSOR_INTS(rows, columns), F32));

	assert_done(tensor_set_requires_grad(w, true));
	return w;
}

static void live_bytes_counts_exact_sizes_and_the_peak(void **state)
{
	int64_t before = bytes_now();
	tensor *t = ok(tensor_ones(TENSOR_INTS(1001), OF(TENSOR_U8)));

	(void)state;
	assert_int_equal(tensor_live_bytes(NULL), before + 1001);
	tensor_release(t);
	assert_int_equal(tensor_live_bytes(NULL), before);
	assert_int_equal(peak_above(before), 1001);
	assert_int_equal(peak_above(before), 0); /* the call before reset it */
}

/* The gradient of a linear layer's weight is a transposed product: it is kept, not copied. */
static void gradient_of_a_linear_weight_is_kept_without_a_copy(void **state)
{
	const int64_t bytes = 256 * 256 * 4;
	tensor *w, *x;
	int64_t before;

	(void)state;
	tensor_scope {
		tensor *loss = NULL;

		w = weight_of(256, 256);
		x = ok(tensor_ones(TENSOR_INTS(1, 256), F32));
		tensor_scope
			loss = tensor_keep(ok(tensor_sum(tensor_linear(x, w, tensor_none))));
		before = bytes_now();
		assert_done(tensor_backward(loss));
		assert_in_range(peak_above(before), bytes, bytes + bytes / 2);
		assert_true(tensor_is_contiguous(tensor_grad(w)));
		assert_true(same_bits(tensor_grad(w), ok(tensor_ones_like(w, F32))));
		tensor_release(loss);
	}
}

/* A gradient that is a view of one that the program holds is still copied. */
static void gradient_that_the_program_holds_is_not_taken(void **state)
{
	(void)state;
	tensor_scope {
		tensor *w = weight_of(3, 4), *seed = ok(tensor_ones(TENSOR_INTS(4, 3), F32));
		tensor *out = ok(tensor_t(w));

		assert_done(
			tensor_backward_ex(TENSOR_LIST(out), &seed, (tensor_list){ 0 }, NULL, 0));
		ok(tensor_zero_(seed));
		assert_true(same_bits(tensor_grad(w), ok(tensor_ones_like(w, F32))));
	}
}

/* Products of several steps are added to one sum; the sum of the recorded backward is made of separate tensors. */
static tensor *steps(tensor *x, tensor *w)
{
	tensor *w_t = ok(tensor_t(w)), *y = x;

	for (int i = 0; i < 5; i++)
		y = ok(tensor_tanh(tensor_addmm(x, y, w_t)));
	y = ok(tensor_add(y, tensor_mm(w_t, w_t))); /* both edges lead to one node */
	return ok(tensor_add(tensor_sum(y), tensor_sum(tensor_add(w_t, w_t))));
}

static void products_are_added_to_the_sum_of_a_weight(void **state)
{
	(void)state;
	tensor_scope {
		tensor *w =
			ok(tensor_view(tensor_sin(tensor_arange(S(64), F64)), TENSOR_INTS(8, 8)));
		tensor *x =
			ok(tensor_view(tensor_cos(tensor_arange(S(64), F64)), TENSOR_INTS(8, 8)));
		tensor *g[2];

		w = ok(tensor_mul_scalar(w, S(0.2)));
		assert_done(tensor_set_requires_grad(w, true));
		for (int k = 0; k < 2; k++)
			assert_done(tensor_backward_ex(TENSOR_LIST(steps(x, w)), NULL,
						       TENSOR_LIST(w), &g[k],
						       k ? TENSOR_CREATE_GRAPH : 0));
		assert_same(g[0], ok(tensor_detach(g[1])));
	}
}

/* ---- gradients that are computed in place ---- */

enum { ROWS = 256, COLUMNS = 512, BYTES = ROWS * COLUMNS * 4 };

static tensor *softmax(tensor *x)
{
	return tensor_softmax(x, -1);
}

static tensor *gelu(tensor *x)
{
	return tensor_gelu(x);
}

static tensor *(*const in_place[])(tensor *x) = { softmax, gelu };

static tensor *numbers(int64_t rows, int64_t columns, double scale)
{
	tensor *t = ok(tensor_arange(S(rows * columns), F32));

	return ok(tensor_view(tensor_sin(tensor_mul_scalar(t, S(scale))),
			      TENSOR_INTS(rows, columns)));
}

static tensor *leaf(void)
{
	tensor *x = numbers(ROWS, COLUMNS, 0.7);

	assert_done(tensor_set_requires_grad(x, true));
	return x;
}

static void backward_needs_one_buffer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *x = leaf(), *c = numbers(ROWS, COLUMNS, 0.3), *loss = NULL;
			int64_t before;

			tensor_scope
				loss = tensor_keep(ok(tensor_sum(tensor_mul(in_place[i](x), c))));
			before = bytes_now();
			assert_done(tensor_backward(loss));
			assert_in_range(peak_above(before), BYTES, BYTES + BYTES / 2);
			tensor_release(loss);
		}
}

/* The recorded backward computes nothing in place. */
static void gradients_have_the_bits_of_the_recorded_backward(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *x = leaf(), *c = numbers(ROWS, COLUMNS, 0.3), *g[2];

			for (int k = 0; k < 2; k++) {
				tensor *y = ok(tensor_sum(tensor_mul(in_place[i](x), c)));

				assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x),
							       &g[k], k ? TENSOR_CREATE_GRAPH : 0));
			}
			assert_true(same_bits(g[0], g[1]));
		}
}

static void seed_of_the_program_is_not_overwritten(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *x = leaf(), *seed = numbers(ROWS, COLUMNS, 0.3);
			tensor *same = ok(tensor_clone(seed)), *y = ok(in_place[i](x));

			assert_done(tensor_backward_ex(TENSOR_LIST(y), &seed, (tensor_list){ 0 },
						       NULL, 0));
			assert_true(same_bits(seed, same));
		}
}

static void retained_gradient_is_not_overwritten(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *x = leaf(), *c = numbers(ROWS, COLUMNS, 0.3);
			tensor *y = ok(in_place[i](x));

			assert_done(tensor_retain_grad(y));
			assert_done(tensor_backward(ok(tensor_sum(tensor_mul(y, c)))));
			assert_true(same_bits(tensor_grad(y), c));
		}
}

static void requested_gradient_is_not_overwritten(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *x = leaf(), *c = numbers(ROWS, COLUMNS, 0.3), *g[2];
			tensor *y = ok(in_place[i](x));

			assert_done(
				tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(tensor_mul(y, c)))),
						   NULL, TENSOR_LIST(y, x), g, 0));
			assert_true(same_bits(g[0], c));
			assert_false(same_bits(g[1], c));
		}
}

static int see(tensor **inputs, int ninputs, tensor *const *grads, int n, void *ctx)
{
	(void)inputs, (void)ninputs;
	assert_int_equal(n, 1);
	*(bool *)ctx = same_bits(grads[0], ok(tensor_ones_like(grads[0], F32)));
	return 0;
}

static void hook_after_the_node_sees_the_gradient_that_arrived(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *x = leaf(), *y = ok(in_place[i](x));
			bool seen = false;

			assert_done(tensor_node_register_hook(tensor_grad_fn(y), see, &seen, NULL,
							      NULL));
			assert_done(tensor_backward(ok(tensor_sum(tensor_mul_scalar(y, S(1))))));
			assert_true(seen);
		}
}

/* ---- attention ---- */

enum { LENGTH = 300, EMBED = 32, HEADS = 2, WEIGHTS = HEADS * LENGTH * LENGTH * 4 };

static tensor *attend(tensor_module *m, tensor *x, bool causal)
{
	return tensor_module_multi_head_attention(m, "l", x, x, x, HEADS, .causal = causal,
						  .batch_first = true);
}

static tensor *heads(tensor *x, int i)
{
	x = tensor_narrow(x, 2, (int64_t)i * EMBED, EMBED);
	return tensor_transpose(tensor_unflatten(x, 2, TENSOR_INTS(HEADS, EMBED / HEADS)), 1, 2);
}

/* The layer, composed of operators that keep the weights. */
static tensor *composed(tensor_module *m, tensor *x, bool causal)
{
	tensor *all = tensor_linear(x, tensor_module_get(m, "l.in_proj_weight"),
				    tensor_module_get(m, "l.in_proj_bias"));
	tensor *y = tensor_scaled_dot_product_attention(heads(all, 0), heads(all, 1), heads(all, 2),
							tensor_none, 0, causal);

	return tensor_linear(tensor_flatten(tensor_transpose(y, 1, 2), 2, 3),
			     tensor_module_get(m, "l.out_proj.weight"),
			     tensor_module_get(m, "l.out_proj.bias"));
}

static void attention_frees_its_weights_and_has_the_same_gradients(void **state)
{
	(void)state;
	bytes_now(); /* skips before a module exists */
	for (int causal = 0; causal < 2; causal++)
		tensor_scope {
			tensor_module *m = tensor_module_new(F32);
			tensor *x = ok(tensor_view(numbers(LENGTH, EMBED, 0.7),
						   TENSOR_INTS(1, LENGTH, EMBED)));
			tensor *seed = numbers(LENGTH, EMBED, 0.3), *loss = NULL, *w, *kept;
			double difference;
			int64_t before;

			/* Makes the parameters. */
			tensor_no_grad
				tensor_scope
					ok(attend(m, x, causal));
			before = bytes_now();

			tensor_scope
				loss = tensor_keep(ok(tensor_sum(tensor_mul(
					tensor_squeeze_dim(attend(m, x, causal), 0), seed))));
			assert_in_range(tensor_live_bytes(NULL) - before, 1, WEIGHTS);
			w = tensor_module_get(m, "l.in_proj_weight");
			assert_done(tensor_backward(loss));
			tensor_release(loss);
			kept = ok(tensor_clone(tensor_grad(w)));
			assert_done(tensor_module_zero_grad(m));
			assert_done(tensor_backward(ok(tensor_sum(
				tensor_mul(tensor_squeeze_dim(composed(m, x, causal), 0), seed)))));
			/* Computed by the kernel, or by products of matrices. */
			assert_done(tensor_item(
				ok(tensor_max(tensor_abs(tensor_sub(tensor_grad(w), kept)))),
				&difference));
			assert_true(difference < 1e-5);
			tensor_module_free(m);
		}
}

static void attention_without_gradients_or_of_few_weights_keeps_no_graph(void **state)
{
	(void)state;
	tensor_scope {
		tensor_module *m = tensor_module_new(F32);
		tensor *x =
			ok(tensor_view(numbers(LENGTH, EMBED, 0.7), TENSOR_INTS(1, LENGTH, EMBED)));
		tensor *y;

		tensor_no_grad
			assert_false(tensor_requires_grad(ok(attend(m, x, true))));
		y = ok(attend(m, ok(tensor_narrow(x, 1, 0, 4)), true));
		assert_true(tensor_requires_grad(y));
		assert_done(tensor_backward(ok(tensor_sum(y))));
		tensor_module_free(m);
	}
}

/* ---- convolution ---- */

/* Weights that are transformed in several rounds give the bits of those that are transformed in one. */
static void rounds_of_a_convolution_are_independent(void **state)
{
	const int64_t rows = 640, channels = 512;

	(void)state;
	tensor_scope {
		tensor *w = ok(tensor_view(numbers(rows, channels * 9, 0.7),
					   TENSOR_INTS(rows, channels, 3, 3)));
		tensor *x = ok(tensor_view(numbers(8, channels * 16, 0.3),
					   TENSOR_INTS(8, channels, 4, 4)));
		tensor *y = ok(tensor_conv2d(x, w, tensor_none, TENSOR_INTS(1), TENSOR_INTS(1),
					     TENSOR_INTS(1), 1));

		for (int64_t from = 0; from < rows; from += 128) {
			tensor *part = ok(tensor_narrow(w, 0, from, 128));

			part = ok(tensor_conv2d(x, part, tensor_none, TENSOR_INTS(1),
						TENSOR_INTS(1), TENSOR_INTS(1), 1));
			assert_true(same_bits(ok(tensor_narrow(y, 1, from, 128)), part));
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_bytes_counts_exact_sizes_and_the_peak),
		cmocka_unit_test(gradient_of_a_linear_weight_is_kept_without_a_copy),
		cmocka_unit_test(gradient_that_the_program_holds_is_not_taken),
		cmocka_unit_test(products_are_added_to_the_sum_of_a_weight),
		cmocka_unit_test(backward_needs_one_buffer),
		cmocka_unit_test(gradients_have_the_bits_of_the_recorded_backward),
		cmocka_unit_test(seed_of_the_program_is_not_overwritten),
		cmocka_unit_test(retained_gradient_is_not_overwritten),
		cmocka_unit_test(requested_gradient_is_not_overwritten),
		cmocka_unit_test(hook_after_the_node_sees_the_gradient_that_arrived),
		cmocka_unit_test(attention_frees_its_weights_and_has_the_same_gradients),
		cmocka_unit_test(attention_without_gradients_or_of_few_weights_keeps_no_graph),
		cmocka_unit_test(rounds_of_a_convolution_are_independent),
	};

	if (!getenv("TENSOR_DEBUG")) {
		setenv("TENSOR_DEBUG", "1", 1);
		execv("/proc/self/exe", argv);
	}
	(void)argc;
	return cmocka_run_group_tests_name("step_memory", tests, NULL, NULL);
}
