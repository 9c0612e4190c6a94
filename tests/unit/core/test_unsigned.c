// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * u16, u32 and u64: promotion, arithmetic and order up to their limits, and agreement with i64 in
 * its range.
 */
#include "check.h"

#include <string.h>

static const enum tensor_dtype unsigneds[] = { TENSOR_U16, TENSOR_U32, TENSOR_U64 };

#define EACH(d)                                                                        \
	for (const enum tensor_dtype *p_ = unsigneds, *end_ = p_ + 3; p_ < end_; p_++) \
		for (enum tensor_dtype d = *p_, once_ = 1; once_; once_ = 0)
#define TOP UINT64_MAX

static tensor *u64(const uint64_t *v, int64_t n)
{
	return ok(tensor_from_data(v, TENSOR_INTS(n), OF(TENSOR_U64)));
}
#define U64(...)                               \
	u64((const uint64_t[]){ __VA_ARGS__ }, \
	    (int64_t)(sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)))

static tensor *to_dtype(tensor *t, enum tensor_dtype dtype)
{
	return ok(tensor_to(t, OF(dtype)));
}

static void assert_u64(tensor *t, const uint64_t *want, int64_t n, int line)
{
	uint64_t got[16];

	assert_int_equal(tensor_dtype(t), TENSOR_U64);
	assert_int_equal(tensor_numel(t), n);
	assert_done(tensor_copy_to(t, got, n * sizeof(*got)));
	for (int64_t i = 0; i < n; i++)
		if (got[i] != want[i])
			fail_msg("line %d: element %lld is %llu, expected %llu", line, (long long)i,
				 (unsigned long long)got[i], (unsigned long long)want[i]);
}
#define ASSERT_U64(t, ...)                                                                  \
	assert_u64(ok(t), (const uint64_t[]){ __VA_ARGS__ },                                \
		   (int64_t)(sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)), \
		   __LINE__)

static void assert_bools(tensor *t, const char *want)
{
	uint8_t got[16];

	assert_int_equal(tensor_dtype(t), TENSOR_BOOL);
	assert_done(tensor_copy_to(t, got, strlen(want)));
	for (size_t i = 0; want[i]; i++)
		assert_int_equal(got[i], want[i] == '1');
}

