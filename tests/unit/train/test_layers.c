// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Layers compute what PyTorch's layers do: output, gradients, names and order of parameters, buffers. */
#include "train/filled.h"

static const struct expected expected[] = {
#include "layers.inc"
};

enum { MOST_INPUTS = 3 };

/* The layer of a test is called "l"; inputs are leaves. */
struct layer_test {
	tensor *(*call)(tensor_module *m, tensor *const *x);
	tensor *x[MOST_INPUTS];
	bool eval;
};

/* ---- layers ---- */

static tensor *linear(tensor_module *m, tensor *const *x)
{
	return tensor_module_linear(m, "l", x[0], 3);
}

static tensor *linear_no_bias(tensor_module *m, tensor *const *x)
{
	return tensor_module_linear(m, "l", x[0], 3, .no_bias = true);
}

static tensor *embedding(tensor_module *m, tensor *const *x)
{
	return tensor_module_embedding(m, "l", x[0], 7, 3, .padding = true, .padding_idx = 2);
}

static tensor *conv1d(tensor_module *m, tensor *const *x)
{
	return tensor_module_conv1d(m, "l", x[0], 4, 3, .padding = 1, .no_bias = true);
}

static tensor *conv2d(tensor_module *m, tensor *const *x)
{
	return tensor_module_conv2d(m, "l", x[0], 6, 3, .stride = 2, .padding = 1, .groups = 2);
}

static tensor *conv2d_lists(tensor_module *m, tensor *const *x)
{
	return tensor_module_conv2d(m, "l", x[0], 3, 0, .kernels = TENSOR_INTS(3, 2),
				    .strides = TENSOR_INTS(1, 2), .paddings = TENSOR_INTS(0, 1),
				    .dilations = TENSOR_INTS(2, 1));
}

static tensor *conv3d(tensor_module *m, tensor *const *x)
{
	return tensor_module_conv3d(m, "l", x[0], 3, 2, .stride = 2);
}

static tensor *conv_transpose2d(tensor_module *m, tensor *const *x)
{
	return tensor_module_conv_transpose2d(m, "l", x[0], 6, 3, .stride = 2, .padding = 1,
					      .output_padding = 1, .groups = 2);
}

static tensor *batch_norm(tensor_module *m, tensor *const *x)
{
	ok(tensor_module_batch_norm(m, "l", x[0]));
	return tensor_module_batch_norm(m, "l", tensor_mul(x[0], 2));
}

static tensor *batch_norm_eval(tensor_module *m, tensor *const *x)
{
	return tensor_module_batch_norm(m, "l", x[0], .eps = 1e-3);
}

static tensor *batch_norm_cumulative(tensor_module *m, tensor *const *x)
{
	ok(tensor_module_batch_norm(m, "l", x[0], .no_affine = true, .cumulative = true));
	return tensor_module_batch_norm(m, "l", tensor_mul(x[0], 2), .no_affine = true,
					.cumulative = true);
}

static tensor *layer_norm(tensor_module *m, tensor *const *x)
{
	return tensor_module_layer_norm(m, "l", x[0], .dims = 2);
}

static tensor *layer_norm_no_bias(tensor_module *m, tensor *const *x)
{
	return tensor_module_layer_norm(m, "l", x[0], .eps = 1e-6, .no_bias = true);
}

static tensor *rms_norm(tensor_module *m, tensor *const *x)
{
	return tensor_module_rms_norm(m, "l", x[0]);
}

static tensor *group_norm(tensor_module *m, tensor *const *x)
{
	return tensor_module_group_norm(m, "l", x[0], 2);
}

static tensor *instance_norm(tensor_module *m, tensor *const *x)
{
	return tensor_module_instance_norm(m, "l", x[0]);
}

static tensor *instance_norm_all(tensor_module *m, tensor *const *x)
{
	ok(tensor_module_instance_norm(m, "l", x[0], .affine = true, .stats = true));
	return tensor_module_instance_norm(m, "l", tensor_mul(x[0], 2), .affine = true,
					   .stats = true);
}

static tensor *lstm(tensor_module *m, tensor *const *x)
{
	return tensor_module_lstm(m, "l", x[0], 4);
}

static tensor *lstm_unbatched(tensor_module *m, tensor *const *x)
{
	return tensor_module_lstm(m, "l", x[0], 4, .no_bias = true);
}

static tensor *flat(tensor *t)
{
	return tensor_flatten(t, 0, -1);
}

