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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(composite_names_itself_and_the_failing_operator),
		cmocka_unit_test(composite_within_a_composite_is_not_named),
		cmocka_unit_test(text_that_names_the_operator_is_unchanged),
		cmocka_unit_test(boxed_call_gives_the_same_text),
		cmocka_unit_test(null_argument_keeps_its_error),
		cmocka_unit_test(long_text_is_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