static void promoted_dtype_holds_both_ranges(void **state)
{
	static const struct {
		enum tensor_dtype a, b, want;
	} rows[] = {
		{ TENSOR_BOOL, TENSOR_U16, TENSOR_U16 },
		{ TENSOR_U8, TENSOR_U16, TENSOR_U16 },
		{ TENSOR_I8, TENSOR_U16, TENSOR_I32 },
		{ TENSOR_I16, TENSOR_U16, TENSOR_I32 },
		{ TENSOR_I32, TENSOR_U16, TENSOR_I32 },
		{ TENSOR_I64, TENSOR_U16, TENSOR_I64 },
		{ TENSOR_U16, TENSOR_U32, TENSOR_U32 },
		{ TENSOR_I8, TENSOR_U32, TENSOR_I64 },
		{ TENSOR_I32, TENSOR_U32, TENSOR_I64 },
		{ TENSOR_I64, TENSOR_U32, TENSOR_I64 },
		{ TENSOR_U32, TENSOR_U64, TENSOR_U64 },
		{ TENSOR_U8, TENSOR_I16, TENSOR_I16 },
		{ TENSOR_F16, TENSOR_U64, TENSOR_F16 },
		{ TENSOR_C64, TENSOR_U32, TENSOR_C64 },
		{ TENSOR_U64, TENSOR_I64, 0 },
		{ TENSOR_U64, TENSOR_I8, 0 },
		{ TENSOR_F8_E4M3FN, TENSOR_F32, 0 },
		{ TENSOR_F8_E5M2, TENSOR_F8_E4M3FN, 0 },
		{ TENSOR_F8_E5M2, TENSOR_I8, 0 },
		{ TENSOR_F8_E5M2, TENSOR_F8_E5M2, TENSOR_F8_E5M2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(tensor_promote_types(rows[i].a, rows[i].b), rows[i].want);
		assert_int_equal(tensor_promote_types(rows[i].b, rows[i].a), rows[i].want);
		if (!rows[i].want)
			assert_contains(tensor_last_error()->text, "no common dtype");
	}
}

/* Operators fail if the operands have no common dtype; a 0-d tensor or a scalar is accepted. */
static void no_common_dtype_is_refused(void **state)
{
	tensor_scope {
		tensor *u = U64(1, 2), *i = to_dtype(u, TENSOR_I64), *m[] = { u, i },
		       *out = ok(tensor_empty_like(u, (tensor_options){ 0 }));

		assert_null(tensor_add(u, i));
		assert_null(tensor_lt(u, i));
		assert_null(tensor_div(u, i));
		assert_null(tensor_atan2(u, i));
		assert_null(tensor_maximum(u, i));
		assert_null(tensor_where(ok(tensor_gt_scalar(u, TENSOR_SCALAR(1))), u, i));
		assert_null(tensor_cat((tensor_list){ m, 2 }, 0));
		assert_null(tensor_add_out(out, u, i));
		assert_null(tensor_addcmul(u, i, i));
		assert_null(tensor_isin_tensor_tensor(u, i));
		assert_contains(tensor_last_error()->text, "no common dtype");
		ASSERT_U64(tensor_add(u, ok(tensor_select(i, 0, 1))), 3, 4);
		ASSERT_U64(tensor_add_scalar(u, TENSOR_SCALAR(-1)), 0, 1);
	}
}

static void arithmetic_wraps_and_order_is_unsigned(void **state)
{
	tensor_scope {
		tensor *x = U64(TOP, 1, TOP - 1, 0), *y = U64(1, TOP, 2, 3), *values, *at;

		ASSERT_U64(tensor_add(x, y), 0, 0, 0, 3);
		ASSERT_U64(tensor_sub(x, y), TOP - 1, 2, TOP - 3, TOP - 2);
		ASSERT_U64(tensor_mul(x, y), TOP, TOP, TOP - 3, 0);
		ASSERT_U64(tensor_neg(x), 1, TOP, 2, 0);
		ASSERT_U64(tensor_abs(x), TOP, 1, TOP - 1, 0);
		ASSERT_U64(tensor_sign(x), 1, 1, 1, 0);
		ASSERT_U64(tensor_relu(x), TOP, 1, TOP - 1, 0);
		ASSERT_U64(tensor_floor_divide(x, y), TOP, 0, TOP / 2, 0);
		ASSERT_U64(tensor_remainder(x, y), 0, 1, 0, 0);
		ASSERT_U64(tensor_fmod(y, U64(TOP, 2, TOP, TOP)), 1, 1, 2, 3);
		ASSERT_U64(tensor_pow(x, U64(1, TOP, 1, 0)), TOP, 1, TOP - 1, 1);
		ASSERT_U64(tensor_maximum(x, y), TOP, TOP, TOP - 1, 3);
		ASSERT_U64(tensor_minimum(x, y), 1, 1, 2, 0);
		ASSERT_U64(tensor_bitwise_right_shift(x, y), TOP / 2, 0, TOP / 4, 0);
		ASSERT_U64(tensor_clamp(x, TENSOR_SCALAR(2), (tensor_scalar){ 0 }), TOP, 2, TOP - 1,
			   2);
		ASSERT_U64(tensor_clamp(x, (tensor_scalar){ 0 }, TENSOR_SCALAR(9)), 9, 1, 9, 0);
		assert_bools(ok(tensor_lt(x, y)), "0101");
		assert_bools(ok(tensor_ge(x, y)), "1010");
		assert_bools(ok(tensor_gt_scalar(x, TENSOR_SCALAR(-1))), "1111");
		assert_bools(ok(tensor_signbit(x)), "0000");
		ASSERT_U64(tensor_amax(x, TENSOR_INTS(0), false), TOP);
		ASSERT_U64(tensor_amin(x, TENSOR_INTS(0), false), 0);
		assert_done(tensor_max_dim(x, 0, false, &values, &at));
		ASSERT_U64(values, TOP);
		assert_done(tensor_sort(x, 0, false, &values, &at));
		ASSERT_U64(values, 0, 1, TOP - 1, TOP);
		assert_done(tensor_topk(x, 2, 0, true, true, &values, &at));
		ASSERT_U64(values, TOP, TOP - 1);
		assert_done(tensor_cummax(y, 0, &values, &at));
		ASSERT_U64(values, 1, TOP, TOP, TOP);
		assert_done(tensor_cummin(x, 0, &values, &at));
		ASSERT_U64(values, TOP, 1, 1, 0);
		ASSERT_U64(tensor_scatter_reduce(y, 0,
						 ok(tensor_zeros(TENSOR_INTS(4), OF(TENSOR_I64))),
						 x, "amin"),
			   0, TOP, 2, 3);
	}
}

/* Values above INT64_MAX: exact in memory and text, a float as a scalar. */
static void values_above_int64_max_are_exact(void **state)
{
	char text[64];
	tensor_scalar s;
	double d;

	tensor_scope {
		tensor *x = U64(TOP), *f;

		tensor_format(x, text, sizeof(text));
		assert_contains(text, "18446744073709551615");
		assert_done(tensor_item(x, &d));
		assert_true(d == 0x1p64);
		assert_done(tensor_item_scalar(x, &s));
		assert_true(s.kind == TENSOR_SCALAR_FLOAT && s.d == 0x1p64);
		f = to_dtype(U64(1ull << 63, 0xfffffffffffff800), TENSOR_F64);
		ASSERT_U64(to_dtype(f, TENSOR_U64), 1ull << 63, 0xfffffffffffff800);
		ASSERT_U64(to_dtype(to_dtype(f, TENSOR_F32), TENSOR_U64), 1ull << 63, TOP);
		f = ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(-1.0), OF(TENSOR_F32)));
		ASSERT_U64(to_dtype(f, TENSOR_U64), TOP);
		ASSERT_U64(
			to_dtype(ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(-1), OF(TENSOR_I8))),
				 TENSOR_U64),
			TOP);
		ASSERT_U64(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(0x1.8p63), OF(TENSOR_U64)),
			   3ull << 62);
	}
}

