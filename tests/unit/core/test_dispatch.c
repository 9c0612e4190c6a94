// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operators by name: schemas, boxed calls, a backend that the program registers. */
#include "check.h"

static void boxed_call_equals_the_c_function(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3)), *b = iota(10, TENSOR_INTS(3));
		tensor_value args[] = { { .kind = TENSOR_VALUE_TENSOR, .t = a },
					{ .kind = TENSOR_VALUE_TENSOR, .t = b },
					{ .kind = TENSOR_VALUE_INT, .i = 2 } };
		tensor_value r;

		assert_done(tensor_call("add.Tensor", args, 3, &r, 1));
		assert_values(r.t, 0, 20, 23, 26, 23, 26, 29);
		assert_values(tensor_add_opt(a, b, TENSOR_SCALAR(2)), 0, 20, 23, 26, 23, 26, 29);
	}
}

static void boxed_call_refuses_invalid_arguments(void **state)
{
	tensor_scope {
		tensor_value args[] = { { .kind = TENSOR_VALUE_INT, .i = 1 },
					{ .kind = TENSOR_VALUE_TENSOR, .t = NULL } };
		tensor_value r;

		assert_fails(tensor_call("no.such", args, 1, &r, 1), ENOENT, "no.such");
		assert_fails(tensor_call("add.Tensor", args, 2, &r, 1), EINVAL,
			     "argument self: expected tensor, got int");
		assert_fails(tensor_call("add.Tensor", args, 0, &r, 1), EINVAL, "self is missing");
		assert_fails(tensor_call("add.Tensor", args, 9, &r, 1), EINVAL, "at most 3");
		assert_fails(tensor_call("neg", args + 1, 1, &r, 1), EINVAL, "NULL");
		assert_fails(tensor_call("neg", args + 1, 1, &r, 2), EINVAL,
			     "1 result, got room for 2");
	}
}

static void boxed_call_names_an_empty_scalar(void **state)
{
	const tensor_scalar empty = { .kind = TENSOR_SCALAR_NONE };

	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2)), *list[] = { a };
		tensor_value scalar[] = { { .kind = TENSOR_VALUE_TENSOR, .t = a },
					  { .kind = TENSOR_VALUE_SCALAR, .scalar = empty } },
			     each[] = { { .kind = TENSOR_VALUE_TENSOR_LIST, .list = { list, 1 } },
					{ .kind = TENSOR_VALUE_SCALARS,
					  .scalars = { &empty, 1 } } },
			     r;

		assert_fails(tensor_call("add.Scalar", scalar, 2, &r, 1), EINVAL,
			     "argument other: expected scalar, got an empty scalar");
		assert_fails(tensor_call("softmax.int", scalar, 2, &r, 1), EINVAL,
			     "argument dim: expected int, got an empty scalar");
		assert_fails(tensor_call("_foreach_add.ScalarList", each, 2, &r, 1), EINVAL,
			     "argument scalars: expected scalar list, got a scalar list with an "
			     "empty scalar");
		each[1] = scalar[1];
		assert_fails(tensor_call("_foreach_add.ScalarList", each, 2, &r, 1), EINVAL,
			     "argument scalars: expected scalar list, got an empty scalar");
	}
}

static void every_schema_is_complete(void **state)
{
	for (int i = 0; i < tensor_op_count(); i++) {
		const struct tensor_schema *s = tensor_op_schema(tensor_op_at(i));

		assert_ptr_equal(tensor_op_find(s->name), tensor_op_at(i));
		assert_contains(s->text, "->");
		for (int k = 0; k < s->nargs; k++)
			assert_true(s->args[k].name && s->args[k].type);
	}
	assert_null(tensor_op_at(tensor_op_count()));
}

/* ---- a backend of the program ---- */

static int outside_alloc(const struct tensor_allocator *self, tensor_device d, size_t n, void **p)
{
	++*(int *)self->ctx;
	*p = aligned_alloc(64, (n + 63) / 64 * 64);
	return *p ? 0 : -ENOMEM;
}

static void outside_free(const struct tensor_allocator *self, tensor_device d, void *p, size_t n)
{
	--*(int *)self->ctx;
	free(p);
}

