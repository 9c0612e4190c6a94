// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operators that move elements: flip, roll, repeat, pads, triangles, splits and ranges, against
 * expected numbers; tensors with negative strides; derivatives against central differences.
 */
#include "formulas.h"

#define LINES 37

/* Flips 2 planes of LINES rows of n elements, the first of `wide` ones, that begin at element `first` of a storage. */
static void check_flip(enum tensor_dtype dtype, int64_t n, int64_t wide, int64_t first)
{
	tensor_scope {
		int64_t numel = 2 * LINES * wide;
		tensor *x = ok(tensor_arange(TENSOR_SCALAR(first + numel), I64));
		const int64_t *got;

		x = ok(tensor_remainder_scalar(x, TENSOR_SCALAR(101)));
		x = ok(tensor_narrow(tensor_to(x, TENSOR_OPTIONS(.dtype = dtype)), 0, first,
				     numel));
		x = ok(tensor_narrow(tensor_view(x, TENSOR_INTS(2, LINES, wide)), 2, 0, n));
		got = tensor_data(ok(tensor_to(ok(tensor_flip(x, TENSOR_INTS(1))), I64)));
		for (int64_t i = 0; i < 2 * LINES * n; i++) {
			int64_t plane = i / n / LINES, line = LINES - 1 - i / n % LINES;

			assert_int_equal(got[i],
					 (first + (plane * LINES + line) * wide + i % n) % 101);
		}
	}
}

/* Rows of a few bytes are copied as single elements where they are aligned. */
static void flip_of_short_rows(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I16, TENSOR_I32, TENSOR_I64 };

	for (size_t k = 0; k < ARRAY_SIZE(dtypes); k++)
		for (int64_t n = 1; n <= 9; n++)
			for (int64_t first = 0; first < 4; first++) {
				check_flip(dtypes[k], n, n, first);
				check_flip(dtypes[k], n, n + 1, first);
				check_flip(dtypes[k], n, 16, first);
			}
}

static void flip_and_roll_move_every_element_once(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3));

		assert_values(ok(tensor_flip(x, TENSOR_INTS(1))), 0, 2, 1, 0, 5, 4, 3);
		assert_values(ok(tensor_flip(x, TENSOR_INTS(0, -1))), 0, 5, 4, 3, 2, 1, 0);
		assert_values(ok(tensor_flip(tensor_t(x), TENSOR_INTS(0))), 0, 2, 5, 1, 4, 0, 3);
		assert_values(ok(tensor_roll(x, TENSOR_INTS(1), TENSOR_INTS(1))), 0, 2, 0, 1, 5, 3,
			      4);
		assert_values(ok(tensor_roll(x, TENSOR_INTS(-1, 4), TENSOR_INTS(1, 0))), 0, 1, 2, 0,
			      4, 5, 3);
		assert_values(ok(tensor_roll(tensor_t(x), TENSOR_INTS(2), TENSOR_INTS())), 0, 2, 5,
			      0, 3, 1, 4);
		assert_values(ok(tensor_rot90(x, 1, TENSOR_INTS(0, 1))), 0, 2, 5, 1, 4, 0, 3);
		assert_fails(tensor_flip(x, TENSOR_INTS(0, 0)) == NULL, EINVAL, "twice");
		assert_fails(tensor_roll(x, TENSOR_INTS(1, 2), TENSOR_INTS(0)) == NULL, EINVAL,
			     "same number");
	}
}

static void repeat_works_with_sixteen_dimensions(void **state)
{
	tensor_scope {
		const int64_t sizes[16] = { [0 ... 14] = 1, [15] = 2 };
		const int64_t twice[16] = { [0] = 2, [1 ... 14] = 1, [15] = 3 };
		tensor *x = iota(0, TENSOR_INTS(1, 2)), *wide;

		assert_values(ok(tensor_repeat(x, TENSOR_INTS(2, 1, 2))), 0, 0, 1, 0, 1, 0, 1, 0,
			      1);
		wide = ok(tensor_view(x, (tensor_ints){ sizes, 16 }));
		assert_values(ok(tensor_repeat(wide, (tensor_ints){ twice, 16 })), 0, 0, 1, 0, 1, 0,
			      1, 0, 1, 0, 1, 0, 1);
		assert_values(ok(tensor_repeat_interleave(x, 2, 1)), 0, 0, 0, 1, 1);
		assert_int_equal(tensor_numel(ok(tensor_repeat(x, TENSOR_INTS(0, 2)))), 0);
		assert_fails(tensor_repeat(x, TENSOR_INTS(2)) == NULL, EINVAL, "repeats");
		assert_fails(tensor_repeat(x, TENSOR_INTS(2, -1)) == NULL, EINVAL, "negative");
	}
}