static void numbers_above_int64_max_are_operands(void **state)
{
	const uint64_t half = 1ull << 63;

	tensor_scope {
		tensor *x = U64(TOP, 1, half),
		       *i = ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(INT64_MAX),
					   OF(TENSOR_I64))),
		       *b = ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR((bool)true),
					   OF(TENSOR_BOOL)));

		assert_values(ok(tensor_eq(x, TOP)), 0, 1, 0, 0);
		assert_values(ok(tensor_ge(x, half)), 0, 1, 0, 1);
		assert_values(ok(tensor_gt(x, half)), 0, 1, 0, 0);
		ASSERT_U64(tensor_sub(x, half), TOP / 2, half + 1, 0);
		ASSERT_U64(tensor_floor_divide(x, half), 1, 0, 1);
		ASSERT_U64(tensor_remainder(half + 5, U64(10, 7, half)), (half + 5) % 10,
			   (half + 5) % 7, 5);
		ASSERT_U64(tensor_where(tensor_eq(x, 1), TOP, x), TOP, TOP, half);
		ASSERT_U64(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(half + 1), OF(TENSOR_U64)),
			   half + 1);
		ASSERT_U64(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(TOP), OF(TENSOR_DTYPE_NONE)),
			   TOP);
		ASSERT_U64(tensor_fill_(ok(tensor_clone(x)), TOP - 1), TOP - 1, TOP - 1, TOP - 1);
		ASSERT_U64(tensor_masked_fill(x, tensor_eq(x, 1), TENSOR_SCALAR(2)), TOP, 2, half);
		ASSERT_U64(tensor_add(b, TOP - 1), TOP);
		assert_values(ok(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(half), OF(TENSOR_F64))),
			      0, 0x1p63);
		assert_values(ok(tensor_mul(tensor_ones(TENSOR_INTS(1), OF(TENSOR_F32)), TOP)), 0,
			      0x1p64);
		/* a signed tensor is compared with the number, and computes with none that it cannot hold */
		assert_values(ok(tensor_lt(i, half)), 0, 1);
		assert_values(ok(tensor_eq(i, half)), 0, 0);
		assert_values(ok(tensor_ne(i, TOP)), 0, 1);
		assert_fails(
			tensor_add(i, half), EOVERFLOW,
			"add.Scalar: the scalar is 9223372036854775808, beyond the range of i64");
		assert_fails(tensor_fill_(i, TOP), EOVERFLOW,
			     "18446744073709551615, beyond the range of i64");
		assert_fails(tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(TOP), OF(TENSOR_U8)),
			     EOVERFLOW, "beyond the range of u8");
		/* parameters are i64 */
		assert_fails(tensor_add_opt(x, x, TENSOR_SCALAR(TOP)), EOVERFLOW,
			     "add.Tensor: alpha is 18446744073709551615");
		assert_fails(tensor_clamp(x, TENSOR_SCALAR(0), TENSOR_SCALAR(TOP)), EOVERFLOW,
			     "max is 18446744073709551615");
		assert_fails(tensor_arange(TENSOR_SCALAR(TOP), OF(TENSOR_U64)), EOVERFLOW,
			     "end is");
	}
}

