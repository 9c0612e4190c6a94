// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* einsum against the operators that compute the same. */
#include "check.h"
#include "autograd.h"

#define L(...) TENSOR_LIST(__VA_ARGS__)

static void assert_einsum(tensor *got, tensor *want)
{
	double v[256];

	ok(got);
	ok(want);
	assert_int_equal(tensor_dim(got), tensor_dim(want));
	assert_memory_equal(tensor_sizes(got), tensor_sizes(want),
			    tensor_dim(want) * sizeof(int64_t));
	want = tensor_to(tensor_contiguous(want), F64);
	got = tensor_to(tensor_contiguous(got), F64);
	assert_done(tensor_copy_to(want, v, tensor_numel(want) * sizeof(*v)));
	for (int64_t i = 0; i < tensor_numel(want); i++)
		assert_true(((const double *)tensor_data(got))[i] == v[i]);
}

static void einsum_equals_the_named_operator(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3)), *b = iota(1, TENSOR_INTS(3, 4));
		tensor *x = iota(2, TENSOR_INTS(3)), *batch = iota(0, TENSOR_INTS(2, 2, 3));

		assert_einsum(tensor_einsum("ij,jk->ik", L(a, b)), tensor_mm(a, b));
		assert_einsum(tensor_einsum("ij,jk", L(a, b)), tensor_mm(a, b));
		assert_einsum(tensor_einsum(" i j , j k -> k i ", L(a, b)),
			      tensor_t(tensor_mm(a, b)));
		assert_einsum(tensor_einsum("i,i->", L(x, x)), tensor_dot(x, x));
		assert_einsum(tensor_einsum("i,j->ij", L(x, x)), tensor_outer(x, x));
		assert_einsum(tensor_einsum("ij,j->i", L(a, x)), tensor_mv(a, x));
		assert_einsum(tensor_einsum("bij,jk->bik", L(batch, b)), tensor_matmul(batch, b));
		assert_einsum(tensor_einsum("...j,jk->...k", L(batch, b)), tensor_matmul(batch, b));
		assert_einsum(tensor_einsum("ij,ij->ij", L(a, a)), tensor_mul(a, a));
		assert_einsum(tensor_einsum("ij,jk,k->i", L(a, b, iota(0, TENSOR_INTS(4)))),
			      tensor_mv(tensor_mm(a, b), iota(0, TENSOR_INTS(4))));
	}
}

static void einsum_of_one_operand_permutes_and_sums(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(3, 3)), *c = iota(0, TENSOR_INTS(2, 3, 3));

		assert_einsum(tensor_einsum("ij->ji", L(a)), tensor_t(a));
		assert_einsum(tensor_einsum("ba", L(a)), tensor_t(a));
		assert_einsum(tensor_einsum("ii->i", L(a)), tensor_diagonal(a, 0, 0, 1));
		assert_einsum(tensor_einsum("ii", L(a)), tensor_sum(tensor_diagonal(a, 0, 0, 1)));
		assert_einsum(tensor_einsum("ij->j", L(a)),
			      tensor_sum_dim(a, TENSOR_INTS(0), false));
		assert_einsum(tensor_einsum("...ii->...i", L(c)), tensor_diagonal(c, 0, 1, 2));
		assert_einsum(tensor_einsum("...->", L(c)), tensor_sum(c));
	}
}

/* A dimension of size 1 broadcasts. */
static void ones_broadcast(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 1)), *b = iota(1, TENSOR_INTS(3, 4));

		assert_einsum(tensor_einsum("ij,jk->ik", L(a, b)),
			      tensor_mm(tensor_expand(a, TENSOR_INTS(2, 3)), b));
		assert_einsum(tensor_einsum("...,...->...", L(iota(1, TENSOR_INTS(4)), b)),
			      tensor_mul(iota(1, TENSOR_INTS(4)), b));
	}
}

static void invalid_equations_are_refused(void **state)
{
	tensor_scope {
		tensor *a = iota(0, TENSOR_INTS(2, 3));

		assert_fails(!tensor_einsum("ij,jk->ik", L(a, a)), EINVAL, "sizes 3 and 2");
		assert_fails(!tensor_einsum("ijk->i", L(a)), EINVAL, "3 labels");
		assert_fails(!tensor_einsum("ij->ii", L(a)), EINVAL, "twice");
		assert_fails(!tensor_einsum("ij->ik", L(a)), EINVAL, "no operand");
		assert_fails(!tensor_einsum("ij,jk->ik", L(a)), EINVAL, "more");
		assert_fails(!tensor_einsum("ij", L(a, a)), EINVAL, "fewer");
		assert_fails(!tensor_einsum("i!->i", L(a)), EINVAL, "expected, got '!->i'");
		assert_fails(!tensor_einsum("ii->i", L(a)), EINVAL, "repeated label");
		assert_fails(!tensor_einsum("ij->i-", L(a)), EINVAL, "follows");
		assert_fails(!tensor_einsum("ij-i", L(a)), EINVAL, "\"->\"");
		assert_fails(!tensor_einsum("..ij->i", L(a)), EINVAL, "got '..ij->i'");
		assert_fails(!tensor_einsum(NULL, L(a)), EINVAL, "NULL");
		assert_fails(!tensor_einsum("abcdefghijklmnopqr", L(a)), EINVAL, "labels");
	}
}

static void einsum_has_gradients(void **state)
{
	tensor_scope {
		tensor *a = tensor_to(iota(0, TENSOR_INTS(2, 3)), F64),
		       *b = tensor_to(iota(1, TENSOR_INTS(3, 4)), F64);

		tensor_set_requires_grad(a, true);
		tensor_set_requires_grad(b, true);
		assert_done(tensor_backward(tensor_sum(tensor_einsum("ij,jk->k", L(a, b)))));
		assert_values(tensor_grad(a), 0, 10, 26, 42, 10, 26, 42);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(einsum_equals_the_named_operator),
		cmocka_unit_test(einsum_of_one_operand_permutes_and_sums),
		cmocka_unit_test(ones_broadcast),
		cmocka_unit_test(invalid_equations_are_refused),
		cmocka_unit_test(einsum_has_gradients),
	};

	return cmocka_run_group_tests_name("einsum", tests, NULL, NULL);
}