static void padding_modes_extend_the_input(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 2, 3));

		assert_values(ok(tensor_constant_pad_nd(x, TENSOR_INTS(1, -1, 0, 1), S(9))), 0, 9,
			      1, 2, 9, 4, 5, 9, 9, 9);
		assert_values(ok(tensor_pad(x, TENSOR_INTS(2, 1), "reflect", TENSOR_NO_FLOAT)), 0,
			      3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5);
		assert_values(ok(tensor_pad(x, TENSOR_INTS(2, 1), "replicate", TENSOR_NO_FLOAT)), 0,
			      1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6);
		assert_values(ok(tensor_pad(x, TENSOR_INTS(1, 1), "circular", TENSOR_NO_FLOAT)), 0,
			      3, 1, 2, 3, 1, 6, 4, 5, 6, 4);
		assert_fails(tensor_reflection_pad1d(x, TENSOR_INTS(3, 0)) == NULL, EINVAL,
			     "less than the size");
		assert_fails(tensor_constant_pad_nd(x, TENSOR_INTS(-2, -2), S(0)) == NULL, EINVAL,
			     "leave nothing");
		assert_fails(tensor_pad(x, TENSOR_INTS(1, 1), "mirror", TENSOR_NO_FLOAT) == NULL,
			     EINVAL, "mode must be");
	}
}

static void triangles_write_every_layout(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 3)), *room, *out;

		assert_values(ok(tensor_tril(x, 0)), 0, 1, 0, 0, 4, 5, 0);
		assert_values(ok(tensor_triu(tensor_t(x), -1)), 0, 1, 4, 2, 5, 0, 6);
		room = ok(tensor_full(TENSOR_INTS(4, 9), S(7), F32));
		out = ok(tensor_slice(tensor_slice(room, 0, 0, TENSOR_NONE, 2), 1, 0, TENSOR_NONE,
				      3));
		ok(tensor_triu_out(out, x, 1));
		assert_values(out, 0, 0, 2, 3, 0, 0, 6);
		assert_values(tensor_sum(room), 0, 30 * 7 + 11);
		ok(tensor_tril_(x, -1));
		assert_values(x, 0, 0, 0, 0, 4, 0, 0);
	}
}

/* A reversed view, which only the library and callers of as_strided() make. */
static void negative_strides_are_read_and_written(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(6)), *back, *two;

		back = ok(tensor_as_strided(x, TENSOR_INTS(6), TENSOR_INTS(-1), 5));
		two = ok(tensor_as_strided(x, TENSOR_INTS(2, 3), TENSOR_INTS(-3, -1), 5));
		assert_values(back, 0, 5, 4, 3, 2, 1, 0);
		assert_values(ok(tensor_add(back, x)), 0, 5, 5, 5, 5, 5, 5);
		assert_values(ok(tensor_sum_dim(two, TENSOR_INTS(1), false)), 0, 12, 3);
		assert_values(ok(tensor_index_select(two, 1,
						     ok(tensor_to(iota(1, TENSOR_INTS(2)), I64)))),
			      0, 4, 3, 1, 0);
		assert_values(ok(tensor_cat(TENSOR_LIST(back, x), 0)), 0, 5, 4, 3, 2, 1, 0, 0, 1, 2,
			      3, 4, 5);
		assert_values(ok(tensor_reshape(two, TENSOR_INTS(3, 2))), 0, 5, 4, 3, 2, 1, 0);
		assert_values(ok(tensor_flip(two, TENSOR_INTS(0, 1))), 0, 0, 1, 2, 3, 4, 5);
		ok(tensor_fill_(tensor_select(two, 0, 0), S(8)));
		ok(tensor_index_put(back, tensor_full(TENSOR_SCALAR_SHAPE, S(9), F32),
				    TENSOR_I(-1)));
		assert_values(x, 0, 9, 1, 2, 8, 8, 8);
	}
}

