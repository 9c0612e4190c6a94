// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operands that elementwise loops cannot read directly: every layout gives the same bits as the
 * same values in contiguous memory. The shapes are larger than a block of iter_run_packed(), have
 * rows that are too short for a loop each, and have dimensions that cannot be coalesced.
 */
#include "check.h"

/* Copies the elements in row-major order, one by one. */
static char *elements(const tensor *t)
{
	size_t size = tensor_itemsize(tensor_dtype(t));
	char *to = malloc(tensor_numel(t) * size + 1);

	for (int64_t flat = 0; flat < tensor_numel(t); flat++) {
		int64_t rest = flat, at = 0;

		for (int d = tensor_dim(t) - 1; d >= 0; d--) {
			at += rest % tensor_size(t, d) * tensor_stride(t, d);
			rest /= tensor_size(t, d);
		}
		memcpy(to + flat * size, (const char *)tensor_data(t) + at * (int64_t)size, size);
	}
	return to;
}

static tensor *contiguous_copy(tensor *t)
{
	char *values = elements(t);
	tensor *c =
		tensor_from_data(values, tensor_shape(t), TENSOR_OPTIONS(.dtype = tensor_dtype(t)));

	free(values);
	return ok(c);
}

enum layout {
	PLAIN,
	STEP_2,
	STEP_3,
	STEP_4,
	STEP_7,
	CUT,
	TURNED,
	ROTATED,
	SAME_ROW,
	SAME_ELEMENT,
	LAYOUTS
};

/* Different values for each seed, small enough for every dtype. */
static tensor *values(tensor_ints shape, enum tensor_dtype dtype, int seed)
{
	int64_t n = 1;

	for (int64_t i = 0; i < shape.len; i++)
		n *= shape.data[i];
	return ok(tensor_to(
		tensor_view(tensor_remainder_scalar(
				    tensor_mul_scalar(tensor_arange(TENSOR_SCALAR(n), I64),
						      TENSOR_SCALAR(7 + 2 * seed)),
				    TENSOR_SCALAR(101)),
			    shape),
		TENSOR_OPTIONS(.dtype = dtype)));
}

/* Every step-th element of longer rows. */
static tensor *with_step(tensor_ints shape, enum tensor_dtype dtype, int seed, int64_t step)
{
	int64_t wide[4], last = shape.len - 1;

	memcpy(wide, shape.data, shape.len * sizeof(*wide));
	wide[last] *= step;
	return ok(tensor_slice(values((tensor_ints){ wide, shape.len }, dtype, seed), (int)last, 0,
			       TENSOR_NONE, step));
}

/* A tensor of this shape whose dimension `from` is the innermost one in memory. */
static tensor *with_innermost(tensor_ints shape, enum tensor_dtype dtype, int seed, int from)
{
	int64_t other[4], n = 0;

	for (int64_t d = 0; d < shape.len; d++)
		if (d != from)
			other[n++] = shape.data[d];
	other[n] = shape.data[from];
	return ok(tensor_movedim_int(values((tensor_ints){ other, shape.len }, dtype, seed), -1,
				     from));
}

static tensor *in_layout(enum layout layout, tensor_ints shape, enum tensor_dtype dtype, int seed)
{
	switch (layout) {
	case STEP_2:
		return with_step(shape, dtype, seed, 2);
	case STEP_3:
		return with_step(shape, dtype, seed, 3);
	case STEP_4:
		return with_step(shape, dtype, seed, 4);
	case STEP_7:
		return with_step(shape, dtype, seed, 7);
	case CUT: {
		int64_t wide[4], last = shape.len - 1;

		memcpy(wide, shape.data, shape.len * sizeof(*wide));
		wide[last] += 5;
		return ok(tensor_narrow(values((tensor_ints){ wide, shape.len }, dtype, seed),
					(int)last, 3, shape.data[last]));
	}
	case TURNED:
		return with_innermost(shape, dtype, seed, 0);
	case ROTATED:
		return with_innermost(shape, dtype, seed, (int)shape.len - 2);
	case SAME_ROW:
		return ok(tensor_expand(values((tensor_ints){ shape.data + shape.len - 1, 1 },
					       dtype, seed),
					shape));
	case SAME_ELEMENT: {
		int64_t column[4];

		memcpy(column, shape.data, shape.len * sizeof(*column));
		column[shape.len - 1] = 1;
		return ok(tensor_expand(values((tensor_ints){ column, shape.len }, dtype, seed),
					shape));
	}
	default:
		return values(shape, dtype, seed);
	}
}