/* Every operator with a fill value takes one above INT64_MAX for u64 and floating-point dtypes. */
static void fill_values_above_int64_max(void **state)
{
	const tensor_scalar top = TENSOR_SCALAR(TOP);

	tensor_scope {
		tensor *x = U64(TOP, 1, 2), *f = to_dtype(U64(5, 1, 2), TENSOR_F32),
		       *i = to_dtype(f, TENSOR_I64), *z = to_dtype(f, TENSOR_C64),
		       *mask = ok(tensor_eq(i, 1)), *at = to_dtype(U64(1), TENSOR_I64);

		ASSERT_U64(tensor_masked_fill(x, mask, TOP - 1), TOP, TOP - 1, 2);
		ASSERT_U64(tensor_masked_fill_(ok(tensor_clone(x)), mask, top), TOP, TOP, 2);
		assert_values(ok(tensor_masked_fill(f, mask, top)), 0, 5, 0x1p64, 2);
		assert_values(ok(tensor_real(ok(tensor_masked_fill(z, mask, top)))), 0, 5, 0x1p64,
			      2);
		assert_bools(ok(tensor_masked_fill(ok(tensor_gt(i, 4)), mask, top)), "110");
		ASSERT_U64(tensor_index_fill(x, 0, at, TOP - 1), TOP, TOP - 1, 2);
		assert_values(ok(tensor_index_fill(f, 0, at, top)), 0, 5, 0x1p64, 2);
		ASSERT_U64(tensor_scatter_value(x, 0, at, TENSOR_SCALAR(TOP - 1)), TOP, TOP - 1, 2);
		ASSERT_U64(tensor_constant_pad_nd(x, TENSOR_INTS(1, 0), TENSOR_SCALAR(TOP - 1)),
			   TOP - 1, TOP, 1, 2);
		assert_fails(tensor_masked_fill(i, mask, top), EOVERFLOW,
			     "masked_fill.Scalar: the value is 18446744073709551615, beyond the "
			     "range of i64");
		assert_fails(tensor_index_fill(i, 0, at, top), EOVERFLOW,
			     "beyond the range of i64");
		assert_fails(tensor_scatter_value(i, 0, at, top), EOVERFLOW,
			     "beyond the range of i64");
		assert_fails(tensor_constant_pad_nd(i, TENSOR_INTS(1, 0), top), EOVERFLOW,
			     "beyond the range of i64");
	}
}

