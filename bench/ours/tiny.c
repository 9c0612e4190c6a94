// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* One operator on a 4 x 4 matrix: the overhead of a call. */
#include "row.h"

#include <tensor/dispatch.h>

static tensor *a, *b, *out;

static void setup(void)
{
	a = row_wave(TENSOR_SHAPE(4, 4), 0, 1);
	b = row_wave(TENSOR_SHAPE(4, 4), 1, 1);
	out = row_own(tensor_empty(TENSOR_SHAPE(4, 4), TENSOR_OPTIONS(0)));
}

/* A row whose expression returns a tensor that the caller owns. */
#define ROW(name, expr)                       \
	static void run_##name(int64_t n)     \
	{                                     \
		while (n--)                   \
			tensor_release(expr); \
	}                                     \
	static double value_##name(void)      \
	{                                     \
		return row_sum(expr);         \
	}

ROW(add, tensor_add(a, b))
ROW(view, tensor_view(a, TENSOR_SHAPE(16)))
ROW(select, tensor_select(a, 0, 1))
ROW(sum, tensor_sum(a))
ROW(mm, tensor_mm(a, b))
ROW(softmax, tensor_softmax(a, 1))

static void run_empty(int64_t n)
{
	while (n--)
		tensor_release(tensor_empty(TENSOR_SHAPE(4, 4), TENSOR_OPTIONS(0)));
}

static void run_add_out(int64_t n)
{
	while (n--)
		tensor_add_out(out, a, b);
}

static double value_add_out(void)
{
	return row_sum(tensor_retain(tensor_add_out(out, a, b)));
}

/* A boxed call by schema name, as in bindings: no peer, counted by bench/instructions. */
static void run_add_boxed(int64_t n)
{
	const tensor_op *op = tensor_op_find("add.Tensor");
	tensor_value args[] = { { .kind = TENSOR_VALUE_TENSOR, .t = a },
				{ .kind = TENSOR_VALUE_TENSOR, .t = b } };
	tensor_value ret;

	while (n--) {
		tensor_op_call(op, args, 2, &ret, 1);
		tensor_release(ret.t);
	}
}

const struct row tiny_rows[] = {
	{ "empty", setup, run_empty, NULL, NULL },
	{ "add", setup, run_add, value_add, NULL },
	{ "add_out", setup, run_add_out, value_add_out, NULL },
	{ "add_boxed", setup, run_add_boxed, NULL, NULL },
	{ "view", setup, run_view, value_view, NULL },
	{ "select", setup, run_select, value_select, NULL },
	{ "sum", setup, run_sum, value_sum, NULL },
	{ "mm", setup, run_mm, value_mm, NULL },
	{ "softmax", setup, run_softmax, value_softmax, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
