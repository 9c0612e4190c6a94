// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* First and second derivatives of convolutions against central differences. */
#include "formulas.h"

#define ONE  TENSOR_INTS(1)
#define TWO  TENSOR_INTS(2)
#define ZERO TENSOR_INTS(0)

CASE(fn_conv1d, tensor_conv1d(a, b, c, TWO, ONE, ONE, 1))
CASE(fn_conv2d, tensor_conv2d(a, b, c, TENSOR_INTS(2, 1), ONE, TENSOR_INTS(1, 2), 1))
CASE(fn_complex, tensor_view_as_real(tensor_conv1d(AS_COMPLEX(a), AS_COMPLEX(b), AS_COMPLEX(c), TWO,
						   ONE, ONE, 1)))
CASE(fn_same, tensor_conv1d_padding(a, b, c, ONE, "same", ONE, 1))
CASE(fn_unbatched, tensor_conv2d(a, b, c, ONE, ZERO, ONE, 1))
CASE(fn_groups, tensor_conv2d(a, b, c, ONE, ONE, ONE, 2))
CASE(fn_depthwise, tensor_conv2d(a, b, tensor_none, ONE, ONE, ONE, 2))
CASE(fn_conv3d, tensor_conv3d(tensor_view(a, TENSOR_INTS(1, 1, 2, 3, 3)),
			      tensor_view(b, TENSOR_INTS(2, 1, 2, 2, 1)), c, ONE, ZERO, ONE, 1))
CASE(fn_transposed1d, tensor_conv_transpose1d(a, b, c, TWO, ONE, ONE, 1, ONE))
CASE(fn_transposed2d, tensor_conv_transpose2d(a, b, c, TWO, ZERO, ZERO, 2, ONE))
/* Groups and dilation together, and both with strides; 3-d shapes have five dimensions. */
CASE(fn_groups1d, tensor_conv1d(a, b, c, TWO, TWO, TWO, 2))
CASE(fn_groups2d, tensor_conv2d(a, b, c, ONE, TENSOR_INTS(1, 2), TENSOR_INTS(2, 1), 2))
CASE(fn_groups3d, tensor_conv3d(tensor_view(a, TENSOR_INTS(2, 2, 2, 3, 2)),
				tensor_view(b, TENSOR_INTS(2, 1, 2, 2, 1)), c, ONE,
				TENSOR_INTS(1, 0, 1), TENSOR_INTS(2, 1, 1), 2))
CASE(fn_transposed1d_groups, tensor_conv_transpose1d(a, b, c, TWO, ONE, ONE, 2, TWO))
CASE(fn_transposed2d_groups, tensor_conv_transpose2d(a, b, c, TENSOR_INTS(2, 1), ONE,
						     TENSOR_INTS(1, 0), 2, TENSOR_INTS(2, 1)))
CASE(fn_transposed3d_groups, tensor_conv_transpose3d(tensor_view(a, TENSOR_INTS(2, 2, 2, 1, 2)),
						     tensor_view(b, TENSOR_INTS(2, 2, 2, 2, 1)), c,
						     ONE, ZERO, ZERO, 2, TENSOR_INTS(2, 1, 1)))
CASE(fn_complex_groups,
     AS_REAL(tensor_conv1d(AS_COMPLEX(a), AS_COMPLEX(b), AS_COMPLEX(c), ONE, ONE, TWO, 2)))
/* Only the gradients of inputs that require one are computed. */
CASE(fn_input_alone, tensor_conv1d(a, tensor_full(TENSOR_INTS(2, 2, 2), S(0.7), F64), tensor_none,
				   ONE, ZERO, ONE, 1))
CASE(fn_weight_alone, tensor_conv1d(tensor_full(TENSOR_INTS(1, 2, 4), S(0.7), F64),
				    tensor_mul(a, a), tensor_none, ONE, ZERO, ONE, 1))

static const struct formula formulas[] = {
	ROW(conv1d, 3, IN(1, 0, 2, 2, 5), IN(1, 0, 3, 2, 3), IN(1, 0, 3)),
	ROW(conv2d, 3, IN(1, 0, 1, 2, 4, 4), IN(1, 0, 2, 2, 3, 2), IN(1, 0, 2)),
	ROW(complex, 3, IN(1, 0, 1, 2, 3, 2), IN(1, 0, 2, 2, 2, 2), IN(1, 0, 2, 2)),
	ROW(same, 3, IN(1, 0, 1, 2, 3), IN(1, 0, 2, 2, 2), IN(1, 0, 2)),
	ROW(unbatched, 3, IN_T(1, 0, 2, 4, 3), IN(1, 0, 2, 2, 2, 2), IN(1, 0, 2)),
	ROW(groups, 3, IN(1, 0, 1, 4, 3, 3), IN_T(1, 0, 2, 2, 2, 2), IN(1, 0, 2)),
	ROW(depthwise, 2, IN(1, 0, 2, 2, 3, 3), IN(1, 0, 4, 1, 3, 3)),
	ROW(conv3d, 3, IN(1, 0, 2, 9), IN(1, 0, 2, 4), IN(1, 0, 2)),
	ROW(transposed1d, 3, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3, 3), IN(1, 0, 3)),
	ROW(transposed2d, 3, IN(1, 0, 1, 4, 2, 2), IN(1, 0, 4, 1, 2, 3), IN(1, 0, 2)),
	ROW(groups1d, 3, IN(1, 0, 2, 4, 5), IN(1, 0, 2, 2, 3), IN(1, 0, 2)),
	ROW(groups2d, 3, IN(1, 0, 1, 4, 4, 3), IN(1, 0, 2, 2, 2, 2), IN(1, 0, 2)),
	ROW(groups3d, 3, IN(1, 0, 4, 12), IN(1, 0, 2, 4), IN(1, 0, 2)),
	ROW(transposed1d_groups, 3, IN(1, 0, 2, 4, 3), IN(1, 0, 4, 2, 3), IN(1, 0, 4)),
	ROW(transposed2d_groups, 3, IN(1, 0, 1, 4, 2, 3), IN_T(1, 0, 4, 1, 2, 2), IN(1, 0, 2)),
	ROW(transposed3d_groups, 3, IN(1, 0, 4, 4), IN(1, 0, 4, 4), IN(1, 0, 4)),
	ROW(complex_groups, 3, IN(1, 0, 1, 2, 4, 2), IN(1, 0, 2, 1, 2, 2), IN(1, 0, 2, 2)),
	ROW(input_alone, 1, IN(1, 0, 1, 2, 4)),
	ROW(weight_alone, 1, IN(1, 0, 2, 2, 2)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
	};

	return cmocka_run_group_tests_name("autograd_conv", tests, NULL, NULL);
}
