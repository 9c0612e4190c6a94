// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Modules: names, lists, layers, and wrong use of all of them. test_module_modes.c has the state of whole trees. */
#include "train/net.h"
#include "files.h"

static tensor *ones(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_fill_(t, 1);
}

/* ---- names ---- */

static void names_and_order_are_those_of_a_state_dict(void **state)
{
	static const char *const names[] = {
		"scale",
		"layer1.0.fc.weight",
		"layer1.0.fc.bias",
		"layer1.0.bn.weight",
		"layer1.0.bn.bias",
		"layer1.0.bn.running_mean",
		"layer1.0.bn.running_var",
		"layer1.0.bn.num_batches_tracked",
		"out.weight",
		"out.bias",
	};
	tensor_module *m = tensor_module_new(F64);
	const struct tensor_named *named;
	tensor_list list;

	(void)state;
	tensor_scope {
		ok(net(m, input()));
		ok(tensor_module_parameter(m, "scale", TENSOR_INTS(2), NULL, NULL));
	}
	assert_int_equal(tensor_module_named(m, TENSOR_MODULE_PARAMETERS | TENSOR_MODULE_BUFFERS,
					     &named),
			 10);
	for (int i = 0; i < 10; i++)
		assert_string_equal(named[i].name, names[i]);
	assert_int_equal(tensor_module_named(m, TENSOR_MODULE_BUFFERS, &named), 3);
	assert_int_equal(tensor_module_named(tensor_module_child(m, "layer1"),
					     TENSOR_MODULE_PARAMETERS, &named),
			 4);
	assert_string_equal(named[3].name, "0.bn.bias");
	list = tensor_module_parameters(m);
	assert_int_equal(list.len, 7);
	assert_ptr_equal(list.data[0], tensor_module_get(m, "scale"));
	assert_int_equal(tensor_module_numel(m), 2 + 20 + 5 + 5 + 5 + 10 + 2);
	tensor_module_free(m);
}

static void a_name_is_made_once_and_kept_out_of_scopes(void **state)
{
	tensor_module *m = tensor_module_new(F64);
	tensor *first, *again;

	(void)state;
	tensor_scope
		first = ok(tensor_module_parameter(m, "a.b", TENSOR_INTS(2, 3), ones, NULL));
	tensor_scope
		again = ok(tensor_module_parameter(m, "a.b", TENSOR_INTS(2, 3), NULL, NULL));
	assert_ptr_equal(first, again);
	assert_values(first, 0, 1, 1, 1, 1, 1, 1);
	assert_ptr_equal(tensor_module_get(m, "a.b"), first);
	assert_ptr_equal(tensor_module_get(tensor_module_child(m, "a"), "b"), first);
	tensor_module_free(m);
}

static void a_parameter_requires_a_gradient_in_every_mode(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_no_grad
		ok(tensor_module_parameter(m, "a", TENSOR_INTS(2), ones, NULL));
	tensor_inference_mode ok(tensor_module_parameter(m, "b", TENSOR_INTS(2), ones, NULL));
	for (int i = 0; i < 2; i++) {
		tensor *t = tensor_module_get(m, i ? "b" : "a");

		assert_true(tensor_requires_grad(t) && tensor_is_leaf(t) &&
			    !tensor_is_inference(t));
	}
	assert_false(tensor_requires_grad(
		ok(tensor_module_buffer(m, "c", TENSOR_INTS(2), TENSOR_I64, NULL, NULL))));
	tensor_module_free(m);
}

static void options_of_the_tree_are_those_of_its_tensors(void **state)
{
	tensor_module *m = tensor_module_new(SHAREABLE(TENSOR_BF16));
	tensor *t = ok(tensor_module_parameter(m, "a", TENSOR_INTS(2), ones, NULL));
	struct tensor_buffer_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(tensor_dtype(t), TENSOR_BF16);
	assert_done(tensor_buffer_info(t, &info));
	tensor_module_free(m);
	assert_fails(tensor_module_new(I64), EINVAL, "floating");
	assert_fails(tensor_module_new(TENSOR_OPTIONS(.layout = TENSOR_SPARSE_COO)), EINVAL,
		     "strided");
	assert_fails(tensor_module_new(OF(200)), EINVAL, "floating");
}