static void splits_are_views_that_cover_the_tensor(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(5, 2)), *parts[5];

		assert_int_equal(tensor_split(x, 2, 0, parts, 5), 3);
		assert_shape(parts[2], 1, 2);
		assert_true(tensor_shares_storage(parts[1], x));
		assert_int_equal(tensor_split_with_sizes(x, TENSOR_INTS(1, 4), 0, parts, 5), 2);
		assert_values(tensor_select(parts[1], 1, 0), 0, 2, 4, 6, 8);
		assert_int_equal(tensor_chunk(x, 4, 0, parts, 5), 3);
		assert_int_equal(tensor_unbind(x, 1, parts, 5), 2);
		assert_values(parts[1], 0, 1, 3, 5, 7, 9);
		assert_int_equal(tensor_tensor_split(x, 3, 0, parts, 5), 3);
		assert_shape(parts[2], 1, 2);
		assert_fails(tensor_unbind(x, 0, parts, 4), ENOSPC, "room for 4");
		assert_fails(tensor_split_with_sizes(x, TENSOR_INTS(1, 3), 0, parts, 5), EINVAL,
			     "add up to 4");
	}
}

static tensor *ints(tensor_ints values, tensor_ints shape)
{
	return ok(tensor_from_data(values.data, shape, TENSOR_OPTIONS(.dtype = TENSOR_I64)));
}

static void a_tensor_may_have_the_positions_of_a_split(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(5)),
		       *at = ints(TENSOR_INTS(4, 1, 9), TENSOR_INTS(3)), *parts[8];

		assert_int_equal(tensor_tensor_split_tensor(x, at, 0, parts, 8), 4);
		assert_values(parts[0], 0, 0, 1, 2, 3);
		assert_shape(parts[1], 0);
		assert_values(parts[2], 0, 1, 2, 3, 4);
		assert_shape(parts[3], 0);
		at = ok(tensor_slice(ints(TENSOR_INTS(1, 7, 3, 7), TENSOR_INTS(4)), 0, 0, 4, 2));
		assert_int_equal(tensor_tensor_split_tensor(x, at, -1, parts, 8), 3);
		assert_values(parts[1], 0, 1, 2);
		assert_true(tensor_shares_storage(parts[1], x));
		at = ok(tensor_select(at, 0, 1));
		assert_int_equal(tensor_tensor_split_tensor(x, at, 0, parts, 8), 3);
		assert_values(parts[0], 0, 0, 1);
		at = ok(tensor_zeros(TENSOR_INTS(0), TENSOR_OPTIONS(.dtype = TENSOR_I64)));
		assert_int_equal(tensor_tensor_split_tensor(x, at, 0, parts, 8), 1);
		assert_fails(tensor_tensor_split_tensor(x, x, 0, parts, 8), EINVAL,
			     "must be i64 with at most one dimension, got f32 [5]");
		at = ints(TENSOR_INTS(1, 3), TENSOR_INTS(1, 2));
		assert_fails(tensor_tensor_split_tensor(x, at, 0, parts, 8), EINVAL, "[1, 2]");
		at = ok(tensor_to_sparse(at));
		assert_fails(tensor_tensor_split_tensor(x, at, 0, parts, 8), EOPNOTSUPP, "Sparse");
		at = ints(TENSOR_INTS(0), TENSOR_SCALAR_SHAPE);
		assert_fails(tensor_tensor_split_tensor(x, at, 0, parts, 8), EINVAL, "section");
		at = ints(TENSOR_INTS(1, 2), TENSOR_INTS(2));
		assert_fails(tensor_tensor_split_tensor(x, at, 0, parts, 2), ENOSPC, "room for 2");
	}
}

