// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* All dtypes: conversion between every pair, narrow floats bit by bit, operands of mixed dtypes. */
#include "check.h"

#include <complex.h>
#include <math.h>

/* Element i of a contiguous tensor, as a complex number. */
static double complex element(const tensor *t, int64_t i)
{
	tensor_scalar s;

	tensor *flat = tensor_view((tensor *)t, TENSOR_SHAPE(-1));

	assert_int_equal(tensor_item_scalar(tensor_select(flat, 0, i), &s), 0);
	if (s.kind <= TENSOR_SCALAR_INT)
		return s.i;
	return CMPLX(s.d, s.kind == TENSOR_SCALAR_COMPLEX ? s.imag : 0);
}

static tensor *to_dtype(tensor *t, enum tensor_dtype dtype)
{
	return tensor_to(t, TENSOR_OPTIONS(.dtype = dtype));
}

/* Small integers are unchanged by conversions, except to bool. */
static void every_pair_converts(void **state)
{
	tensor_scope {
		tensor *seven =
			tensor_arange(tensor_scalar_int(7), TENSOR_OPTIONS(.dtype = TENSOR_I64));

		for (int a = TENSOR_BOOL; a < TENSOR_DTYPE_COUNT; a++) {
			for (int b = TENSOR_BOOL; b < TENSOR_DTYPE_COUNT; b++) {
				tensor *t = to_dtype(to_dtype(seven, a), b);

				assert_non_null(t);
				for (int i = 0; i < 7; i++) {
					bool truth = a == TENSOR_BOOL || b == TENSOR_BOOL;

					assert_true(element(t, i) == (truth ? i != 0 : i));
				}
			}
		}
	}
}

/* All bit patterns of f16 and bf16 convert to f32 and back unchanged; NaN stays NaN. */
static void f16_and_bf16_are_exact_in_f32(void **state)
{
	static const enum tensor_dtype halves[] = { TENSOR_F16, TENSOR_BF16 };

	for (int k = 0; k < 2; k++) {
		tensor_scope {
			tensor *h = tensor_empty(TENSOR_SHAPE(65536),
						 TENSOR_OPTIONS(.dtype = halves[k]));
			uint16_t *bits = tensor_mutable_data(h), *back;
			float *f;

			for (int i = 0; i < 65536; i++)
				bits[i] = (uint16_t)i;
			f = tensor_mutable_data(to_dtype(h, TENSOR_F32));
			back = tensor_mutable_data(to_dtype(to_dtype(h, TENSOR_F32), halves[k]));
			for (int i = 0; i < 65536; i++) {
				double want = k ? 0 :
					      i & 0x7c00 ?
						  ldexp((i & 0x3ff) | 0x400, (i >> 10 & 31) - 25) :
						  ldexp(i & 0x3ff, -24);

				if (isnan(f[i])) {
					assert_true(back[i] == (i | 0x0200) ||
						    (back[i] & 0x7fff) > 0x7c00);
					continue;
				}
				assert_int_equal(back[i], i);
				if (!k && (i & 0x7c00) != 0x7c00)
					assert_true(fabsf(f[i]) == want);
			}
		}
	}
}

/*
 * Rounds to the nearest f16 or bf16, ties to even, in the vector loop, the strided loop and for one
 * element.
 */
static void f16_and_bf16_round_to_nearest_even(void **state)
{
	static const struct {
		float in;
		uint16_t f16, bf16;
	} rows[] = {
		{ 1.0f, 0x3c00, 0x3f80 },	    { -0.0f, 0x8000, 0x8000 },
		{ 65504.0f, 0x7bff, 0x4780 },	    { 65519.0f, 0x7bff, 0x4780 },
		{ 65520.0f, 0x7c00, 0x4780 },	    { INFINITY, 0x7c00, 0x7f80 },
		{ 1.00048828125f, 0x3c00, 0x3f80 }, { 1.0014648f, 0x3c02, 0x3f80 },
		{ 0x1p-24f, 0x0001, 0x3380 },	    { 0x1p-25f, 0x0000, 0x3300 },
		{ 0x1.8p-25f, 0x0001, 0x3340 },	    { 1.00390625f, 0x3c04, 0x3f80 },
		{ 1.01171875f, 0x3c0c, 0x3f82 },    { -3e38f, 0xfc00, 0xff62 },
		{ 3.4e38f, 0x7c00, 0x7f80 },
	};

	tensor_scope {
		int n = (int)(ARRAY_SIZE(rows));
		tensor *f = tensor_empty(TENSOR_SHAPE(64, n), TENSOR_OPTIONS(0));
		tensor *f16, *bf16;

		for (int r = 0; r < 64; r++)
			for (int i = 0; i < n; i++)
				((float *)tensor_mutable_data(f))[r * n + i] = rows[i].in;
		for (int way = 0; way < 2; way++) {
			f16 = tensor_contiguous(to_dtype(way ? tensor_t(f) : f, TENSOR_F16));
			bf16 = tensor_contiguous(to_dtype(way ? tensor_t(f) : f, TENSOR_BF16));
			for (int r = 0; r < 64; r++) {
				for (int i = 0; i < n; i++) {
					int at = way ? i * 64 + r : r * n + i;

					assert_int_equal(((const uint16_t *)tensor_data(f16))[at],
							 rows[i].f16);
					assert_int_equal(((const uint16_t *)tensor_data(bf16))[at],
							 rows[i].bf16);
				}
			}
		}
		for (int i = 0; i < n; i++) {
			tensor *one = tensor_full(TENSOR_SHAPE(1), tensor_scalar_float(rows[i].in),
						  TENSOR_OPTIONS(.dtype = TENSOR_F16));

			assert_int_equal(*(const uint16_t *)tensor_data(one), rows[i].f16);
		}
	}
}

