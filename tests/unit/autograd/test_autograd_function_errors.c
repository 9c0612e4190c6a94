// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions of the program: failures, and arguments of a call, also of a boxed one. */
#include "autograd.h"

#include <stdio.h>
#include <tensor/dispatch.h>
#include <tensor/function.h>

static int destroyed;

static void count_destroy(void *data)
{
	(void)data;
	destroyed++;
}

static int setup(void **state)
{
	(void)state;
	destroyed = 0;
	return 0;
}

/* ---- failures ---- */

static int mode;

static int bad_forward(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	tensor *other = tensor_neg(in[0]);

	(void)nin;
	switch (mode) {
	case 0:
		return -EDOM;
	case 1:
		return tensor_matmul(in[0], in[0]) ? 0 : -1;
	case 2:
		return 0;
	case 3:
		for (int i = 0; i < nout; i++)
			out[i] = in[0];
		return tensor_function_mark_dirty(ctx, in[0]);
	case 4:
		return tensor_function_mark_dirty(ctx, other);
	case 5:
		out[0] = out[1] = NULL;
		return tensor_function_saved(ctx, 0) ? 0 : -1;
	case 6:
		out[0] = other;
		out[1] = tensor_neg(other);
		return tensor_function_mark_dirty(ctx, in[0]);
	default:
		out[0] = other;
		out[1] = tensor_neg(other);
		return 0;
	}
}

static int bad_backward(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out,
			int nin)
{
	(void)nin;
	(void)ngrads;
	switch (mode) {
	case 7:
		return -ERANGE;
	case 8:
		out[0] = tensor_stack(TENSOR_LIST(grads[0], grads[0], grads[0]), 0);
		out[0] = tensor_sum_dim(out[0], TENSOR_INTS(1), false);
		return 0;
	case 9:
		return tensor_function_save(ctx, TENSOR_LIST(grads[0]));
	case 10:
		return tensor_function_saved(ctx, 3) ? 0 : -1;
	case 11:
		return tensor_resize_(grads[0], TENSOR_INTS(1, 6)) ? 0 : -1;
	default:
		return 0;
	}
}

static const struct tensor_function bad = { "Bad", bad_forward, bad_backward, 0 };
static const struct tensor_function without = { "Without", bad_forward, NULL, 0 };

static void failures_are_errors_and_lose_nothing(void **state)
{
	static const struct {
		int code;
		const char *text;
	} forward[] = { { EDOM, "Bad: forward failed" },
			{ EINVAL, "matmul" },
			{ EINVAL, "did not set output 0" },
			{ EINVAL, "outputs 0 and 1 are one tensor, which is marked dirty" },
			{ EINVAL, "no input of Bad" },
			{ EINVAL, "only backward may call it" },
			{ EINVAL, "must return an input" } },
	  backward[] = { { ERANGE, "backward of Bad failed" },
			 { EINVAL, "must have shape [2, 3]" },
			 { EINVAL, "only forward may call it" },
			 { EINVAL, "there is no 3" },
			 { EINVAL, "changed the shape of the gradient of output 0" } };

	tensor_scope {
		tensor *x = leaf(ok(tensor_zeros(TENSOR_INTS(2, 3), F32))), *h, *y, *out[2];

		for (mode = 0; mode < 7; mode++) {
			h = ok(tensor_exp(x));
			assert_fails(tensor_function_apply(&bad, NULL, count_destroy,
							   TENSOR_LIST(h), out, 2),
				     forward[mode].code, forward[mode].text);
			assert_int_equal(destroyed, mode + 1);
			assert_null(out[0]);
		}
		for (mode = 7; mode < 12; mode++) {
			assert_done(
				tensor_function_apply(&bad, NULL, NULL, TENSOR_LIST(x), out, 2));
			/* The gradient of the product is no view, so it can be resized. */
			y = ok(tensor_sum(tensor_mul_scalar(out[0], S(2))));
			assert_fails(tensor_backward(y), backward[mode - 7].code,
				     backward[mode - 7].text);
		}
		assert_done(tensor_function_apply(&bad, NULL, NULL, TENSOR_LIST(x), out, 2));
		assert_done(tensor_backward(tensor_sum(out[0])));
		assert_null(tensor_grad(x));
		assert_done(tensor_function_apply(&without, NULL, NULL, TENSOR_LIST(x), out, 2));
		assert_fails(tensor_backward(tensor_sum(out[0])), EOPNOTSUPP,
			     "Without has no backward");
	}
}

static void arguments_are_checked(void **state)
{
	const struct tensor_function nameless = { "", bad_forward, NULL, 0 },
				     flagged = { "F", bad_forward, NULL, 64 };
	/* A trace and a table have the name as it is. */
	static const char *const names[] = { "a\"b",	 "a\\",	 "\n",	"\x1b[2J",
					     "\xc2\x9b", "\xff", "\xc3" };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *out[1], *none = NULL;

		assert_fails(tensor_function_apply(NULL, NULL, count_destroy, TENSOR_LIST(x), out,
						   1),
			     EINVAL, "name");
		assert_fails(tensor_function_apply(&nameless, NULL, NULL, TENSOR_LIST(x), out, 1),
			     EINVAL, "name");
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			assert_fails(tensor_function_apply(&(struct tensor_function){ names[i],
										      bad_forward,
										      NULL, 0 },
							   NULL, NULL, TENSOR_LIST(x), out, 1),
				     EINVAL, "UTF-8");
		assert_fails(tensor_function_apply(&flagged, NULL, NULL, TENSOR_LIST(x), out, 1),
			     EINVAL, "0x40");
		assert_fails(tensor_function_apply(&bad, NULL, NULL, TENSOR_LIST(x), out, 0),
			     EINVAL, "0 outputs");
		assert_fails(tensor_function_apply(&bad, NULL, NULL, (tensor_list){ &none, 1 }, out,
						   1),
			     EINVAL, "NULL");
		assert_int_equal(destroyed, 1);
		assert_fails(tensor_function_apply(&bad, NULL, NULL,
						   TENSOR_LIST(ok(tensor_make_dual(x, x))), out, 1),
			     EOPNOTSUPP, "forward mode");
		assert_fails(tensor_function_saved(NULL, 0), EINVAL, "only backward");
		assert_fails(tensor_function_save(NULL, TENSOR_LIST(x)), EINVAL, "only forward");
	}
}