static tensor *lstm_all(tensor_module *m, tensor *const *x)
{
	struct tensor_rnn_state s = { filled(TENSOR_INTS(4, 2, 4), 20),
				      filled(TENSOR_INTS(4, 2, 4), 21) };
	tensor *y = tensor_module_lstm(m, "l", x[0], 4, .layers = 2, .bidirectional = true,
				       .batch_first = true, .state = &s);

	return tensor_cat(TENSOR_LIST(flat(y), flat(s.h), flat(s.c)), 0);
}

static tensor *gru(tensor_module *m, tensor *const *x)
{
	struct tensor_rnn_state s = { filled(TENSOR_INTS(2, 2, 4), 20), NULL };
	tensor *y = tensor_module_gru(m, "l", x[0], 4, .layers = 2, .state = &s);

	assert_null(s.c);
	return tensor_cat(TENSOR_LIST(flat(y), flat(s.h)), 0);
}

static tensor *gru_bidirectional(tensor_module *m, tensor *const *x)
{
	return tensor_module_gru(m, "l", x[0], 4, .bidirectional = true, .batch_first = true,
				 .no_bias = true);
}

static tensor *attention(tensor_module *m, tensor *const *x)
{
	return tensor_module_multi_head_attention(m, "l", x[0], x[0], x[0], 2);
}

static tensor *attention_causal(tensor_module *m, tensor *const *x)
{
	return tensor_module_multi_head_attention(m, "l", x[0], x[0], x[0], 3, .causal = true,
						  .batch_first = true, .no_bias = true);
}

static tensor *attention_cross(tensor_module *m, tensor *const *x)
{
	return tensor_module_multi_head_attention(m, "l", x[0], x[1], x[2], 2, .batch_first = true);
}

static tensor *attention_masks(tensor_module *m, tensor *const *x)
{
	static const bool padded[2][5] = { { 0, 0, 0, 0, 0 }, { 0, 0, 0, 1, 1 } };
	tensor *mask = filled(TENSOR_INTS(4, 5, 5), 32),
	       *padding = tensor_from_data(padded, TENSOR_INTS(2, 5), OF(TENSOR_BOOL));

	return tensor_module_multi_head_attention(m, "l", x[0], x[0], x[0], 2, .causal = true,
						  .mask = &mask, .key_padding = &padding,
						  .batch_first = true);
}

static tensor *transformer_block(tensor_module *m, tensor *const *x)
{
	return tensor_module_transformer_block(m, "l", x[0], 2, .feedforward = 8);
}

static tensor *transformer_block_first(tensor_module *m, tensor *const *x)
{
	return tensor_module_transformer_block(m, "l", x[0], 2, .feedforward = 8,
					       .activation = TENSOR_ACTIVATION_GELU,
					       .norm_first = true, .batch_first = true,
					       .causal = true);
}

/* ---- comparison ---- */

static const struct expected *expected_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (!strcmp(expected[i].name, name))
			return &expected[i];
	fail_msg("there are no numbers for %s", name);
	return NULL;
}

static void fill_parameters(tensor_module *m)
{
	tensor_list all = tensor_module_parameters(m);

	for (int64_t i = 0; i < all.len; i++)
		fill_into(all.data[i], (int)i + 1);
	tensor_module_zero_grad(m);
}

/* Buffers as they are before the first call: running_var ones, others zeros. */
static void reset_buffers(tensor_module *m)
{
	const struct tensor_named *b;
	int64_t n = tensor_module_named(m, TENSOR_MODULE_BUFFERS, &b);

	for (int64_t i = 0; i < n; i++)
		ok(tensor_fill_(b[i].t, S(strstr(b[i].name, "running_var") ? 1 : 0)));
}

static void check_named(const char *test, const char **values, tensor_module *m, unsigned which)
{
	const struct tensor_named *named;
	int64_t n = tensor_module_named(tensor_module_child(m, "l"), which, &named);

	assert_true(n >= 0);
	for (int64_t i = 0; i < n; i++)
		check_value_(test, values, named[i].name,
			     checksum(which == TENSOR_MODULE_PARAMETERS ? tensor_grad(named[i].t) :
									  named[i].t));
}