/*
 * Decodes sign, exponent and fraction. In e4m3fn a code of ones except the sign is NaN; in e5m2 the
 * highest exponent is infinity or NaN.
 */
static double decode_f8(int code, int exponent_bits)
{
	int fraction_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
	int e = code >> fraction_bits & ((1 << exponent_bits) - 1),
	    f = code & ((1 << fraction_bits) - 1);
	double v = e ? ldexp(f + (1 << fraction_bits), e - bias - fraction_bits) :
		       ldexp(f, 1 - bias - fraction_bits);

	if (exponent_bits == 5 && e == 31)
		v = f ? NAN : INFINITY;
	else if ((code & 0x7f) == 0x7f)
		v = NAN;
	return code & 0x80 ? -v : v;
}

static const struct {
	enum tensor_dtype dtype;
	int exponent_bits;
	double greatest;
} f8[] = { { TENSOR_F8_E4M3FN, 4, 448 }, { TENSOR_F8_E5M2, 5, 57344 } };

static void every_f8_is_exact_in_wider_floats(void **state)
{
	static const enum tensor_dtype wide[] = { TENSOR_F32, TENSOR_F64, TENSOR_F16, TENSOR_BF16,
						  TENSOR_C64 };

	for (int k = 0; k < 2; k++) {
		tensor_scope {
			tensor *t = ok(tensor_empty(TENSOR_SHAPE(256),
						    TENSOR_OPTIONS(.dtype = f8[k].dtype)));

			for (int i = 0; i < 256; i++)
				((uint8_t *)tensor_mutable_data(t))[i] = (uint8_t)i;
			for (size_t w = 0; w < ARRAY_SIZE(wide); w++) {
				tensor *there = ok(to_dtype(t, wide[w])),
				       *back = ok(to_dtype(there, f8[k].dtype));

				for (int i = 0; i < 256; i++) {
					double want = decode_f8(i, f8[k].exponent_bits);
					double got = creal(element(there, i));

					if (isnan(want)) {
						assert_true(isnan(got) &&
							    isnan(creal(element(back, i))));
						continue;
					}
					assert_true(got == want && signbit(got) == signbit(want));
					assert_int_equal(((const uint8_t *)tensor_data(back))[i],
							 i);
				}
			}
		}
	}
}

/*
 * A value between two neighbours rounds to the nearer one, ties to even. e4m3fn has no infinity: it
 * saturates.
 */
static void f8_rounds_to_nearest_even(void **state)
{
	for (int k = 0; k < 2; k++) {
		tensor_scope {
			tensor_options o = TENSOR_OPTIONS(.dtype = f8[k].dtype);
			double beyond[] = { f8[k].greatest * 4, INFINITY };

			for (int i = 0; i < 0x7f; i++) {
				double a = decode_f8(i, f8[k].exponent_bits);
				double b = decode_f8(i + 1, f8[k].exponent_bits),
				       half = (a + b) / 2;
				float v[] = { (float)a, nextafterf((float)half, 0), (float)half,
					      nextafterf((float)half, INFINITY) };
				const int want[] = { i, i, i + (i & 1), i + 1 };
				tensor *t;

				if (!isfinite(b))
					break;
				t = ok(to_dtype(ok(tensor_from_data(v, TENSOR_SHAPE(4), F32)),
						f8[k].dtype));
				for (int j = 0; j < 4; j++)
					assert_int_equal(((const uint8_t *)tensor_data(t))[j],
							 want[j]);
			}
			for (int j = 0; j < 2; j++) {
				tensor *t = ok(tensor_full(TENSOR_SHAPE(1),
							   tensor_scalar_float(beyond[j]), o));

				assert_true(creal(element(t, 0)) == (k ? INFINITY : 448));
			}
		}
	}
}

/*
 * 8-bit floats are storage types: operators that move elements support them; operators that compute
 * use f32 and round once.
 */
