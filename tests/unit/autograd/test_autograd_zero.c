// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operators whose gradient is zero: comparisons, logical operators, rounding, values that are written
 * over others, random numbers. Their results are f64 in the in-place forms, so that central
 * differences can confirm the zero.
 */
#include "formulas.h"

static tensor *seeded(tensor *t)
{
	tensor_manual_seed(99);
	return t;
}

/* The product with a has a gradient in any case; SQUARE has a history and may be overwritten. */
#define SQUARE	       tensor_mul(a, a)
#define ZERO(id, call) CASE(fn_##id, tensor_mul(a, call))

ZERO(eq, tensor_eq_(SQUARE, b))
ZERO(eq_number, tensor_eq_scalar_(SQUARE, S(0.5)))
ZERO(ne, tensor_ne_(SQUARE, b))
ZERO(ne_number, tensor_ne_scalar_(SQUARE, S(0.5)))
ZERO(lt, tensor_lt_(SQUARE, b))
ZERO(lt_number, tensor_lt_scalar_(SQUARE, S(0.5)))
ZERO(le, tensor_le_(SQUARE, b))
ZERO(le_number, tensor_le_scalar_(SQUARE, S(0.5)))
ZERO(gt, tensor_gt_(SQUARE, b))
ZERO(gt_number, tensor_gt_scalar_(SQUARE, S(0.5)))
ZERO(ge, tensor_ge_(SQUARE, b))
ZERO(ge_number, tensor_ge_scalar_(SQUARE, S(0.5)))
ZERO(and, tensor_logical_and_(SQUARE, b))
ZERO(or, tensor_logical_or_(SQUARE, b))
ZERO(xor, tensor_logical_xor_(SQUARE, b))
ZERO(not, tensor_logical_not_(SQUARE))
ZERO(ceil, tensor_ceil(SQUARE))
ZERO(trunc, tensor_trunc(SQUARE))
ZERO(floor_divide_number, tensor_floor_divide_scalar(SQUARE, S(0.3)))
ZERO(fill, tensor_fill_(SQUARE, S(3)))
ZERO(zero, tensor_zero_(SQUARE))
ZERO(fill_tensor, tensor_fill_tensor_(SQUARE, b))
ZERO(fill_tensor_copy, tensor_fill_tensor(SQUARE, b))
ZERO(uniform, tensor_uniform_(seeded(SQUARE), 0, 1))
ZERO(normal, tensor_normal_(seeded(SQUARE), 0, 1))
ZERO(exponential, tensor_exponential_(seeded(SQUARE), 1.5))
ZERO(random, tensor_random_(seeded(SQUARE)))
ZERO(random_to, tensor_random_to_(seeded(SQUARE), 9))
ZERO(random_from, tensor_random_from_(seeded(SQUARE), -3, 9))
ZERO(bernoulli, tensor_bernoulli(seeded(SQUARE)))
ZERO(bernoulli_float, tensor_bernoulli_float_(seeded(SQUARE), 0.5))
ZERO(bernoulli_tensor, tensor_bernoulli_tensor_(seeded(SQUARE), b))
/* The result follows self; `other` only gives the direction. */
ZERO(nextafter, tensor_nextafter(SQUARE, b))

#define ANY  IN(1, 0.05, 2, 3)
#define ROW3 IN_T(0.3, 0.5, 3)
#define UNIT IN(0.3, 0.5, 2, 3)

static const struct formula formulas[] = {
	ROW(eq, 2, ANY, ROW3),
	ROW(eq_number, 1, ANY),
	ROW(ne, 2, ANY, ROW3),
	ROW(ne_number, 1, IN_T(1, 0.05, 2, 3)),
	ROW(lt, 2, ANY, ROW3),
	ROW(lt_number, 1, ANY),
	ROW(le, 2, ANY, ROW3),
	ROW(le_number, 1, ANY),
	ROW(gt, 2, ANY, ROW3),
	ROW(gt_number, 1, ANY),
	ROW(ge, 2, ANY, ROW3),
	ROW(ge_number, 1, ANY),
	ROW(and, 2, ANY, ROW3),
	ROW(or, 2, ANY, ROW3),
	ROW(xor, 2, ANY, ROW3),
	ROW(not, 1, ANY),
	ROW(ceil, 1, ANY),
	ROW(trunc, 1, IN_T(2, 0.05, 2, 3)),
	ROW(floor_divide_number, 1, ANY),
	ROW(fill, 1, ANY),
	ROW(zero, 1, ANY),
	ROW(fill_tensor, 2, ANY, { .ndim = 0, .scale = 1 }),
	ROW(fill_tensor_copy, 2, IN_T(1, 0.05, 2, 3), { .ndim = 0, .scale = 1 }),
	ROW(uniform, 1, ANY),
	ROW(normal, 1, ANY),
	ROW(exponential, 1, ANY),
	ROW(random, 1, IN(1e-6, 1e-6, 2)),
	ROW(random_to, 1, ANY),
	ROW(random_from, 1, ANY),
	ROW(bernoulli, 1, UNIT),
	ROW(bernoulli_float, 1, ANY),
	ROW(bernoulli_tensor, 2, ANY, ROW3),
	ROW(nextafter, 2, ANY, ROW3),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("autograd_zero", tests, NULL, NULL);
}