static void check_layer(const char *name, struct layer_test *test)
{
	const struct expected *want = expected_of(name);
	const char *values = want->values;
	tensor_module *m = tensor_module_new(F64);

	assert_non_null(m);
	tensor_scope {
		tensor *y;

		tensor_module_train(m, !test->eval);
		ok(test->call(m, test->x)); /* makes the parameters */
		fill_parameters(m);
		reset_buffers(m);
		y = ok(test->call(m, test->x));
		check_value_(name, &values, "y", checksum(y));
		assert_done(tensor_backward_ex(TENSOR_LIST(y), &(tensor *){ weights_of(y) },
					       (tensor_list){ 0 }, NULL, 0));
		for (int i = 0; i < MOST_INPUTS && test->x[i]; i++)
			if (tensor_requires_grad(test->x[i]))
				check_value_(name, &values, "x", checksum(tensor_grad(test->x[i])));
		check_named(name, &values, m, TENSOR_MODULE_PARAMETERS);
		check_named(name, &values, m, TENSOR_MODULE_BUFFERS);
		check_end_(name, values);
	}
	tensor_module_free(m);
}

#define X(seed, ...) leaf(filled(TENSOR_INTS(__VA_ARGS__), seed))
#define LAYER(name, ...)                                                               \
	static void name##_equals_pytorch(void **state)                                \
	{                                                                              \
		(void)state;                                                           \
		tensor_scope {                                                         \
			check_layer(#name, &(struct layer_test){ name, __VA_ARGS__ }); \
		}                                                                      \
	}

LAYER(linear, { X(0, 2, 5, 4) }, false)
LAYER(linear_no_bias, { X(0, 4) }, false)
LAYER(embedding,
      { tensor_from_data((const int64_t[]){ 1, 2, 6, 0, 1, 1 }, TENSOR_INTS(2, 3), I64) }, false)
LAYER(conv1d, { X(0, 2, 3, 7) }, false)
LAYER(conv2d, { X(0, 2, 4, 7, 6) }, false)
LAYER(conv2d_lists, { X(0, 2, 8, 6) }, false)
LAYER(conv3d, { X(0, 1, 2, 4, 5, 6) }, false)
LAYER(conv_transpose2d, { X(0, 2, 4, 3, 4) }, false)
LAYER(batch_norm, { X(0, 2, 3, 4, 5) }, false)
LAYER(batch_norm_eval, { X(0, 4, 3) }, true)
LAYER(batch_norm_cumulative, { X(0, 4, 3) }, false)
LAYER(layer_norm, { X(0, 2, 3, 4, 5) }, false)
LAYER(layer_norm_no_bias, { X(0, 3, 5) }, false)
LAYER(rms_norm, { X(0, 3, 5) }, false)
LAYER(group_norm, { X(0, 2, 4, 3, 2) }, false)
LAYER(instance_norm, { X(0, 2, 3, 4, 5) }, false)
LAYER(instance_norm_all, { X(0, 2, 3, 6) }, false)
LAYER(lstm, { X(0, 5, 2, 3) }, false)
LAYER(lstm_unbatched, { X(0, 5, 3) }, false)
LAYER(lstm_all, { X(0, 2, 5, 3) }, false)
LAYER(gru, { X(0, 5, 2, 3) }, false)
LAYER(gru_bidirectional, { X(0, 2, 5, 3) }, false)
LAYER(attention, { X(0, 5, 2, 6) }, false)
LAYER(attention_causal, { X(0, 2, 5, 6) }, false)
LAYER(attention_cross, { X(0, 2, 5, 6), X(30, 2, 4, 3), X(31, 2, 4, 4) }, false)
LAYER(attention_masks, { X(0, 2, 5, 6) }, false)
LAYER(transformer_block, { X(0, 5, 2, 6) }, false)
LAYER(transformer_block_first, { X(0, 2, 5, 6) }, false)

/* ---- initial values ---- */

static void assert_within(tensor_module *m, const char *name, double bound, double least)
{
	double most;

	assert_done(tensor_item(
		ok(tensor_amax(tensor_abs(ok(tensor_module_get(m, name))), TENSOR_INTS(0), false)),
		&most));
	assert_true(most <= bound);
	assert_true(most >= least);
}

static void initial_values_are_those_of_pytorch(void **state)
{
	tensor_module *m = tensor_module_new(F64);
	double zero = -1;

	(void)state;
	tensor_scope {
		tensor *x = filled(TENSOR_INTS(2, 16, 64), 0);

		ok(tensor_module_linear(m, "linear", x, 1000));
		assert_within(m, "linear.bias", 0.125, 0.12);
		ok(tensor_module_conv1d(m, "conv", x, 1000, 4));
		assert_within(m, "conv.bias", 0.125, 0.12);
		ok(tensor_module_lstm(m, "lstm", x, 64));
		assert_within(m, "lstm.bias_hh_l0", 0.125, 0.12);
		ok(tensor_module_multi_head_attention(m, "attn", x, x, x, 4));
		assert_within(m, "attn.in_proj_bias", 0, 0);
		assert_within(m, "attn.out_proj.bias", 0, 0);
		ok(tensor_module_embedding(m, "emb", tensor_zeros(TENSOR_INTS(1), I64), 1000, 8,
					   .padding = true, .padding_idx = -1));
		tensor_scope {
			tensor *w = tensor_module_get(m, "emb.weight"), *var, *mean;
			double v;

			assert_done(tensor_var_mean(tensor_detach(w), true, &var, &mean));
			assert_done(tensor_item(var, &v));
			assert_true(fabs(v - 1) < 0.1);
			assert_done(tensor_item(tensor_sum(tensor_abs(tensor_select(w, 0, 999))),
						&zero));
			assert_true(zero == 0);
		}
	}
	tensor_module_free(m);
}

static void same_seed_makes_the_same_parameters(void **state)
{
	tensor_module *m[2];

	(void)state;
	tensor_scope {
		tensor *x = filled(TENSOR_INTS(2, 4), 0);

		for (int i = 0; i < 2; i++) {
			tensor_manual_seed(7);
			m[i] = tensor_module_new(F64);
			ok(tensor_module_linear(m[i], "a", x, 3));
		}
		assert_same(tensor_module_get(m[0], "a.weight"),
			    tensor_module_get(m[1], "a.weight"));
		assert_same(tensor_module_get(m[0], "a.bias"), tensor_module_get(m[1], "a.bias"));
	}
	tensor_module_free(m[0]);
	tensor_module_free(m[1]);
}

/* ---- mode ---- */

static void dropout_follows_the_mode(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		tensor *x = tensor_ones(TENSOR_INTS(1000), F64);
		double sum;

		assert_done(tensor_item(tensor_sum(ok(tensor_module_dropout(m, x, 0.5))), &sum));
		assert_true(sum != 1000 && fabs(sum - 1000) < 200);
		tensor_module_train(m, false);
		assert_same(ok(tensor_module_dropout(m, x, 0.5)), x);
		assert_fails(tensor_module_dropout(m, x, 1.5), EINVAL, "dropout");
		assert_fails(tensor_module_dropout(NULL, x, 0.5), EINVAL, "dropout");
	}
	tensor_module_free(m);
}