static void f8_moves_and_computes_in_f32(void **state)
{
	for (int k = 0; k < 2; k++) {
		tensor_scope {
			tensor *x =
				ok(tensor_sub_scalar(ok(tensor_arange(tensor_scalar_int(24), F32)),
						     tensor_scalar_int(9)));
			tensor *t = ok(to_dtype(x, f8[k].dtype)), *list[] = { t, t }, *unused,
			       *y = ok(to_dtype(t, TENSOR_F32));
			tensor *seven = ok(tensor_mul_scalar(t, tensor_scalar_float(0.7)));
			tensor *want = ok(to_dtype(
				ok(tensor_mul_scalar(y, tensor_scalar_float(0.7))), f8[k].dtype));

			for (int i = 0; i < 24; i++)
				assert_true(element(seven, i) == element(want, i));
			assert_int_equal(tensor_dtype(ok(tensor_exp(t))), f8[k].dtype);
			assert_int_equal(tensor_dtype(ok(tensor_lt(t, ok(tensor_neg(t))))),
					 TENSOR_BOOL);
			assert_int_equal(tensor_numel(ok(tensor_cat((tensor_list){ list, 2 }, 0))),
					 48);
			assert_int_equal(tensor_numel(ok(tensor_nonzero(t))), 23);
			assert_true(element(ok(tensor_sum(t)), 0) ==
				    element(ok(to_dtype(ok(tensor_sum(y)), f8[k].dtype)), 0));
			assert_true(
				element(ok(tensor_where(
						ok(tensor_gt_scalar(t, tensor_scalar_int(0))), t,
						ok(tensor_zeros_like(t, (tensor_options){ 0 })))),
					0) == 0);
			assert_null(tensor_add(t, x));
			assert_int_equal(tensor_sort(t, 0, false, &unused, &unused), -EOPNOTSUPP);
		}
	}
}

/*
 * Operands of different dtypes and strides: each is converted, and the result has the promoted
 * dtype.
 */
static void mixed_operands_promote(void **state)
{
	for (int a = TENSOR_BOOL; a < TENSOR_DTYPE_COUNT; a++) {
		for (int b = TENSOR_BOOL; b < TENSOR_DTYPE_COUNT; b++) {
			tensor_scope {
				tensor *n = tensor_arange(tensor_scalar_int(600),
							  TENSOR_OPTIONS(.dtype = TENSOR_I64));
				tensor *x = to_dtype(tensor_view(n, TENSOR_SHAPE(30, 20)), a);
				tensor *y =
					tensor_t(to_dtype(tensor_view(n, TENSOR_SHAPE(20, 30)), b));
				tensor *sum = tensor_add(x, y), *want;
				enum tensor_dtype d = tensor_promote_types(a, b);

				if (!d) {
					assert_null(sum);
					continue;
				}

				/*
				 * An f16 or bf16 operand is rounded to its dtype before the
				 * addition.
				 */
				want = to_dtype(tensor_add(to_dtype(to_dtype(x, d), TENSOR_C128),
							   to_dtype(to_dtype(y, d), TENSOR_C128)),
						d);
				if (a == TENSOR_BOOL && b == TENSOR_BOOL)
					want = tensor_ne_scalar(to_dtype(want, TENSOR_F64),
								tensor_scalar_int(0));
				assert_int_equal(tensor_dtype(sum), d);
				sum = tensor_contiguous(sum);
				want = tensor_contiguous(want);
				if (tensor_itemsize(d) > 1)
					for (int i = 0; i < 600; i++)
						assert_true(element(sum, i) == element(want, i));
			}
		}
	}
}

/* f16 and bf16 are computed in f32 and rounded once; a comparison gives bool. */
static void f16_and_bf16_compute_in_f32(void **state)
{
	tensor_scope {
		tensor *x = to_dtype(tensor_arange(tensor_scalar_int(1000),
						   TENSOR_OPTIONS(.dtype = TENSOR_F32)),
				     TENSOR_BF16);
		tensor *y = tensor_exp(tensor_mul_scalar(x, tensor_scalar_float(-0.01)));
		tensor *scaled = to_dtype(tensor_mul_scalar(to_dtype(x, TENSOR_F32),
							    tensor_scalar_float(-0.01)),
					  TENSOR_BF16);
		uint16_t *got = tensor_mutable_data(y),
			 *want = tensor_mutable_data(
				 to_dtype(tensor_exp(to_dtype(scaled, TENSOR_F32)), TENSOR_BF16));
		tensor *less = tensor_lt(x, tensor_t(x));

		assert_int_equal(tensor_dtype(y), TENSOR_BF16);
		for (int i = 0; i < 1000; i++)
			assert_true(abs(got[i] - want[i]) <= 1);
		assert_int_equal(tensor_dtype(less), TENSOR_BOOL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_converts),
		cmocka_unit_test(f16_and_bf16_are_exact_in_f32),
		cmocka_unit_test(f16_and_bf16_round_to_nearest_even),
		cmocka_unit_test(every_f8_is_exact_in_wider_floats),
		cmocka_unit_test(f8_rounds_to_nearest_even),
		cmocka_unit_test(f8_moves_and_computes_in_f32),
		cmocka_unit_test(mixed_operands_promote),
		cmocka_unit_test(f16_and_bf16_compute_in_f32),
	};

	return cmocka_run_group_tests_name("dtypes", tests, NULL, NULL);
}
