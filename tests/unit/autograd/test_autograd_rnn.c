// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Derivatives of an LSTM's layer, through each of its results. */
#include "formulas.h"

enum { OUTPUT = 1, CELLS = 2 };

static tensor *layer(tensor *const *in, bool reverse, int results)
{
	tensor *output, *cells, *activated;

	if (tensor__lstm_layer((tensor_list){ in, 4 }, reverse, true, &output, &cells, &activated) <
	    0)
		return NULL;
	if (results == OUTPUT)
		return output;
	return results == CELLS ? cells : tensor_cat(TENSOR_LIST(output, cells), 2);
}

CASE(fn_output, layer(in, false, OUTPUT))
CASE(fn_cells, layer(in, false, CELLS))
CASE(fn_both, layer(in, false, OUTPUT | CELLS))
CASE(fn_reverse, layer(in, true, OUTPUT | CELLS))

#define INPUTS(steps, rows, h) \
	IN(1, 0, steps, rows, 4 * (h)), IN(1, 0, rows, h), IN(1, 0, rows, h), IN(1, 0, 4 * (h), h)

static const struct formula formulas[] = {
	ROW(output, 4, INPUTS(3, 2, 2)),
	ROW(cells, 4, INPUTS(3, 2, 2)),
	ROW(both, 4, INPUTS(3, 1, 2)),
	ROW(both, 4, INPUTS(1, 3, 1)),
	ROW(reverse, 4, INPUTS(3, 2, 2)),
	ROW(reverse, 4, INPUTS(1, 2, 2)),
	ROW(reverse, 4, IN_T(1, 0, 2, 2, 8), IN_T(1, 0, 2, 2), IN_T(1, 0, 2, 2), IN_T(1, 0, 8, 2)),
};

FORMULA_TESTS

static tensor *numbers(tensor_ints sizes)
{
	tensor *t = ok(tensor_full(sizes, S(0.5), OF(TENSOR_F64)));

	assert_done(tensor_set_requires_grad(t, true));
	return t;
}

static void shapes_and_dtypes_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	tensor_scope {
		tensor *gates = numbers(TENSOR_SHAPE(2, 3, 8)), *hx = numbers(TENSOR_SHAPE(3, 2)),
		       *w = numbers(TENSOR_SHAPE(8, 2)), *out[3];
		tensor *wide = ok(tensor_to(w, OF(TENSOR_F32)));
		const struct {
			tensor_list in;
			const char *text;
		} wrong[] = {
			{ TENSOR_LIST(gates, hx, hx), "4 inputs" },
			{ TENSOR_LIST(gates, hx, hx, w, w), "4 inputs" },
			{ TENSOR_LIST(hx, hx, hx, w), "gates must" },
			{ TENSOR_LIST(numbers(TENSOR_SHAPE(0, 3, 8)), hx, hx, w), "gates must" },
			{ TENSOR_LIST(numbers(TENSOR_SHAPE(2, 3, 7)), hx, hx, w), "gates must" },
			{ TENSOR_LIST(gates, numbers(TENSOR_SHAPE(2, 2)), hx, w), "hx of shape" },
			{ TENSOR_LIST(gates, hx, numbers(TENSOR_SHAPE(3, 3)), w), "cx of shape" },
			{ TENSOR_LIST(gates, hx, hx, numbers(TENSOR_SHAPE(2, 8))),
			  "w_hh of shape" },
			{ TENSOR_LIST(gates, hx, hx, wide), "w_hh of dtype" },
		};

		for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
			assert_fails(tensor__lstm_layer(wrong[i].in, false, true, &out[0], &out[1],
							&out[2]),
				     EINVAL, wrong[i].text);
	}
}

static void sizes_of_zero_have_gradients(void **state)
{
	const int64_t rows[] = { 0, 3 }, size[] = { 2, 0 };

	(void)state;
	for (int i = 0; i < 2; i++)
		tensor_scope {
			tensor *in[] = { numbers(TENSOR_SHAPE(2, rows[i], 4 * size[i])),
					 numbers(TENSOR_SHAPE(rows[i], size[i])),
					 numbers(TENSOR_SHAPE(rows[i], size[i])),
					 numbers(TENSOR_SHAPE(4 * size[i], size[i])) };

			assert_done(tensor_backward(ok(tensor_sum(ok(layer(in, false, OUTPUT))))));
			for (int k = 0; k < 4; k++)
				assert_int_equal(tensor_numel(tensor_grad(in[k])),
						 tensor_numel(in[k]));
		}
}

