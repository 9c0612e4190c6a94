// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Interpolation, im2col and grid sampling: numbers computed by hand, errors, derivatives. */
#include "formulas.h"

#define NO   TENSOR_NO_FLOAT
#define ONE  TENSOR_INTS(1)
#define TWO  TENSOR_INTS(2)
#define ZERO TENSOR_INTS(0)

static tensor *line(int64_t n)
{
	return iota(0, TENSOR_INTS(1, 1, n));
}

static tensor *square(int64_t n)
{
	return iota(0, TENSOR_INTS(1, 1, n, n));
}

static void nearest_interpolation_selects_elements(void **state)
{
	tensor_scope {
		assert_values(tensor_upsample_nearest1d(line(3), TENSOR_INTS(7), NO), 0, 0, 0, 0, 1,
			      1, 2, 2);
		assert_values(tensor_upsample_nearest_exact1d(line(3), TENSOR_INTS(7), NO), 0, 0, 0,
			      1, 1, 1, 2, 2);
		assert_values(tensor_upsample_nearest2d(square(2), TENSOR_INTS(3, 2), NO, NO), 0, 0,
			      1, 0, 1, 2, 3);
		assert_values(
			tensor_upsample_nearest2d_vec(square(2), TENSOR_NO_INTS,
						      (tensor_floats){ (double[]){ 0.5, 2 }, 2 }),
			0, 0, 0, 1, 1);
		assert_values(tensor_upsample_nearest1d_backward(iota(1, TENSOR_INTS(1, 1, 7)),
								 TENSOR_INTS(7),
								 TENSOR_INTS(1, 1, 3), NO),
			      0, 6, 9, 13);
		assert_values(
			tensor_upsample_nearest3d(ok(tensor_to(iota(0, TENSOR_INTS(1, 1, 2, 1, 1)),
							       TENSOR_OPTIONS(.dtype = TENSOR_U8))),
						  TENSOR_INTS(3, 1, 2), NO, NO, NO),
			0, 0, 0, 0, 0, 1, 1);
	}
}

static void linear_and_cubic_interpolation_give_known_values(void **state)
{
	tensor_scope {
		assert_values(tensor_upsample_linear1d(line(3), TENSOR_INTS(5), true, NO), 0, 0,
			      0.5, 1, 1.5, 2);
		assert_values(tensor_upsample_linear1d(line(2), TENSOR_INTS(4), false, NO), 0, 0,
			      0.25, 0.75, 1);
		assert_values(tensor_upsample_bilinear2d(square(2), TENSOR_INTS(3), true, NO, NO),
			      0, 0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3);
		assert_values(tensor_upsample_trilinear3d(iota(0, TENSOR_INTS(1, 1, 2, 1, 2)),
							  TENSOR_INTS(3, 1, 3), true, NO, NO, NO),
			      0, 0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3);
		/* With aligned corners the input's elements are elements of the output. */
		assert_values(tensor_upsample_bicubic2d(square(3), TENSOR_INTS(5, 3), true, NO, NO),
			      1e-6, 0, 1, 2, 1.21875, 2.21875, 3.21875, 3, 4, 5, 4.78125, 5.78125,
			      6.78125, 6, 7, 8);
	}
}

static void col2im_reverses_im2col(void **state)
{
	tensor_scope {
		tensor *x = square(3), *cols = ok(tensor_im2col(x, TWO, ONE, ZERO, ONE));

		assert_shape(cols, 1, 4, 4);
		assert_values(cols, 0, 0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8);
		assert_values(tensor_col2im(cols, TENSOR_INTS(3, 3), TWO, ONE, ZERO, ONE), 0, 0, 2,
			      2, 6, 16, 10, 6, 14, 8);
		assert_values(tensor_im2col(ok(tensor_select(x, 0, 0)), TENSOR_INTS(1, 2),
					    TENSOR_INTS(1, 2), TENSOR_INTS(0, 1), TWO),
			      0, 0, 1, 0, 7, 1, 0, 7, 0);
		assert_fails(tensor_im2col(x, TENSOR_INTS(4), ONE, ZERO, ONE), EINVAL, "too small");
		assert_fails(tensor_col2im(cols, TENSOR_INTS(4, 4), TWO, ONE, ZERO, ONE), EINVAL,
			     "self must be [channels * 4, 9]");
	}
}

static void grid_sample_gives_known_values(void **state)
{
	const double at[] = { -1, -1, 0, 0, 1, 1, 3, 0 };

	tensor_scope {
		tensor *x = square(3), *grid;

		grid = ok(tensor_to(ok(tensor_from_data(at, TENSOR_INTS(1, 1, 4, 2), F64)), F32));
		assert_values(tensor_grid_sampler_2d(x, grid, 0, 0, true), 1e-6, 0, 4, 8, 0);
		assert_values(tensor_grid_sampler_2d(x, grid, 0, 0, false), 1e-6, 0, 4, 2, 0);
		assert_values(tensor_grid_sampler_2d(x, grid, 0, 1, false), 1e-6, 0, 4, 8, 5);
		assert_values(tensor_grid_sampler_2d(x, grid, 1, 2, true), 1e-6, 0, 4, 8, 3);
		assert_values(tensor_grid_sampler_2d(x, grid, 2, 0, true), 1e-6, 0, 4, 8, 0);
		assert_fails(tensor_grid_sampler_2d(x, x, 0, 0, true), EINVAL,
			     "grid must be [1, y, x, 2]");
		assert_fails(tensor_grid_sampler_2d(x, grid, 3, 0, true), EINVAL,
			     "interpolation_mode must be 0 to 2");
	}
}