static const tensor_ints shapes[] = {
	TENSOR_INTS(3, 5000),	TENSOR_INTS(70, 90),	TENSOR_INTS(1100, 3),
	TENSOR_INTS(5, 7, 120), TENSOR_INTS(33, 40, 6), TENSOR_INTS(130, 33),
};
static const enum tensor_dtype dtypes[] = { TENSOR_U8,	TENSOR_BF16, TENSOR_F16,
					    TENSOR_F32, TENSOR_I64,  TENSOR_C128 };
/* All pairs of layouts are combined with all dtypes, each with one of the shapes. */
#define SHAPE(d, k) shapes[((d) + (k) / 3) % (int)ARRAY_SIZE(shapes)]

static void copies_agree_for_all_layouts(void **state)
{
	for (int s = 0; s < (int)ARRAY_SIZE(shapes); s++)
		for (int d = 0; d < (int)ARRAY_SIZE(dtypes); d++)
			for (int k = 0; k < LAYOUTS; k++)
				tensor_scope {
					tensor *x = in_layout(k, shapes[s], dtypes[d], 0),
					       *plain = contiguous_copy(x);
					tensor *to = in_layout(k < SAME_ROW ? k : PLAIN, shapes[s],
							       dtypes[d], 1);

					assert_same(tensor_contiguous(x), plain);
					assert_same(tensor_copy_(to, plain), plain);
					assert_same(tensor_to(x, F32), tensor_to(plain, F32));
					assert_same(
						tensor_to(x, TENSOR_OPTIONS(.dtype = TENSOR_BF16)),
						tensor_to(plain,
							  TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
				}
}

static void unary_operators_agree_for_all_layouts(void **state)
{
	for (int s = 0; s < (int)ARRAY_SIZE(shapes); s++)
		for (int d = 0; d < (int)ARRAY_SIZE(dtypes); d++)
			for (int k = 0; k < LAYOUTS; k++)
				tensor_scope {
					tensor *x = in_layout(k, shapes[s], dtypes[d], 0),
					       *plain = contiguous_copy(x);

					assert_same(tensor_neg(x), tensor_neg(plain));
					assert_same(tensor_sqrt(x), tensor_sqrt(plain));
					assert_same(tensor_logical_not(x),
						    tensor_logical_not(plain));
					if (k < SAME_ROW)
						assert_same(tensor_square_(x),
							    tensor_square(plain));
				}
}

static void binary_operators_agree_for_all_layouts(void **state)
{
	for (int d = 0; d < (int)ARRAY_SIZE(dtypes); d++)
		for (int k = 0; k < LAYOUTS * LAYOUTS; k++)
			tensor_scope {
				tensor_ints shape = SHAPE(d, k);
				tensor *x = in_layout(k % LAYOUTS, shape, dtypes[d], 0);
				tensor *y = in_layout(
					k / LAYOUTS, shape,
					dtypes[(d + (k % 3 == 2)) % (int)ARRAY_SIZE(dtypes)], 1);
				tensor *plain_x = contiguous_copy(x), *plain_y = contiguous_copy(y);

				assert_same(tensor_sub(x, y), tensor_sub(plain_x, plain_y));
				assert_same(tensor_eq(x, y), tensor_eq(plain_x, plain_y));
				assert_same(tensor_mul_scalar(x, TENSOR_SCALAR(3)),
					    tensor_mul_scalar(plain_x, TENSOR_SCALAR(3)));
				if (k % LAYOUTS < SAME_ROW && tensor_dtype(x) == tensor_dtype(y))
					assert_same(tensor_add_(x, y),
						    tensor_add(plain_x, plain_y));
			}
}

static void ternary_operators_agree_for_all_layouts(void **state)
{
	for (int d = 0; d < (int)ARRAY_SIZE(dtypes); d++)
		for (int k = 0; k < LAYOUTS * LAYOUTS; k++)
			tensor_scope {
				tensor_ints shape = SHAPE(d, k);
				tensor *c = in_layout(k % LAYOUTS, shape, TENSOR_BOOL, 2);
				tensor *x = in_layout(k / LAYOUTS, shape, dtypes[d], 0);
				tensor *y = in_layout(k % 7, shape, dtypes[d], 1);
				tensor *plain = contiguous_copy(c), *plain_x = contiguous_copy(x);

				assert_same(tensor_where(c, x, y),
					    tensor_where(plain, plain_x, contiguous_copy(y)));
				assert_same(tensor_where_scalarother(c, x, TENSOR_SCALAR(1)),
					    tensor_where_scalarother(plain, plain_x,
								     TENSOR_SCALAR(1)));
			}
}

/* Values of this shape, or about as many true as false ones, the same in the dimensions of the mask. */
static tensor *same_along(unsigned mask, tensor_ints shape, enum tensor_dtype dtype, int seed)
{
	int64_t own[5];
	tensor *t;

	for (int64_t d = 0; d < shape.len; d++)
		own[d] = mask >> d & 1 ? 1 : shape.data[d];
	t = values((tensor_ints){ own, shape.len }, dtype == TENSOR_BOOL ? TENSOR_U8 : dtype, seed);
	if (dtype == TENSOR_BOOL)
		t = ok(tensor_gt_scalar(t, TENSOR_SCALAR(50)));
	return ok(tensor_expand(t, shape));
}

/* Operators of x and of y, z and c, which repeat elements, give what their copies give. */
static void check_repeated(tensor *x, tensor *y, tensor *z, tensor *c)
{
	tensor *plain = contiguous_copy(y), *plain_z = contiguous_copy(z);
	tensor *plain_c = contiguous_copy(c);

	assert_same(tensor_contiguous(y), plain);
	assert_same(tensor_sub(x, y), tensor_sub(x, plain));
	assert_same(tensor_mul(y, x), tensor_mul(plain, x));
	assert_same(tensor_eq(y, z), tensor_eq(plain, plain_z));
	assert_same(tensor_addcmul(x, z, z), tensor_addcmul(x, plain_z, plain_z));
	assert_same(tensor_addcmul(z, x, z), tensor_addcmul(plain_z, x, plain_z));
	assert_same(tensor_where(c, x, y), tensor_where(plain_c, x, plain));
	assert_same(tensor_mul_(tensor_clone(x), z), tensor_mul(x, plain_z));
}

static void short_rows_agree_for_all_repeated_dimensions(void **state)
{
	static const int64_t widths[] = { 1, 2, 3, 5, 8, 13, 16, 31, 49, 70 };
	const int n = (int)ARRAY_SIZE(dtypes);

	for (int w = 0; w < (int)ARRAY_SIZE(widths); w++)
		for (unsigned mask = 0; mask < 32; mask++)
			tensor_scope {
				const int64_t sizes[] = { 7, 3, 4, 11, widths[w] };
				tensor_ints shape = { sizes, 5 };
				int d = ((int)mask + w) % n, other = (d + (mask % 5 == 4)) % n;

				check_repeated(values(shape, dtypes[d], 0),
					       same_along(mask, shape, dtypes[other], 1),
					       same_along((mask * 7 + w) % 32, shape, dtypes[d], 2),
					       same_along((mask * 3 + w) % 32, shape, TENSOR_BOOL,
							  3));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_agree_for_all_layouts),
		cmocka_unit_test(unary_operators_agree_for_all_layouts),
		cmocka_unit_test(binary_operators_agree_for_all_layouts),
		cmocka_unit_test(ternary_operators_agree_for_all_layouts),
		cmocka_unit_test(short_rows_agree_for_all_repeated_dimensions),
	};

	return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