static tensor *broken(tensor *t, void *ctx)
{
	(void)t;
	(void)ctx;
	return NULL;
}

static void wrong_names_fail(void **state)
{
	static const char *const empty[] = { "", ".", ".a", "a.", "a..b" };
	tensor_module *m = tensor_module_new(F64);
	const struct tensor_named *named;
	char path[1200];

	(void)state;
	ok(tensor_module_parameter(m, "p", TENSOR_INTS(2), NULL, NULL));
	ok(tensor_module_buffer(m, "b", TENSOR_INTS(2), 0, NULL, NULL));
	assert_non_null(tensor_module_child(m, "c"));
	assert_fails(tensor_module_child(m, NULL), EINVAL, "NULL");
	assert_fails(tensor_module_child(NULL, "a"), EINVAL, "NULL");
	for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
		assert_fails(tensor_module_child(m, empty[i]), EINVAL, "empty name");
	assert_fails(tensor_module_child(m, "a\xff"), EINVAL, "UTF-8");
	assert_fails(tensor_module_child(m, "p"), EEXIST, "'p' is a parameter");
	assert_fails(tensor_module_child(m, "b.x"), EEXIST, "'b' is a buffer");
	assert_fails(tensor_module_buffer(m, "p", TENSOR_INTS(2), 0, NULL, NULL), EEXIST,
		     "'p' is a parameter");
	assert_fails(tensor_module_parameter(m, "c", TENSOR_INTS(2), NULL, NULL), EEXIST,
		     "'c' is a child");
	assert_fails(tensor_module_parameter(m, "p", TENSOR_INTS(3), NULL, NULL), EINVAL,
		     "'p' must be [3], the module has [2]");
	assert_fails(tensor_module_parameter(m, "q", TENSOR_INTS(-3), NULL, NULL), EINVAL, "");
	assert_fails(tensor_module_parameter(m, "q", (tensor_ints){ NULL, 3 }, NULL, NULL), EINVAL,
		     "sizes");
	assert_fails(tensor_module_parameter(m, "q", (tensor_ints){ NULL, 17 }, NULL, NULL), EINVAL,
		     "sizes");
	assert_fails(tensor_module_parameter(m, "q", TENSOR_INTS(3), broken, NULL), EINVAL,
		     "initialiser");
	assert_fails(tensor_module_parameter(NULL, "q", TENSOR_INTS(3), NULL, NULL), EINVAL, "");
	assert_fails(tensor_module_get(m, "q"), ENOENT, "'q'");
	assert_fails(tensor_module_get(m, "c"), ENOENT, "'c'");
	assert_fails(tensor_module_get(m, ""), ENOENT, "");
	assert_fails(tensor_module_get(m, NULL), EINVAL, "");
	assert_fails(tensor_module_get(NULL, "a"), EINVAL, "");
	memset(path, 'x', sizeof(path));
	for (size_t i = 1; i < sizeof(path); i += 2)
		path[i] = '.';
	path[sizeof(path) - 1] = '\0';
	assert_fails(tensor_module_child(m, path), ENAMETOOLONG, "512");
	assert_int_equal(tensor_module_named(m, TENSOR_MODULE_PARAMETERS, &named), 1);
	assert_fails(tensor_module_named(m, 0, &named), EINVAL, "0x0");
	assert_fails(tensor_module_named(m, 4, &named), EINVAL, "0x4");
	assert_fails(tensor_module_named(m, 1, NULL), EINVAL, "NULL");
	assert_fails(tensor_module_named(NULL, 1, &named), EINVAL, "NULL");
	assert_int_equal(tensor_module_parameters(NULL).len, 0);
	tensor_module_free(tensor_module_child(m, "c"));
	assert_contains(tensor_last_error()->text, "'c' is a child, which its tree frees");
	tensor_module_free(m);
	tensor_module_free(NULL);
}