static void results_without_a_scope_belong_to_the_caller(void **state)
{
	struct tensor_live_counts before, after;
	tensor_module *m;
	tensor *x, *y[4];
	struct tensor_rnn_state s = { NULL, NULL };

	(void)state;
	tensor_live_counts(&before);
	m = tensor_module_new(F32);
	x = tensor_ones(TENSOR_INTS(2, 3, 4), F32);
	y[0] = ok(tensor_module_linear(m, "a", x, 3));
	y[1] = ok(tensor_module_lstm(m, "b", x, 5, .state = &s));
	y[2] = ok(tensor_module_transformer_block(m, "c", x, 2));
	y[3] = ok(tensor_module_batch_norm(m, "d", x));
	for (int i = 0; i < 4; i++)
		tensor_release(y[i]);
	tensor_release(s.h);
	tensor_release(s.c);
	tensor_release(x);
	tensor_module_free(m);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

#define T(name) cmocka_unit_test(name)
#define P(name) cmocka_unit_test(name##_equals_pytorch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(linear),
		P(linear_no_bias),
		P(embedding),
		P(conv1d),
		P(conv2d),
		P(conv2d_lists),
		P(conv3d),
		P(conv_transpose2d),
		P(batch_norm),
		P(batch_norm_eval),
		P(batch_norm_cumulative),
		P(layer_norm),
		P(layer_norm_no_bias),
		P(rms_norm),
		P(group_norm),
		P(instance_norm),
		P(instance_norm_all),
		P(lstm),
		P(lstm_unbatched),
		P(lstm_all),
		P(gru),
		P(gru_bidirectional),
		P(attention),
		P(attention_causal),
		P(attention_cross),
		P(attention_masks),
		P(transformer_block),
		P(transformer_block_first),
		T(initial_values_are_those_of_pytorch),
		T(same_seed_makes_the_same_parameters),
		T(dropout_follows_the_mode),
		T(results_without_a_scope_belong_to_the_caller),
	};

	return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