/* The backward adds products to each other, of which autocast converts some. */
static void autocast_does_not_convert_the_backward(void **state)
{
	(void)state;
	tensor_scope {
		tensor *in[4], *grads[4], *y;
		const tensor_ints sizes[] = { TENSOR_SHAPE(3, 2, 8), TENSOR_SHAPE(2, 2),
					      TENSOR_SHAPE(2, 2), TENSOR_SHAPE(8, 2) };

		for (int i = 0; i < 4; i++) {
			in[i] = ok(tensor_full(sizes[i], S(0.3 * i + 0.1), OF(TENSOR_F32)));
			assert_done(tensor_set_requires_grad(in[i], true));
		}
		assert_done(tensor_backward(ok(tensor_sum(ok(layer(in, false, OUTPUT))))));
		for (int i = 0; i < 4; i++) {
			grads[i] = ok(tensor_clone(tensor_grad(in[i])));
			tensor_set_grad(in[i], NULL);
		}
		y = ok(tensor_sum(ok(layer(in, false, OUTPUT))));
		tensor_autocast(TENSOR_BF16) assert_done(tensor_backward(y));
		for (int i = 0; i < 4; i++)
			assert_values(ok(tensor_sum(tensor_abs(
					      tensor_sub(grads[i], tensor_grad(in[i]))))),
				      0, 0);
	}
}

static double greatest(tensor *t)
{
	double v;

	assert_done(tensor_item(ok(tensor_max(tensor_abs(t))), &v));
	return v;
}

/* The greatest difference, relative to the greatest number. */
static double difference(tensor *a, tensor *b)
{
	tensor *x = ok(tensor_to(ok(tensor_detach(a)), OF(TENSOR_F64)));
	tensor *y = ok(tensor_to(ok(tensor_detach(b)), OF(TENSOR_F64)));

	return greatest(ok(tensor_sub(x, y))) / greatest(y);
}

enum { RESULTS = 5 };

/* Results of a layer of random numbers in a dtype: the gradients and the output, which keeps its dtype. */
static void run_layer(tensor *const *wide, enum tensor_dtype dtype, bool reverse, tensor **results)
{
	tensor *in[4], *y;

	for (int i = 0; i < 4; i++) {
		in[i] = ok(tensor_clone(ok(tensor_to(wide[i], OF(dtype)))));
		assert_done(tensor_set_requires_grad(in[i], true));
	}
	y = ok(layer(in, reverse, OUTPUT | CELLS));
	assert_int_equal(tensor_dtype(y), dtype);
	assert_done(tensor_backward(
		ok(tensor_sum(ok(tensor_mul(y, ok(tensor_sigmoid(ok(tensor_detach(y))))))))));
	for (int i = 0; i < 4; i++)
		results[i] = ok(tensor_clone(tensor_grad(in[i])));
	results[4] = y;
}

static tensor *numbers_near_0(tensor_ints sizes, double deviation)
{
	return ok(tensor_mul(ok(tensor_randn(sizes, OF(TENSOR_F64))),
			     ok(tensor_full(TENSOR_SHAPE(1), S(deviation), OF(TENSOR_F64)))));
}

/* The kernels of f32, f16 and bf16 beside the operators, which compute f64. */
static void the_kernels_compute_what_the_operators_do(void **state)
{
	static const struct {
		enum tensor_dtype dtype;
		double error;
	} dtypes[] = { { TENSOR_F32, 1e-5 }, { TENSOR_F16, 3e-3 }, { TENSOR_BF16, 2e-2 } };
	static const int64_t shapes[][3] = { { 5, 16, 48 }, { 3, 1, 17 }, { 2, 9, 16 },
					     { 1, 3, 5 },   { 4, 33, 7 }, { 9, 70, 20 },
					     { 2, 9, 1160 } };

	(void)state;
	tensor_manual_seed(5);
	for (size_t k = 0; k < ARRAY_SIZE(shapes) * ARRAY_SIZE(dtypes) * 2; k++)
		tensor_scope {
			const int64_t *s = shapes[k / 2 % ARRAY_SIZE(shapes)];
			size_t d = k / 2 / ARRAY_SIZE(shapes);
			tensor *in[] = { numbers_near_0(TENSOR_SHAPE(s[0], s[1], 4 * s[2]), 1),
					 numbers_near_0(TENSOR_SHAPE(s[1], s[2]), 1),
					 ok(tensor_t(numbers_near_0(TENSOR_SHAPE(s[2], s[1]), 1))),
					 numbers_near_0(TENSOR_SHAPE(4 * s[2], s[2]), 0.2) };
			tensor *exact[RESULTS], *found[RESULTS], *same[RESULTS];

			/* All sides begin with the same numbers. */
			for (int i = 0; i < 4; i++)
				in[i] = ok(tensor_to(ok(tensor_to(in[i], OF(dtypes[d].dtype))),
						     OF(TENSOR_F64)));
			run_layer(in, TENSOR_F64, k % 2, exact);
			run_layer(in, dtypes[d].dtype, k % 2, found);
			tensor_set_num_threads(2);
			run_layer(in, dtypes[d].dtype, k % 2, same);
			tensor_set_num_threads(1);
			for (int i = 0; i < RESULTS; i++) {
				assert_true(difference(found[i], exact[i]) < dtypes[d].error);
				assert_true(difference(found[i], same[i]) == 0);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(shapes_and_dtypes_that_do_not_fit_are_refused),
		cmocka_unit_test(sizes_of_zero_have_gradients),
		cmocka_unit_test(autocast_does_not_convert_the_backward),
		cmocka_unit_test(the_kernels_compute_what_the_operators_do),
	};

	return cmocka_run_group_tests_name("autograd_rnn", tests, NULL, NULL);
}
