// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "formulas.h"

static tensor *group_norm(tensor *x, tensor *w, tensor *b)
{
	return tensor_group_norm(x, 2, w, b, 1e-3, false);
}

static tensor *batch_norm(tensor *x, tensor *w, tensor *b, bool training)
{
	tensor *mean = tensor_full(TENSOR_INTS(3), S(0.5), F64),
	       *var = tensor_full(TENSOR_INTS(3), S(2.0), F64);

	return tensor_batch_norm(x, w, b, mean, var, training, 0.1, 1e-3, false);
}

CASE(fn_batch, batch_norm(a, b, c, true))
CASE(fn_batch_eval, batch_norm(a, b, c, false))
CASE(fn_instance, tensor_instance_norm(a, b, c, tensor_none, tensor_none, true, 0.1, 1e-3, false))
CASE(fn_layer, tensor_layer_norm(a, TENSOR_INTS(3), b, c, 1e-3, false))
CASE(fn_layer_plain, tensor_layer_norm(a, TENSOR_INTS(2, 3), tensor_none, tensor_none, 1e-3, false))
CASE(fn_layer_mean, tensor_layer_norm(a, TENSOR_INTS(2, 3), b, tensor_none, 1e-3, false))
CASE(fn_rms, tensor_rms_norm(a, TENSOR_INTS(3), b, 1e-3))
CASE(fn_group, group_norm(a, b, c))
CASE(fn_group_plain, group_norm(a, tensor_none, tensor_none))

static const struct formula formulas[] = {
	ROW(batch, 3, IN(1, 0, 4, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(batch, 3, IN_T(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(batch_eval, 3, IN(1, 0, 2, 3, 2), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(instance, 3, IN(1, 0, 2, 3, 4), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer, 3, IN(1, 0, 2, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer, 3, IN_T(1, 0, 2, 2, 3), IN(1, 0, 3), IN(1, 0, 3)),
	ROW(layer_plain, 1, IN(1, 0, 2, 2, 3)),
	ROW(layer_mean, 2, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3)),
	ROW(rms, 2, IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(group, 3, IN(1, 0, 2, 4, 2), IN(1, 0, 4), IN(1, 0, 4)),
	ROW(group_plain, 1, IN_T(1, 0, 2, 4, 2)),
};

FORMULA_TESTS

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_formula_agrees_with_differences),
		cmocka_unit_test(every_formula_is_differentiable_again),
	};

	return cmocka_run_group_tests_name("autograd_norm", tests, NULL, NULL);
}