static void view_dtype_reinterprets_bytes(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(2, 2), F32)), *c;

		assert_values(ok(tensor_view_dtype(x, TENSOR_I32)), 0, 0x3f800000, 0x3f800000,
			      0x3f800000, 0x3f800000);
		assert_shape(ok(tensor_view_dtype(x, TENSOR_U8)), 2, 8);
		assert_shape(ok(tensor_view_dtype(x, TENSOR_F64)), 2, 1);
		c = ok(tensor_view_dtype(x, TENSOR_U8));
		assert_values(ok(tensor_view_dtype(c, TENSOR_I32)), 0, 0x3f800000, 0x3f800000,
			      0x3f800000, 0x3f800000);
		assert_fails(tensor_view_dtype(tensor_t(x), TENSOR_F64) == NULL, EINVAL,
			     "stride 1");
		c = ok(tensor_view_as_complex(iota(1, TENSOR_INTS(2, 2))));
		assert_values(ok(tensor_imag(c)), 0, 2, 4);
		assert_values(ok(tensor_real(c)), 0, 1, 3);
		assert_values(ok(tensor_view_as_real(c)), 0, 1, 2, 3, 4);
	}
}

static void view_dtype_joins_elements_of_the_last_dimension(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(2, 2), F64));
		tensor *bytes = ok(tensor_view_dtype(x, TENSOR_U8)), *y;

		y = ok(tensor_view_dtype(bytes, TENSOR_F64));
		assert_shape(y, 2, 2);
		assert_values(y, 0, 1, 1, 1, 1);
		assert_shape(ok(tensor_view_dtype(bytes, TENSOR_I32)), 2, 4);
		y = ok(tensor_narrow(bytes, 1, 8, 8));
		assert_shape(ok(tensor_view_dtype(y, TENSOR_F64)), 2, 1);
		y = ok(tensor_as_strided(bytes, TENSOR_INTS(2, 8), TENSOR_INTS(12, 1), 0));
		assert_fails(tensor_view_dtype(y, TENSOR_F64) == NULL, EINVAL, "stride 12");
		y = ok(tensor_narrow(bytes, 1, 1, 8));
		assert_fails(tensor_view_dtype(y, TENSOR_F64) == NULL, EINVAL, "not aligned");
	}
}

static void view_dtype_of_memory_of_the_program_is_aligned(void **state)
{
	static _Alignas(16) char memory[32];

	tensor_scope {
		tensor *x = ok(tensor_from_blob(memory + 1, TENSOR_INTS(16), TENSOR_NO_INTS,
						OF(TENSOR_U8), NULL, NULL));

		assert_fails(tensor_view_dtype(x, TENSOR_F32) == NULL, EINVAL, "not aligned");
		x = ok(tensor_from_blob(memory + 4, TENSOR_INTS(16), TENSOR_NO_INTS, OF(TENSOR_U8),
					NULL, NULL));
		assert_shape(ok(tensor_view_dtype(x, TENSOR_F32)), 4);
		assert_fails(tensor_view_dtype(x, TENSOR_F64) == NULL, EINVAL, "not aligned");
	}
}

static void ranges_include_both_limits(void **state)
{
	tensor_scope {
		assert_values(ok(tensor_linspace(S(0), S(1), 5, F64)), 0, 0, 0.25, 0.5, 0.75, 1);
		assert_values(ok(tensor_linspace(S(3), S(0), 1, F32)), 0, 3);
		assert_values(ok(tensor_linspace(S(-2), S(7), 4, I64)), 0, -2, 1, 4, 7);
		assert_values(ok(tensor_logspace(S(0), S(2), 3, 10, F64)), 1e-12, 1, 10, 100);
		assert_values(ok(tensor_eye_m(2, 3, F32)), 0, 1, 0, 0, 0, 1, 0);
		assert_values(ok(tensor_tril_indices(2, 2, 0, TENSOR_OPTIONS(0))), 0, 0, 1, 1, 0, 0,
			      1);
		assert_values(ok(tensor_arange(S(3), TENSOR_OPTIONS(.dtype = TENSOR_BF16))), 0, 0,
			      1, 2);
		assert_fails(tensor_linspace(S(0), S(1), -1, F32) == NULL, EINVAL, "negative");
	}
}