static void errors_name_the_argument(void **state)
{
	tensor_scope {
		assert_fails(tensor_upsample_nearest2d(line(3), TWO, NO, NO), EINVAL,
			     "self must have 4 dimensions");
		assert_fails(tensor_upsample_nearest1d(line(3), ZERO, NO), EINVAL,
			     "output_size must be at least 1");
		assert_fails(tensor_upsample_linear1d_vec(line(3), TWO, false,
							  (tensor_floats){ (double[]){ 2 }, 1 }),
			     EINVAL, "exactly one of output_size and scale_factors");
		assert_fails(tensor_upsample_nearest1d_backward(line(3), TWO, TENSOR_INTS(1, 1, 3),
								NO),
			     EINVAL, "grad_output must have shape [1, 1, 2]");
	}
}

static tensor *volume(tensor *a)
{
	return tensor_view(a, TENSOR_INTS(1, 1, 2, 3, 2));
}

CASE(fn_nearest, tensor_exp(tensor_upsample_nearest2d(a, TENSOR_INTS(3, 5), NO, NO)))
CASE(fn_nearest_exact, tensor_exp(tensor_upsample_nearest_exact1d(a, TENSOR_INTS(5), NO)))
CASE(fn_nearest1d, tensor_exp(tensor_upsample_nearest1d(a, TENSOR_INTS(5), NO)))
CASE(fn_nearest3d,
     tensor_exp(tensor_upsample_nearest3d(volume(a), TENSOR_INTS(3, 1, 4), NO, NO, NO)))
CASE(fn_nearest_exact2d, tensor_exp(tensor_upsample_nearest_exact2d(a, TENSOR_INTS(3, 5), NO, NO)))
CASE(fn_nearest_exact3d,
     tensor_exp(tensor_upsample_nearest_exact3d(volume(a), TENSOR_INTS(3, 1, 4), NO, NO, NO)))
CASE(fn_linear, tensor_exp(tensor_upsample_linear1d(a, TENSOR_INTS(5), false, NO)))
CASE(fn_bilinear, tensor_exp(tensor_upsample_bilinear2d(a, TENSOR_INTS(3, 5), true, NO, NO)))
CASE(fn_bicubic, tensor_exp(tensor_upsample_bicubic2d(a, TENSOR_INTS(3, 5), false, NO, NO)))
CASE(fn_trilinear,
     tensor_exp(tensor_upsample_trilinear3d(volume(a), TENSOR_INTS(3, 4, 3), false, NO, NO, NO)))
CASE(fn_im2col, tensor_exp(tensor_im2col(a, TWO, ONE, ONE, TWO)))
CASE(fn_col2im, tensor_exp(tensor_col2im(a, TENSOR_INTS(3, 3), TWO, ONE, ZERO, ONE)))

static tensor *grid_by_name(tensor *grad, tensor *input, tensor *grid, int64_t mode)
{
	tensor *g[2];

	if (tensor_grid_sampler_2d_backward(grad, input, grid, mode, 0, false, 3, &g[0], &g[1]) < 0)
		return NULL;
	return tensor_add(tensor_sum(tensor_exp(g[0])), tensor_sum(tensor_exp(g[1])));
}

CASE(fn_grid_bilinear, tensor_grid_sampler_2d(a, b, 0, 0, false))
CASE(fn_grid_border, tensor_grid_sampler_2d(a, b, 0, 1, true))
CASE(fn_grid_reflection, tensor_grid_sampler_2d(a, b, 0, 2, true))
CASE(fn_grid_nearest, tensor_exp(tensor_grid_sampler_2d(a, b, 1, 2, false)))
CASE(fn_grid_bicubic, tensor_grid_sampler_2d(a, b, 2, 2, false))
CASE(fn_grid_bicubic_zeros, tensor_grid_sampler_2d(a, b, 2, 0, true))
CASE(fn_grid_bicubic_border, tensor_grid_sampler_2d(a, b, 2, 1, false))
CASE(fn_grid_by_name, grid_by_name(a, b, c, 0))
CASE(fn_grid_by_name_bicubic, grid_by_name(a, b, c, 2))