/* ---- arguments of any kind ---- */

/* y = (x0 + x1 + ...) * factors[0] * scale, where the arguments are a list, floats, a number and a text. */
static int sum_scaled(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs,
		      tensor **outputs, int noutputs)
{
	const tensor_value *factors = tensor_function_argument(ctx, 1),
			   *scale = tensor_function_argument(ctx, 2);
	tensor *sum = inputs[0];

	(void)noutputs;
	for (int i = 1; i < ninputs; i++)
		sum = tensor_add(sum, inputs[i]);
	outputs[0] = tensor_mul_scalar(sum, S(factors->floats.data[0] * scale->f));
	return outputs[0] ? 0 : -1;
}

static char text_in_backward[16];

static int sum_scaled_backward(tensor_function_ctx *ctx, tensor *const *grads, int noutputs,
			       tensor **out, int ninputs)
{
	const tensor_value *factors = tensor_function_argument(ctx, 1),
			   *scale = tensor_function_argument(ctx, 2);

	(void)noutputs;
	assert_int_equal(tensor_function_argument_count(ctx), 6);
	assert_int_equal(tensor_function_argument(ctx, 0)->list.len, 2);
	assert_null(tensor_function_argument(ctx, 0)->list.data);
	assert_int_equal(tensor_function_argument(ctx, 4)->ints.data[2], 9);
	assert_null(tensor_function_argument(ctx, 5)->t);
	snprintf(text_in_backward, sizeof(text_in_backward), "%s",
		 tensor_function_argument(ctx, 3)->s);
	for (int i = 0; i < ninputs; i++)
		out[i] = tensor_mul_scalar(grads[0], S(factors->floats.data[0] * scale->f));
	return 0;
}

static const struct tensor_function scaled = { .name = "SumScaled",
					       .forward = sum_scaled,
					       .backward = sum_scaled_backward };

static void boxed_call_keeps_arguments_of_any_kind(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *w = leaf_iota(5, TENSOR_INTS(2)), *y;
		double factors[] = { 3, 4 };
		int64_t ints[] = { 7, 8, 9 };
		char text[] = "nearest";
		tensor *list[] = { x, w };
		const tensor_value args[] = {
			{ .kind = TENSOR_VALUE_TENSOR_LIST, .list = { list, 2 } },
			{ .kind = TENSOR_VALUE_FLOATS, .floats = { factors, 2 } },
			{ .kind = TENSOR_VALUE_FLOAT, .f = 2 },
			{ .kind = TENSOR_VALUE_STRING, .s = text },
			{ .kind = TENSOR_VALUE_INTS, .ints = { ints, 3 } },
			{ .kind = TENSOR_VALUE_TENSOR, .t = x },
		};

		assert_done(tensor_function_call(&scaled, NULL, NULL, args, 6, &y, 1));
		assert_values(y, 0, 42, 60); /* x counts twice */
		factors[0] = ints[2] = text[0] = 0;
		assert_done(tensor_backward(tensor_sum(y)));
		assert_values(tensor_grad(x), 0, 12, 12);
		assert_values(tensor_grad(w), 0, 6, 6);
		assert_string_equal(text_in_backward, "nearest");
	}
}

static void bad_boxed_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y;
		tensor_value v = { .kind = 99 };

		assert_fails(tensor_function_call(&scaled, NULL, NULL, &v, 1, &y, 1), EINVAL,
			     "kind");
		v = (tensor_value){ .kind = TENSOR_VALUE_INTS, .ints = { NULL, 3 } };
		assert_fails(tensor_function_call(&scaled, NULL, NULL, &v, 1, &y, 1), EINVAL,
			     "NULL");
		v = (tensor_value){ .kind = TENSOR_VALUE_TENSOR_LIST, .list = { &x, -1 } };
		assert_fails(tensor_function_call(&scaled, NULL, NULL, &v, 1, &y, 1), EINVAL, "-1");
		v = (tensor_value){ .kind = TENSOR_VALUE_TENSOR };
		assert_fails(tensor_function_call(&scaled, NULL, NULL, &v, 1, &y, 1), EINVAL,
			     "NULL");
		assert_fails(tensor_function_call(&scaled, NULL, NULL, NULL, 1, &y, 1), EINVAL,
			     "arguments");
		assert_fails(tensor_function_call(&scaled, NULL, NULL, &v, -1, &y, 1), EINVAL,
			     "arguments");
		assert_fails(tensor_function_call(NULL, NULL, NULL, NULL, 0, &y, 1), EINVAL,
			     "function");
		assert_null(tensor_function_argument(NULL, 0));
		assert_int_equal(tensor_function_argument_count(NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(failures_are_errors_and_lose_nothing, setup),
		cmocka_unit_test_setup(arguments_are_checked, setup),
		cmocka_unit_test(boxed_call_keeps_arguments_of_any_kind),
		cmocka_unit_test(bad_boxed_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("autograd_function_errors", tests, NULL, NULL);
}
