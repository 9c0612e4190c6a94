// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The error record names the operator that the program called, and the failing operator that this one called. */
#include "check.h"

#include <tensor/dispatch.h>

static bool begins_with(const char *text)
{
	const char *said = tensor_last_error()->text;

	if (!strncmp(said, text, strlen(text)))
		return true;
	fprintf(stderr, "error text: %s\n", said);
	return false;
}

static void composite_names_itself_and_the_failing_operator(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32)),
		       *w = ok(tensor_ones(TENSOR_SHAPE(4, 5), F32));

		assert_null(tensor_linear(x, w, tensor_none));
		assert_true(begins_with("linear: in "));
		assert_null(tensor_chain_matmul(TENSOR_LIST(x, w)));
		assert_true(begins_with("chain_matmul: in "));
	}
}

static void composite_within_a_composite_is_not_named(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32)),
		       *i = ok(tensor_ones(TENSOR_SHAPE(2), I64));
		bool close;

		assert_int_equal(tensor_allclose(x, i, 0, 0, false, &close), -EINVAL);
		assert_true(begins_with("allclose: in isclose: "));
		/* however deep the nesting, the text has at most one "in" */
		assert_null(tensor_cross_entropy_loss(x, tensor_ones(TENSOR_SHAPE(5), I64),
						      tensor_none, TENSOR_REDUCTION_MEAN, -100, 0));
		assert_true(begins_with("cross_entropy_loss: in "));
		assert_null(strstr(strstr(tensor_last_error()->text, ": in ") + 5, ": in "));
	}
}

static void text_that_names_the_operator_is_unchanged(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32)),
		       *s = ok(tensor_scalar_tensor(TENSOR_SCALAR(1), F32));

		assert_null(tensor_linear(s, x, tensor_none));
		assert_true(begins_with("linear: input must have a dimension"));
		assert_null(tensor_mm(x, x));
		assert_true(begins_with("mm: mat2 "));
		assert_null(tensor_add(x, tensor_ones(TENSOR_SHAPE(2), F32)));
		assert_true(begins_with("add.Tensor: shapes "));
	}
}

static void boxed_call_gives_the_same_text(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32)),
		       *w = ok(tensor_ones(TENSOR_SHAPE(4, 5), F32));
		const tensor_value args[] = { { .kind = TENSOR_VALUE_TENSOR, .t = x },
					      { .kind = TENSOR_VALUE_TENSOR, .t = w } };
		tensor_value result;

		assert_true(tensor_call("linear", args, 2, &result, 1) < 0);
		assert_true(begins_with("linear: in "));
	}
}

static void null_argument_keeps_its_error(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2, 3), F32));

		assert_null(tensor_linear(tensor_mm(x, x), x, tensor_none));
		assert_true(begins_with("mm: mat2 "));
	}
}

static void long_text_is_truncated(void **state)
{
	char equation[600];

	memset(equation, 'i', sizeof(equation) - 1);
	equation[sizeof(equation) - 1] = '\0';
	tensor_scope {
		assert_null(
			tensor_einsum(equation, TENSOR_LIST(tensor_ones(TENSOR_SHAPE(2), F32))));
		assert_true(begins_with("einsum: "));
		assert_true(strlen(tensor_last_error()->text) < TENSOR_ERROR_TEXT);
	}
}

/* The counts that the caller gave and those that the operator has. */
static void boxed_call_says_which_count_is_wrong(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32));
		tensor_value arg = { .kind = TENSOR_VALUE_TENSOR, .t = x }, args[9] = { arg },
			     ret[2];

		assert_fails(tensor_call("neg", args, 9, ret, 1), EINVAL,
			     "neg: takes at most 1 argument, got 9");
		assert_fails(tensor_call("mm", args, -1, ret, 1), EINVAL,
			     "mm: takes at most 2 arguments, got -1");
		assert_fails(tensor_call("mm", NULL, 2, ret, 1), EINVAL,
			     "mm: args is NULL where nargs is 2");
		assert_fails(tensor_call("neg", args, 1, ret, 2), EINVAL,
			     "neg: returns 1 result, got room for 2");
		assert_fails(tensor_call("neg", args, 1, NULL, 1), EINVAL,
			     "neg: rets is NULL where nrets is 1");
		assert_fails(tensor_call("neg", args, 0, ret, 1), EINVAL,
			     "neg: argument self is missing");
	}
}

static void text_of_the_caller_is_quoted_and_limited(void **state)
{
	char name[1000];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(2), F32));

		assert_fails(tensor_call("a\033[31m%s", NULL, 0, NULL, 0), ENOENT,
			     "call: there is no operator 'a?[31m%s'");
		assert_fails(tensor_call(name, NULL, 0, NULL, 0), ENOENT, "aaa...'");
		assert_true(strlen(tensor_last_error()->text) < 150);
		assert_fails(tensor_call(NULL, NULL, 0, NULL, 0), ENOENT, "no operator NULL");
		assert_fails(tensor_gelu_opt(x, name), EINVAL, "aaa...'");
		assert_fails(tensor_meshgrid_indexing(TENSOR_LIST(x), "\177", &x, 1), EINVAL,
			     "got '?'");
		assert_fails(tensor_einsum("i->i\302\233m", TENSOR_LIST(x)), EINVAL, "got '??m'");
		/* the reason follows a path of any length */
		assert_fails(tensor_load_npy(name, NULL), ENAMETOOLONG, "a: File name too long");
		assert_fails(tensor_load_npy("/no\nsuch\033", NULL), ENOENT,
			     "/no?such?: No such file");
	}
}

static void missing_tensor_is_named(void **state)
{
	tensor_scope {
		assert_fails(tensor_mutable_data(tensor_none), EINVAL,
			     "mutable_data: a tensor is needed, got tensor_none");
		assert_fails(tensor_data(tensor_none), EINVAL, "data: a tensor is needed");
		assert_fails(tensor_mutable_data(NULL), EINVAL,
			     "mutable_data: an argument is NULL");
		assert_fails(tensor_share_memory(tensor_none), EINVAL, "got tensor_none");
		assert_fails(tensor_set_requires_grad(tensor_none, true), EINVAL,
			     "got tensor_none");
		assert_fails(tensor_save_npy("x.npy", tensor_none), EINVAL, "got tensor_none");
		assert_fails(tensor_item(tensor_none, &(double){ 0 }), EINVAL, "got tensor_none");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(composite_names_itself_and_the_failing_operator),
		cmocka_unit_test(composite_within_a_composite_is_not_named),
		cmocka_unit_test(text_that_names_the_operator_is_unchanged),
		cmocka_unit_test(boxed_call_gives_the_same_text),
		cmocka_unit_test(null_argument_keeps_its_error),
		cmocka_unit_test(long_text_is_truncated),
		cmocka_unit_test(boxed_call_says_which_count_is_wrong),
		cmocka_unit_test(text_of_the_caller_is_quoted_and_limited),
		cmocka_unit_test(missing_tensor_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