/* Copied in tiles if there are enough elements, with partial tiles at the edges. */
static void transposed_copies_are_exact_at_the_edges(void **state)
{
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I16, TENSOR_F32, TENSOR_F64,
						    TENSOR_C128 };

	for (int64_t rows = 7; rows < 36; rows += 7)
		for (int64_t columns = 8; columns < 41; columns += 8 + columns % 3)
			for (size_t k = 0; k < ARRAY_SIZE(dtypes); k++)
				tensor_scope {
					tensor *x = iota(0, TENSOR_INTS(rows, columns)), *t;

					x = ok(tensor_fmod_scalar(x, S(100)));
					x = ok(tensor_to(x, TENSOR_OPTIONS(.dtype = dtypes[k])));
					t = ok(tensor_contiguous(tensor_t(x)));
					assert_true(tensor_is_contiguous(t));
					for (int64_t i = 0; i < rows * columns; i++) {
						int64_t r = i / columns, c = i % columns;
						double v;

						assert_done(tensor_at(t, TENSOR_INTS(c, r), &v));
						assert_true(v == (double)(i % 100));
					}
				}
}

/* ---- derivatives ---- */

static tensor *second_part(tensor *a)
{
	tensor *parts[4];

	return tensor_chunk(tensor_mul(a, a), 2, 1, parts, 4) < 0 ? NULL :
								    tensor_mul(parts[0], parts[1]);
}

CASE(fn_flip, tensor_exp(tensor_flip(a, TENSOR_INTS(0, 1))))
CASE(fn_roll, tensor_exp(tensor_roll(a, TENSOR_INTS(1, 2), TENSOR_INTS(0, 1))))
CASE(fn_repeat, tensor_exp(tensor_repeat(a, TENSOR_INTS(2, 3, 2))))
CASE(fn_tril, tensor_exp(tensor_tril(a, -1)))
CASE(fn_triu, tensor_exp(tensor_triu(a, 1)))
CASE(fn_diag_embed, tensor_exp(tensor_diag_embed(a, 1, 0, -1)))
CASE(fn_constant_pad, tensor_exp(tensor_constant_pad_nd(a, TENSOR_INTS(1, -1, 2, 1), S(2))))
CASE(fn_reflect1, tensor_exp(tensor_reflection_pad1d(a, TENSOR_INTS(2, 1))))
CASE(fn_reflect2, tensor_exp(tensor_reflection_pad2d(a, TENSOR_INTS(1, 2, 1, 0))))
CASE(fn_reflect3, tensor_exp(tensor_reflection_pad3d(a, TENSOR_INTS(1, 0, 0, 1, 1, 1))))
CASE(fn_reflect1_backward, tensor_exp(tensor_reflection_pad1d_backward(a, b, TENSOR_INTS(2, 1))))
CASE(fn_replicate1, tensor_exp(tensor_replication_pad1d(a, TENSOR_INTS(2, -1))))
CASE(fn_replicate1_backward, tensor_exp(tensor_replication_pad1d_backward(a, b, TENSOR_INTS(2, 1))))
CASE(fn_reflect2_backward,
     tensor_exp(tensor_reflection_pad2d_backward(a, b, TENSOR_INTS(1, 0, 0, 1))))
CASE(fn_replicate2_backward,
     tensor_exp(tensor_replication_pad2d_backward(a, b, TENSOR_INTS(1, 0, 0, 1))))
CASE(fn_reflect3_backward,
     tensor_exp(tensor_reflection_pad3d_backward(a, b, TENSOR_INTS(1, 0, 0, 0, 0, 1))))
CASE(fn_replicate3_backward,
     tensor_exp(tensor_replication_pad3d_backward(a, b, TENSOR_INTS(1, 0, 0, 0, 0, 1))))
CASE(fn_replicate2, tensor_exp(tensor_replication_pad2d(a, TENSOR_INTS(1, -1, 2, 1))))
CASE(fn_replicate3, tensor_exp(tensor_replication_pad3d(a, TENSOR_INTS(1, 0, 0, 1, 1, 1))))
CASE(fn_circular, tensor_exp(tensor_pad(a, TENSOR_INTS(1, 2), "circular", TENSOR_NO_FLOAT)))
CASE(fn_unfold, tensor_exp(tensor_unfold(a, 0, 2, 1)))
CASE(fn_squeeze_dims, tensor_exp(tensor_squeeze_dims(a, TENSOR_INTS(0, 2))))
CASE(fn_stack, tensor_exp(tensor_stack(TENSOR_LIST(a, b), 1)))
CASE(fn_chunk, second_part(a))
CASE(fn_as_complex, tensor_exp(tensor_imag(tensor_view_as_complex(tensor_mul(a, a)))))