static const struct formula formulas[] = {
	ROW(nearest, 1, IN(1, 0, 1, 2, 2, 3)),
	ROW(nearest_exact, 1, IN(1, 0, 1, 2, 3)),
	ROW(nearest1d, 1, IN_T(1, 0, 2, 1, 3)),
	ROW(nearest3d, 1, IN(1, 0, 12)),
	ROW(nearest_exact2d, 1, IN_T(1, 0, 1, 2, 2, 3)),
	ROW(nearest_exact3d, 1, IN(1, 0, 12)),
	ROW(linear, 1, IN_T(1, 0, 2, 1, 3)),
	ROW(bilinear, 1, IN(1, 0, 1, 2, 2, 3)),
	ROW(bicubic, 1, IN(0.5, 0, 1, 1, 2, 3)),
	ROW(trilinear, 1, IN(1, 0, 12)),
	ROW(im2col, 1, IN(1, 0, 2, 3, 4)),
	ROW(col2im, 1, IN(1, 0, 1, 4, 4)),
	ROW(grid_bilinear, 2, IN(1, 0, 1, 2, 3, 4), IN(0.9, 0.03, 1, 2, 3, 2)),
	ROW(grid_border, 2, IN_T(1, 0, 1, 2, 3, 4), IN(1.4, 0.03, 1, 2, 3, 2)),
	ROW(grid_reflection, 2, IN(1, 0, 1, 2, 3, 4), IN_T(1.4, 0.03, 1, 2, 3, 2)),
	ROW(grid_nearest, 2, IN(1, 0, 1, 2, 3, 4), IN(0.9, 0.03, 1, 2, 3, 2)),
	ROW(grid_bicubic, 2, IN(1, 0, 1, 2, 3, 4), IN(0.9, 0.03, 1, 2, 3, 2)),
	ROW(grid_bicubic_zeros, 2, IN(1, 0, 1, 2, 3, 4), IN(0.9, 0.03, 1, 2, 3, 2)),
	ROW(grid_bicubic_border, 2, IN(1, 0, 2, 1, 3, 4), IN(1.3, 0.03, 2, 1, 3, 2)),
	ROW(grid_by_name, 3, IN(1, 0, 1, 2, 2, 3), IN(1, 0, 1, 2, 3, 4), IN(0.9, 0.03, 1, 2, 3, 2)),
	ROW(grid_by_name_bicubic, 3, IN(0.3, 0, 1, 2, 2, 3), IN(0.4, 0, 1, 2, 3, 4),
	    IN(0.6, 0.03, 1, 2, 3, 2)),
};

FORMULA_TESTS

/*
 * x = (torch.arange(6, dtype=torch.float64) / 5).view(1, 1, 2, 3).requires_grad_()
 * grid = torch.tensor([[[[0.1, -0.3], [0.5, 0.4]]]], dtype=torch.float64).requires_grad_()
 * y = torch.ops.aten.grid_sampler_2d(x, grid, mode, padding, False)
 * g = torch.autograd.grad(y.sin().sum(), (x, grid), create_graph=True)
 * print(torch.autograd.grad(sum(t.exp().sum() for t in g), (x, grid)))
 */
static void grid_second(int64_t mode, int64_t padding, tensor **second)
{
	const double at[] = { 0.1, -0.3, 0.5, 0.4 };
	tensor *x = ok(tensor_div_scalar(ok(tensor_arange(S(6), F64)), S(5))), *grid, *g[2], *y;

	x = ok(tensor_clone(ok(tensor_view(x, TENSOR_INTS(1, 1, 2, 3)))));
	grid = ok(tensor_from_data(at, TENSOR_INTS(1, 1, 2, 2), F64));
	assert_done(tensor_set_requires_grad(x, true));
	assert_done(tensor_set_requires_grad(grid, true));
	y = ok(tensor_grid_sampler_2d(x, grid, mode, padding, false));
	assert_done(tensor_backward_ex(TENSOR_LIST(ok(tensor_sum(tensor_sin(y)))), NULL,
				       TENSOR_LIST(x, grid), g, TENSOR_CREATE_GRAPH));
	y = ok(tensor_add(tensor_sum(tensor_exp(g[0])), tensor_sum(tensor_exp(g[1]))));
	assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x, grid), second, 0));
}

static void second_derivatives_of_grid_sample_are_pytorchs(void **state)
{
	tensor_scope {
		tensor *g[2];

		grid_second(0, 0, g);
		assert_values(g[0], 1e-11, 0, -4.03498040303, 0.381550759565, 0, -0.431641270081,
			      0.866349612756);
		assert_values(g[1], 1e-11, -1.11082400175, -1.05472335992, -0.521401486215,
			      -1.17880995924);
		grid_second(2, 2, g);
		assert_values(g[0], 1e-11, -0.320423335375, -3.84442774333, 0.622026940683,
			      0.0268939368552, -0.384341145686, 0.674404940153);
		assert_values(g[1], 1e-11, -1.74482063413, -0.464557276465, -0.581671495433,
			      -1.606218324);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_interpolation_selects_elements),
		cmocka_unit_test(linear_and_cubic_interpolation_give_known_values),
		cmocka_unit_test(col2im_reverses_im2col),
		cmocka_unit_test(grid_sample_gives_known_values),
		cmocka_unit_test(errors_name_the_argument),
		FORMULA_TEST_LIST,
		cmocka_unit_test(second_derivatives_of_grid_sample_are_pytorchs),
	};

	return cmocka_run_group_tests_name("upsample", tests, NULL, NULL);
}
