// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Jacobians and Hessians. The numbers of PyTorch are of
 *
 *   f = lambda x: torch.sin(x).prod();  torch.func.hessian(f)(torch.tensor([.5, 1, 1.5], dtype=torch.float64))
 *   g = lambda x: torch.stack([x[0] * x[1], torch.exp(x[2]) * x[0]]);  torch.func.jacrev(g)(the same)
 */
#include "autograd.h"

#include <tensor/vmap.h>

static tensor *numbers(tensor_ints shape, const double *v)
{
	return ok(tensor_from_data(v, shape, F64));
}

#define assert_numbers(t, list) \
	check_values_((t), (list), ARRAY_SIZE(list), 1e-12, __FILE__, __LINE__)

static int two_outputs(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	tensor *x = in[0];

	(void)n, (void)nout, (void)ctx;
	out[0] = tensor_stack(
		TENSOR_LIST(tensor_mul(tensor_select(x, 0, 0), tensor_select(x, 0, 1)),
			    tensor_mul(tensor_exp(tensor_select(x, 0, 2)), tensor_select(x, 0, 0))),
		0);
	return out[0] ? 0 : -1;
}

static int product_of_sines(tensor *const *in, int n, tensor **out, int nout, void *ctx)
{
	(void)n, (void)nout, (void)ctx;
	out[0] = tensor_prod(tensor_sin(in[0]));
	return out[0] ? 0 : -1;
}

static const double point[] = { 0.5, 1, 1.5 };

static void jacobian_is_that_of_pytorch(void **state)
{
	static const double torch_jacobian[] = { 1, 0.5,
						 0, 4.4816890703380645,
						 0, 2.2408445351690323 };

	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3), point), *j;

		assert_done(tensor_jacobian(two_outputs, NULL, TENSOR_LIST(x), 1, &j, 0));
		assert_shape(j, 2, 3);
		assert_numbers(j, torch_jacobian);
		assert_false(tensor_requires_grad(j));
		assert_done(tensor_jacobian(two_outputs, NULL, TENSOR_LIST(leaf(x)), 1, &j,
					    TENSOR_CREATE_GRAPH));
		assert_numbers(j, torch_jacobian);
		assert_true(tensor_requires_grad(j));
	}
}

static void hessian_is_that_of_pytorch(void **state)
{
	static const double torch_hessian[] = { -0.4024121008934277,  0.47297210492336134,
						0.052236612519413105, 0.4729721049233614,
						-0.40241210089342777, 0.01832339151052051,
						0.052236612519413105, 0.01832339151052051,
						-0.40241210089342777 };

	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3), point), *h;

		assert_done(tensor_hessian(product_of_sines, NULL, TENSOR_LIST(x), &h, 0));
		assert_shape(h, 3, 3);
		assert_numbers(h, torch_hessian);
	}
}

static void wrong_arguments_are_refused(void **state)
{
	tensor_scope {
		tensor *x = numbers(TENSOR_INTS(3), point), *i = iota(0, TENSOR_INTS(2)), *j;

		i = ok(tensor_to(i, I64));
		assert_fails(!tensor_jacobian(NULL, NULL, TENSOR_LIST(x), 1, &j, 0), EINVAL,
			     "a function");
		assert_fails(!tensor_jacobian(two_outputs, NULL, TENSOR_LIST(NULL), 1, &j, 0),
			     EINVAL, "NULL");
		assert_fails(!tensor_jacobian(two_outputs, NULL, TENSOR_LIST(i), 1, &j, 0), EINVAL,
			     "dtype i64");
		assert_fails(!tensor_jacobian(two_outputs, NULL, TENSOR_LIST(x), 1, &j, 8), EINVAL,
			     "flags");
		assert_fails(!tensor_hessian(two_outputs, NULL, TENSOR_LIST(x), &j, 0), EINVAL,
			     "one element");
		assert_fails(!tensor_hessian(two_outputs, NULL, TENSOR_LIST(x), NULL, 0), EINVAL,
			     "results");
	}
}

static void nothing_is_left(void **state)
{
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	jacobian_is_that_of_pytorch(state);
	hessian_is_that_of_pytorch(state);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jacobian_is_that_of_pytorch),
		cmocka_unit_test(hessian_is_that_of_pytorch),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests_name("jacobian", tests, NULL, NULL);
}