/* A scalar that is filled in by hand: the kind UINT up to INT64_MAX is an int, any other bool than 0 is true. */
static void scalar_of_another_form_is_made_normal(void **state)
{
	const tensor_scalar five = { .u = 5, .kind = TENSOR_SCALAR_UINT },
			    two = { .i = 2, .kind = TENSOR_SCALAR_BOOL }, both[] = { five, two };

	tensor_scope {
		tensor *i = to_dtype(U64(10, 3), TENSOR_I32), *b = to_dtype(U64(1, 0), TENSOR_BOOL),
		       *list[] = { i, i }, *results[2];
		tensor_value args[] = { { .kind = TENSOR_VALUE_TENSOR, .t = i },
					{ .kind = TENSOR_VALUE_SCALAR, .scalar = five } },
			     r;

		assert_bools(ok(tensor_lt_scalar(i, five)), "01");
		assert_int_equal(tensor_dtype(ok(tensor_add_scalar(b, five))), TENSOR_I64);
		ASSERT_U64(tensor_arange(five, OF(TENSOR_U64)), 0, 1, 2, 3, 4);
		assert_done(tensor_call("lt.Scalar", args, 2, &r, 1));
		assert_bools(r.t, "01");
		args[1].scalar = two;
		assert_done(tensor_call("fill.Scalar", args, 2, &r, 1));
		assert_values(r.t, 0, 1, 1);
		assert_values(ok(tensor_fill(i, two)), 0, 1, 1);
		assert_values(ok(tensor_add_scalar(i, two)), 0, 11, 4);
		assert_bools(ok(tensor_eq_scalar(b, two)), "10");
		assert_int_equal(tensor__foreach_add_scalarlist((tensor_list){ list, 2 },
								(tensor_scalars){ both, 2 },
								results, 2),
				 2);
		assert_values(results[0], 0, 15, 8);
		assert_values(results[1], 0, 11, 4);
	}
}

static void item_int_beyond_its_range_is_an_error(void **state)
{
	static const double floats[] = { 0x1p63, -0x1.8p63, 1e300, NAN, INFINITY };
	int64_t v = 7;

	tensor_scope {
		assert_done(tensor_item_int(U64(INT64_MAX), &v));
		assert_true(v == INT64_MAX);
		assert_fails(tensor_item_int(U64(TOP), &v), EOVERFLOW,
			     "item_int: the element 1.84467e+19 of u64 is beyond");
		for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
			assert_fails(tensor_item_int(tensor_full(TENSOR_INTS(1),
								 TENSOR_SCALAR(floats[i]),
								 OF(TENSOR_F64)),
						     &v),
				     EOVERFLOW, "beyond the range of i64");
		assert_true(v == INT64_MAX);
		assert_done(tensor_item_int(
			tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(-0x1p63), OF(TENSOR_F64)), &v));
		assert_true(v == INT64_MIN);
	}
}

/*
 * Every operator on integers, with small values: the result equals that of i64, in the unsigned
 * dtype.
 */
static tensor *operator_step(tensor *x, tensor *y, int step)
{
	tensor *v, *at,
		*index = to_dtype(ok(tensor_remainder_scalar(x, TENSOR_SCALAR(5))), TENSOR_I64);

	switch (step) {
	case 0:
		return tensor_addcmul_opt(x, y, x, TENSOR_SCALAR(2));
	case 1:
		return tensor_matmul(ok(tensor_view(x, TENSOR_INTS(4, 6))),
				     ok(tensor_view(y, TENSOR_INTS(6, 4))));
	case 2:
		return tensor_dot(x, y);
	case 3:
		return tensor_sum(x);
	case 4:
		return tensor_cumsum(x, 0);
	case 5:
		return tensor_prod(ok(tensor_slice(x, 0, 0, 3, 1)));
	case 6:
		return tensor_index_select(x, 0, index);
	case 7:
		return tensor_index_add_opt(x, 0, index, y, TENSOR_SCALAR(3));
	case 8:
		return tensor_masked_fill(x, ok(tensor_gt(x, y)), TENSOR_SCALAR(7));
	case 9:
		return tensor_unique_dim(x, 0, true, false, false, &v, &at, &index) < 0 ? NULL : v;
	case 10:
		return tensor_searchsorted(
			ok(tensor_arange(TENSOR_SCALAR(24), OF(tensor_dtype(x)))), x);
	case 11:
		return tensor_max_pool1d(ok(tensor_view(x, TENSOR_INTS(1, 2, 12))), TENSOR_INTS(2),
					 TENSOR_INTS(2), TENSOR_INTS(0), TENSOR_INTS(1), false);
	case 12:
		return tensor_bitwise_left_shift(x,
						 ok(tensor_remainder_scalar(y, TENSOR_SCALAR(3))));
	case 13:
		return tensor_bitwise_xor(x, y);
	case 14:
		return tensor_fmod(x, y);
	case 15:
		return tensor_median(x);
	case 16:
		return tensor_argmax(x, TENSOR_NONE, false);
	case 17:
		return tensor_bincount(x, tensor_none, 0);
	case 18:
		return tensor_tril(ok(tensor_view(x, TENSOR_INTS(4, 6))), 0);
	case 19:
		return tensor_nonzero(x);
	case 20:
		return tensor_repeat_interleave_self_tensor(y, to_dtype(x, TENSOR_I64), 0);
	case 21:
		return tensor_linspace(TENSOR_SCALAR(0), TENSOR_SCALAR(9), 7, OF(tensor_dtype(x)));
	case 22:
		return tensor_one_hot(to_dtype(x, TENSOR_I64), 40);
	case 23:
		return tensor_sqrt(x);
	case 24:
		return tensor_mean_opt(x, TENSOR_F64);
	case 25:
		return tensor_conv1d(
			ok(tensor_view(x, TENSOR_INTS(1, 2, 12))),
			ok(tensor_view(ok(tensor_slice(y, 0, 0, 12, 1)), TENSOR_INTS(2, 2, 3))),
			tensor_none, TENSOR_INTS(1), TENSOR_INTS(1), TENSOR_INTS(1), 1);
	default:
		return NULL;
	}
}

