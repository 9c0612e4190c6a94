// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* First and second derivatives of pooling against central differences. */
#include "formulas.h"

#define ONE   TENSOR_INTS(1)
#define TWO   TENSOR_INTS(2)
#define THREE TENSOR_INTS(3)
#define ZERO  TENSOR_INTS(0)

static tensor *as_volume(tensor *a)
{
	return tensor_view(a, TENSOR_INTS(1, 1, 4, 4, 3));
}

static tensor *first_result(int err, tensor *const *output)
{
	return err < 0 ? NULL : *output;
}

static tensor *adaptive_max(tensor *a, int n)
{
	tensor *out, *at;

	if (n == 1)
		return first_result(tensor_adaptive_max_pool1d(a, TWO, &out, &at), &out);
	if (n == 2)
		return first_result(tensor_adaptive_max_pool2d(a, TWO, &out, &at), &out);
	return first_result(tensor_adaptive_max_pool3d(as_volume(a), TWO, &out, &at), &out);
}

CASE(fn_avg_pool1d, tensor_exp(tensor_avg_pool1d(a, TWO, ONE, ONE, false, true)))
CASE(fn_avg_pool2d, tensor_exp(tensor_avg_pool2d(a, THREE, TWO, ONE, true, false, TENSOR_NONE)))
CASE(fn_avg_pool3d, tensor_exp(tensor_avg_pool3d(as_volume(a), TWO, ONE, ONE, false, true, 5)))
CASE(fn_max_pool1d, tensor_exp(tensor_max_pool1d(a, TWO, ONE, ONE, ONE, false)))
CASE(fn_max_pool2d, tensor_exp(tensor_max_pool2d(a, TWO, ONE, ZERO, TWO, false)))
CASE(fn_max_pool3d, tensor_exp(tensor_max_pool3d(as_volume(a), TWO, ONE, ZERO, ONE, false)))
CASE(fn_adaptive_avg1d, tensor_exp(tensor_adaptive_avg_pool1d(a, TWO)))
CASE(fn_adaptive_avg2d, tensor_exp(tensor_adaptive_avg_pool2d(a, THREE)))
CASE(fn_adaptive_avg3d, tensor_exp(tensor_adaptive_avg_pool3d(as_volume(a), TWO)))
CASE(fn_adaptive_mean, tensor_exp(tensor_adaptive_avg_pool2d(a, ONE)))
CASE(fn_adaptive_max1d, tensor_exp(adaptive_max(a, 1)))
CASE(fn_adaptive_max2d, tensor_exp(adaptive_max(a, 2)))
CASE(fn_adaptive_max3d, tensor_exp(adaptive_max(a, 3)))

/* The backward of each pooling as a function of the gradient a and of the input b. */
static tensor *max_backward(tensor *a, tensor *b, int n)
{
	tensor *out, *at;

	if (n == 2)
		return tensor_max_pool2d_with_indices(b, TWO, TWO, ZERO, ONE, false, &out, &at) <
				       0 ?
			       NULL :
			       tensor_max_pool2d_with_indices_backward(a, b, TWO, TWO, ZERO, ONE,
								       false, at);
	return tensor_max_pool3d_with_indices(b, TWO, TWO, ZERO, ONE, false, &out, &at) < 0 ?
		       NULL :
		       tensor_max_pool3d_with_indices_backward(a, b, TWO, TWO, ZERO, ONE, false,
							       at);
}

static tensor *adaptive_max_backward(tensor *a, tensor *b, int n)
{
	tensor *out, *at;

	if (n == 2)
		return tensor_adaptive_max_pool2d(b, TWO, &out, &at) < 0 ?
			       NULL :
			       tensor_adaptive_max_pool2d_backward(a, b, at);
	return tensor_adaptive_max_pool3d(b, TWO, &out, &at) < 0 ?
		       NULL :
		       tensor_adaptive_max_pool3d_backward(a, b, at);
}

CASE(fn_avg2d_backward,
     tensor_exp(tensor_avg_pool2d_backward(a, b, TWO, TWO, ZERO, false, true, TENSOR_NONE)))
CASE(fn_avg3d_backward,
     tensor_exp(tensor_avg_pool3d_backward(a, b, TWO, TWO, ZERO, false, true, TENSOR_NONE)))
CASE(fn_max2d_backward, tensor_exp(max_backward(a, b, 2)))
CASE(fn_max3d_backward, tensor_exp(max_backward(a, b, 3)))
CASE(fn_adaptive_avg2d_backward, tensor_exp(tensor_adaptive_avg_pool2d_backward(a, b)))
CASE(fn_adaptive_avg3d_backward, tensor_exp(tensor_adaptive_avg_pool3d_backward(a, b)))
CASE(fn_adaptive_max2d_backward, tensor_exp(adaptive_max_backward(a, b, 2)))
CASE(fn_adaptive_max3d_backward, tensor_exp(adaptive_max_backward(a, b, 3)))

static const struct formula formulas[] = {
	ROW(avg_pool1d, 1, IN(1, 0, 2, 2, 5)),
	ROW(avg_pool2d, 1, IN_T(1, 0, 1, 2, 4, 5)),
	ROW(avg_pool3d, 1, IN(1, 0, 48)),
	ROW(max_pool1d, 1, IN(1, 0, 2, 5)),
	ROW(max_pool2d, 1, IN(1, 0, 2, 1, 4, 5)),
	ROW(max_pool3d, 1, IN(1, 0, 48)),
	ROW(adaptive_avg1d, 1, IN(1, 0, 2, 5)),
	ROW(adaptive_avg2d, 1, IN(1, 0, 2, 1, 4, 5)),
	ROW(adaptive_avg3d, 1, IN(1, 0, 48)),
	ROW(adaptive_mean, 1, IN(1, 0, 2, 1, 4, 5)),
	ROW(adaptive_max1d, 1, IN(1, 0, 2, 5)),
	ROW(adaptive_max2d, 1, IN_T(1, 0, 2, 1, 4, 5)),
	ROW(adaptive_max3d, 1, IN(1, 0, 48)),
	ROW(avg2d_backward, 2, IN(1, 0, 1, 2, 1, 2), IN(1, 0, 1, 2, 3, 4)),
	ROW(avg3d_backward, 2, IN(1, 0, 2, 1, 1, 2), IN(1, 0, 2, 2, 2, 4)),
	ROW(max2d_backward, 2, IN_T(1, 0, 1, 2, 1, 2), IN(1, 0, 1, 2, 3, 4)),
	ROW(max3d_backward, 2, IN(1, 0, 2, 1, 1, 2), IN(1, 0, 2, 2, 2, 4)),
	ROW(adaptive_avg2d_backward, 2, IN(1, 0, 1, 2, 2, 2), IN(1, 0, 1, 2, 3, 4)),
	ROW(adaptive_avg3d_backward, 2, IN(1, 0, 2, 2, 1, 2), IN(1, 0, 2, 3, 2, 3)),
	ROW(adaptive_max2d_backward, 2, IN(1, 0, 1, 2, 2, 2), IN(1, 0, 1, 2, 3, 4)),
	ROW(adaptive_max3d_backward, 2, IN(1, 0, 2, 2, 2, 2), IN(1, 0, 2, 3, 2, 3)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("autograd_pool", tests, NULL, NULL);
}