static int live, fallback_calls;
static tensor_device outside;
static const struct tensor_allocator allocator = {
	.name = "outside", .alloc = outside_alloc, .free = outside_free, .ctx = &live
};

static tensor *outside_fill(tensor *self, tensor_scalar value)
{
	float *p = tensor_device_data(self);

	for (int64_t i = 0; i < tensor_numel(self); i++)
		p[i] = (float)value.i;
	return self;
}

/* Supports contiguous f32 of one shape only. */
static tensor *outside_mul(tensor *a, tensor *b)
{
	tensor *t = tensor_retain(tensor_empty_on(outside, tensor_shape(a), TENSOR_F32));
	float *p = tensor_device_data(t), *x = tensor_device_data(a), *y = tensor_device_data(b);

	for (int64_t i = 0; i < tensor_numel(a); i++)
		p[i] = x[i] * y[i];
	return t;
}

/* The fallback for all other operators: counts the call and returns ones. */
static int outside_fallback(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			    int nargs, tensor_value *rets, int nrets, void *ctx)
{
	tensor *t = tensor_retain(tensor_empty_on(outside, tensor_shape(args[0].t), TENSOR_F32));

	fallback_calls++;
	rets[0] = (tensor_value){ .kind = TENSOR_VALUE_TENSOR,
				  .t = outside_fill(t, TENSOR_SCALAR(1)) };
	return 0;
}

static void external_backend_runs_its_operators(void **state)
{
	int key = tensor_register_backend("outside", &allocator, &outside);
	const float *p;

	assert_in_range(key, TENSOR_KEY_PRIVATE0, TENSOR_KEY_PRIVATE3);
	assert_done(tensor_register_kernel("fill_.Scalar", key, (tensor_kernel)outside_fill));
	assert_done(tensor_register_kernel("mul.Tensor", key, (tensor_kernel)outside_mul));
	assert_done(tensor_register_fallback(key, outside_fallback, NULL));
	assert_fails(tensor_register_kernel("mul.Tensor", key, (tensor_kernel)outside_mul), EBUSY,
		     "mul.Tensor");
	assert_fails(tensor_register_kernel("nothing", key, (tensor_kernel)outside_mul), ENOENT,
		     "nothing");
	tensor_scope {
		tensor *a = ok(tensor_full(TENSOR_INTS(2, 2), TENSOR_SCALAR(3),
					   TENSOR_OPTIONS(.dtype = TENSOR_F32, .device = outside)));
		tensor *b = ok(tensor_mul(a, tensor_t(a)));

		assert_int_equal(tensor_keys(b), 1u << key);
		assert_null(tensor_data(b));
		p = tensor_device_data(b);
		assert_true(p[0] == 9 && p[3] == 9);
		p = tensor_device_data(ok(tensor_exp(a)));
		assert_true(p[0] == 1);
		assert_int_equal(fallback_calls, 1);
		assert_int_equal(live, 3);
	}
	assert_int_equal(live, 0);
}

static int traced;

static int trace(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		 tensor_value *rets, int nrets, void *ctx)
{
	traced++;
	return tensor_op_call_below(op, key, args, nargs, rets, nrets);
}

static void thread_key_set_adds_an_observer(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3));
		struct tensor_key_sets before;

		assert_done(tensor_register_fallback(TENSOR_KEY_TRACE, trace, NULL));
		before = tensor_set_key_sets((struct tensor_key_sets){ 1u << TENSOR_KEY_TRACE, 0 });
		assert_values(tensor_neg(a), 0, -0.0, -1, -2);
		tensor_set_key_sets(before);
		assert_true(traced >= 1);
		traced = 0;
		ok(tensor_neg(a));
		assert_int_equal(traced, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxed_call_equals_the_c_function),
		cmocka_unit_test(boxed_call_refuses_invalid_arguments),
		cmocka_unit_test(boxed_call_names_an_empty_scalar),
		cmocka_unit_test(every_schema_is_complete),
		cmocka_unit_test(external_backend_runs_its_operators),
		cmocka_unit_test(thread_key_set_adds_an_observer),
	};

	return cmocka_run_group_tests_name("dispatch", tests, NULL, NULL);
}