static const struct formula formulas[] = {
	ROW(flip, 1, IN_T(1, 0, 2, 3)),
	ROW(roll, 1, IN(1, 0, 2, 3)),
	ROW(repeat, 1, IN_T(1, 0, 2, 2)),
	ROW(tril, 1, IN_T(1, 0, 3, 3)),
	ROW(triu, 1, IN(1, 0, 3, 4)),
	ROW(diag_embed, 1, IN(1, 0, 2, 3)),
	ROW(constant_pad, 1, IN_T(1, 0, 2, 3)),
	ROW(reflect1, 1, IN(1, 0, 2, 4)),
	ROW(reflect2, 1, IN_T(1, 0, 2, 3, 3)),
	ROW(reflect3, 1, IN_T(1, 0, 1, 2, 2, 2)),
	ROW(reflect1_backward, 2, IN(1, 0, 2, 6), IN(1, 0, 2, 3)),
	ROW(reflect2_backward, 2, IN(1, 0, 1, 4, 3), IN(1, 0, 1, 3, 2)),
	ROW(reflect3_backward, 2, IN(1, 0, 1, 3, 2, 3), IN(1, 0, 1, 2, 2, 2)),
	ROW(replicate1, 1, IN_T(1, 0, 2, 3)),
	ROW(replicate1_backward, 2, IN(1, 0, 2, 6), IN(1, 0, 2, 3)),
	ROW(replicate2_backward, 2, IN(1, 0, 1, 4, 3), IN(1, 0, 1, 3, 2)),
	ROW(replicate3_backward, 2, IN(1, 0, 1, 3, 2, 3), IN(1, 0, 1, 2, 2, 2)),
	ROW(replicate2, 1, IN(1, 0, 1, 3, 3)),
	ROW(replicate3, 1, IN(1, 0, 1, 2, 2, 2)),
	ROW(circular, 1, IN(1, 0, 1, 4)),
	ROW(unfold, 1, IN(1, 0, 4, 2)),
	ROW(squeeze_dims, 1, IN(1, 0, 1, 3, 1)),
	ROW(stack, 2, IN(1, 0, 2, 3), IN_T(1, 0, 2, 3)),
	ROW(chunk, 1, IN(1, 0, 2, 4)),
	ROW(as_complex, 1, IN(1, 0, 3, 2)),
};

FORMULA_TESTS

static void repeat_and_ravel_copy(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(4)), *once = ok(tensor_repeat_interleave(t, 1, 0));
		tensor *ravel = ok(tensor_ravel(tensor_slice(t, 0, 0, TENSOR_NONE, 2)));

		assert_false(tensor_shares_storage(once, t));
		assert_true(tensor_is_contiguous(ravel));
		assert_values(ravel, 0, 0, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flip_and_roll_move_every_element_once),
		cmocka_unit_test(flip_of_short_rows),
		cmocka_unit_test(repeat_works_with_sixteen_dimensions),
		cmocka_unit_test(padding_modes_extend_the_input),
		cmocka_unit_test(triangles_write_every_layout),
		cmocka_unit_test(negative_strides_are_read_and_written),
		cmocka_unit_test(splits_are_views_that_cover_the_tensor),
		cmocka_unit_test(a_tensor_may_have_the_positions_of_a_split),
		cmocka_unit_test(view_dtype_reinterprets_bytes),
		cmocka_unit_test(view_dtype_joins_elements_of_the_last_dimension),
		cmocka_unit_test(view_dtype_of_memory_of_the_program_is_aligned),
		cmocka_unit_test(ranges_include_both_limits),
		cmocka_unit_test(transposed_copies_are_exact_at_the_edges),
		FORMULA_TEST_LIST,
		cmocka_unit_test(repeat_and_ravel_copy),
	};

	return cmocka_run_group_tests_name("move", tests, NULL, NULL);
}