/* A hundred thousand names cost linear time, and the longest path no recursion. */
static void large_trees_work(void **state)
{
	tensor_module *m = tensor_module_new(F32), *c = m;
	double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	char name[32];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		assert_non_null(tensor_module_child(m, name));
	}
	for (int i = 0; i < 256; i++)
		assert_non_null(c = tensor_module_child(c, "x"));
	assert_fails(tensor_module_child(c, "x"), ENAMETOOLONG, "");
	ok(tensor_module_parameter(tensor_module_child(m, "p99999"), "w", TENSOR_INTS(1), NULL,
				   NULL));
	assert_int_equal(tensor_module_numel(m), 1);
	tensor_module_free(m);
	assert_true(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start < 5);
}

/* ---- layers ---- */

static void another_call_of_a_layer_must_have_the_same_options(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		tensor *x = input(), *image = filled(TENSOR_INTS(1, 2, 5, 5), 0);

		ok(tensor_module_linear(m, "l", x, 5));
		assert_fails(tensor_module_linear(m, "l", x, 6), EINVAL,
			     "'l' was made with out 5, not 6");
		assert_fails(tensor_module_linear(m, "l", tensor_t(x), 5), EINVAL,
			     "'l' was made with in 4, not 3");
		assert_fails(tensor_module_linear(m, "l", x, 5, .no_bias = true), EINVAL, "bias");
		assert_fails(tensor_module_layer_norm(m, "l", x), EINVAL,
			     "'l' is a layer of module_linear");
		ok(tensor_module_conv2d(m, "c", image, 3, 3));
		assert_fails(tensor_module_conv2d(m, "c", image, 3, 3, .stride = 2), EINVAL,
			     "stride[0] 1, not 2");
		assert_fails(tensor_module_conv2d(m, "c", image, 3, 0,
						  .kernels = TENSOR_INTS(3, 4)),
			     EINVAL, "kernel[1] 3, not 4");
		ok(tensor_module_layer_norm(m, "n", x));
		assert_fails(tensor_module_layer_norm(m, "n", x, .eps = 1e-6), EINVAL,
			     "eps 1e-05, not 1e-06");
		assert_int_equal(tensor_module_numel(m), 25 + 57 + 8);
	}
	tensor_module_free(m);
}