static bool same_values(tensor *a, tensor *b)
{
	double most = 1;

	if (tensor_numel(a) != tensor_numel(b))
		return false;
	assert_done(tensor_item(ok(tensor_max(ok(tensor_abs(ok(tensor_sub(
					to_dtype(a, TENSOR_F64), to_dtype(b, TENSOR_F64))))))),
				&most));
	return most == 0;
}

static void small_values_agree_with_i64(void **state)
{
	int64_t v[24], w[24];

	for (int i = 0; i < 24; i++) {
		v[i] = i * 7 % 11;
		w[i] = i * 5 % 13 + 1;
	}
	EACH(d)
	{
		for (int step = 0; step < 26; step++) {
			tensor_scope {
				tensor *x =
					ok(tensor_from_data(v, TENSOR_INTS(24), OF(TENSOR_I64)));
				tensor *y =
					ok(tensor_from_data(w, TENSOR_INTS(24), OF(TENSOR_I64)));
				tensor *want = operator_step(x, y, step),
				       *got = operator_step(to_dtype(x, d), to_dtype(y, d), step);

				if (!got || !want)
					fail_msg("%s, step %d: %s", tensor_dtype_name(d), step,
						 tensor_last_error()->text);
				if (!same_values(got, want))
					fail_msg("%s, step %d", tensor_dtype_name(d), step);
			}
		}
	}
}

static void random_stays_in_range(void **state)
{
	EACH(d)
	{
		tensor_scope {
			tensor *t = ok(tensor_empty(TENSOR_INTS(4096), OF(d))), *f;
			double low, high,
				most = d == TENSOR_U16 ? 65535 :
				       d == TENSOR_U32 ? 4294967295.0 :
							 0x1p63;

			ok(tensor_random_(t));
			f = to_dtype(t, TENSOR_F64);
			assert_done(tensor_item(ok(tensor_min(f)), &low));
			assert_done(tensor_item(ok(tensor_max(f)), &high));
			assert_true(low >= 0 && low < most / 16 && high > most / 16 * 15 &&
				    high <= most);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(promoted_dtype_holds_both_ranges),
		cmocka_unit_test(no_common_dtype_is_refused),
		cmocka_unit_test(arithmetic_wraps_and_order_is_unsigned),
		cmocka_unit_test(values_above_int64_max_are_exact),
		cmocka_unit_test(numbers_above_int64_max_are_operands),
		cmocka_unit_test(fill_values_above_int64_max),
		cmocka_unit_test(scalar_of_another_form_is_made_normal),
		cmocka_unit_test(item_int_beyond_its_range_is_an_error),
		cmocka_unit_test(small_values_agree_with_i64),
		cmocka_unit_test(random_stays_in_range),
	};

	return cmocka_run_group_tests_name("unsigned", tests, NULL, NULL);
}