static void hostile_arguments_of_layers_fail(void **state)
{
	tensor_module *m = tensor_module_new(F64);
	struct tensor_rnn_state half = { NULL, NULL };
	tensor *none = NULL;

	(void)state;
	tensor_scope {
		tensor *x = input(), *x3 = filled(TENSOR_INTS(2, 3, 4), 0),
		       *scalar = tensor_select(tensor_select(x, 0, 0), 0, 0);

		assert_fails(tensor_module_linear(NULL, "a", x, 2), EINVAL, "NULL");
		assert_fails(tensor_module_linear(m, NULL, x, 2), EINVAL, "NULL");
		assert_fails(tensor_module_linear(m, "a", NULL, 2), EINVAL, "NULL");
		assert_fails(tensor_module_linear(m, "a", tensor_none, 2), EINVAL, "");
		assert_fails(tensor_module_linear(m, "a", scalar, 2), EINVAL, "dimensions");
		assert_fails(tensor_module_linear(m, "a", x, -1), EINVAL, "at least 0");
		assert_fails(tensor_module_linear(m, "a", x, INT64_MAX), EOVERFLOW, "");
		assert_fails(tensor_module_linear(m, "", x, 2), EINVAL, "empty");
		assert_fails(tensor_module_embedding(m, "a", x, -1, 2), EINVAL, "num");
		assert_fails(tensor_module_embedding(m, "a", x, 3, 2, .padding = true,
						     .padding_idx = 3),
			     EINVAL, "no row");
		assert_fails(tensor_module_conv2d(m, "a", x, 2, 3), EINVAL, "3 or 4 dimensions");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 0), EINVAL, "kernel");
		assert_fails(tensor_module_conv2d(m, "a", x3, 0, 3), EINVAL, "out");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 2, .groups = 3), EINVAL, "groups");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 2, .groups = -1), EINVAL,
			     "groups");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 2, .stride = -1), EINVAL,
			     "stride");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 2, .strides = TENSOR_INTS(1)),
			     EINVAL, "strides has 1 numbers");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 2, .strides = { NULL, 2 }), EINVAL,
			     "at NULL");
		assert_fails(tensor_module_conv2d(m, "a", x3, 2, 2, .strides = { NULL, -1 }),
			     EINVAL, "-1 numbers");
		assert_fails(tensor_module_batch_norm(m, "a", x, .momentum = NAN), EINVAL,
			     "momentum");
		assert_fails(tensor_module_batch_norm(m, "a", scalar), EINVAL, "[n, c");
		assert_fails(tensor_module_instance_norm(m, "a", x), EINVAL, "[n, c");
		assert_fails(tensor_module_group_norm(m, "a", x, 0), EINVAL, "0 groups");
		assert_fails(tensor_module_group_norm(m, "a", x, 3), EINVAL, "3 groups");
		assert_fails(tensor_module_layer_norm(m, "a", x, .dims = 3), EINVAL, ".dims is 3");
		assert_fails(tensor_module_layer_norm(m, "a", x, .dims = -1), EINVAL,
			     ".dims is -1");
		assert_fails(tensor_module_lstm(m, "a", scalar, 3), EINVAL, "2 or 3");
		assert_fails(tensor_module_lstm(m, "a", x3, 0), EINVAL, "hidden");
		assert_fails(tensor_module_lstm(m, "a", x3, 3, .layers = INT64_MAX), EINVAL, "");
		assert_fails(tensor_module_lstm(m, "a", x3, 3, .dropout = NAN), EINVAL, "dropout");
		half.h = x3;
		assert_fails(tensor_module_lstm(m, "a", x3, 3, .state = &half), EINVAL, "only one");
		assert_null(half.h);
		half.h = x3;
		half.c = x3;
		assert_fails(tensor_module_lstm(m, "wrong", x3, 3, .state = &half), EINVAL, "");
		assert_null(half.h);
		assert_null(half.c);
		assert_fails(tensor_module_multi_head_attention(m, "a", x, x, x, 3), EINVAL,
			     "3 heads");
		assert_fails(tensor_module_multi_head_attention(m, "a", x, x, x3, 2), EINVAL,
			     "2 or 3");
		assert_fails(tensor_module_multi_head_attention(m, "a", x, NULL, x, 2), EINVAL, "");
		assert_null(tensor_module_multi_head_attention(m, "b", x, x, x, 2, .mask = &none));
		assert_null(tensor_module_multi_head_attention(m, "b", x, x, x, 2,
							       .key_padding = &none));
		assert_fails(tensor_module_multi_head_attention(m, "b", x, x, x, 2,
								.key_padding = &x),
			     EINVAL, "key_padding");
		assert_fails(tensor_module_transformer_block(m, "t", x3, 2, .activation = 9),
			     EINVAL, "activation 9");
		assert_fails(tensor_module_transformer_block(m, "t", scalar, 2), EINVAL, "");
		/* A call that failed does not determine the options. */
		ok(tensor_module_linear(m, "a", x, 2));
		assert_fails(tensor_module_linear(m, "c", tensor_to(x, F32), 2), EINVAL, "");
	}
	tensor_module_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_and_order_are_those_of_a_state_dict),
		T(a_name_is_made_once_and_kept_out_of_scopes),
		T(a_parameter_requires_a_gradient_in_every_mode),
		T(options_of_the_tree_are_those_of_its_tensors),
		T(wrong_names_fail),
		T(large_trees_work),
		T(another_call_of_a_layer_must_have_the_same_options),
		T(hostile_arguments_of_layers_fail),
	};

	return cmocka_run_group_tests_name("module", tests, make_folder, remove_folder);
}
