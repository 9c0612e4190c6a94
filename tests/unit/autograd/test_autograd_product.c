// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Derivatives of matrix products and of operators that consist of them. */
#include "formulas.h"

CASE(fn_bmm, tensor_bmm(a, b))
CASE(fn_baddbmm, tensor_baddbmm_opt(a, b, c, S(2), S(-0.5)))
CASE(fn_baddbmm_in_place, tensor_baddbmm_(tensor_mul(a, a), b, c))
CASE(fn_mv, tensor_mv(a, b))
CASE(fn_addmv, tensor_addmv_opt(a, b, c, S(3), S(2)))
CASE(fn_dot, tensor_dot(a, b))
CASE(fn_vdot, tensor_vdot(a, b))
CASE(fn_outer, tensor_outer(a, b))
CASE(fn_addr, tensor_addr_opt(a, b, c, S(2), S(3)))
CASE(fn_addbmm, tensor_addbmm_opt(a, b, c, S(2), S(3)))
CASE(fn_matmul, tensor_matmul(a, b))
CASE(fn_linear, tensor_linear(a, b, c))
CASE(fn_addmm_relu, tensor__addmm_pointwise_opt(a, b, c, "relu", S(2), S(3)))
CASE(fn_addmm_gelu, tensor__addmm_pointwise_opt(a, b, tensor_t(c), "gelu", S(2), S(3)))
CASE(fn_addmm_gelu_tanh, tensor__addmm_activation_opt(a, b, c, S(1), S(0.5), true))
CASE(fn_addmm_silu, tensor__addmm_pointwise(a, b, c, "silu"))
CASE(fn_addmm_none, tensor__addmm_pointwise(a, b, c, "none"))
CASE(fn_linear_gelu, tensor_linear_activation(a, b, c, "gelu"))
CASE(fn_tensordot, tensor_tensordot(a, b, TENSOR_INTS(0, 2), TENSOR_INTS(1, 0)))
CASE(fn_kron, tensor_kron(a, b))
CASE(fn_cross, tensor_linalg_cross(a, b))
CASE(fn_multi_dot, tensor_linalg_multi_dot(TENSOR_LIST(a, b, c)))
/* Products of complex numbers, as real tensors. */
CASE(fn_complex_mm, tensor_view_as_real(tensor_mm(AS_COMPLEX(a), AS_COMPLEX(b))))
CASE(fn_complex_mm_t, tensor_view_as_real(tensor_mm(AS_COMPLEX(a), tensor_t(AS_COMPLEX(b)))))
CASE(fn_complex_bmm, tensor_view_as_real(tensor_bmm(AS_COMPLEX(a), AS_COMPLEX(b))))
CASE(fn_complex_addmm,
     tensor_view_as_real(tensor_addmm_opt(AS_COMPLEX(a), AS_COMPLEX(b), AS_COMPLEX(c),
					  tensor_scalar_complex(1, 2),
					  tensor_scalar_complex(0.5, -1))))

CASE(fn_attention, tensor_scaled_dot_product_attention(a, b, c, tensor_none, 0, false))
CASE(fn_causal_attention, tensor_scaled_dot_product_attention(a, b, c, tensor_none, 0, true))
CASE(fn_masked_attention, tensor_scaled_dot_product_attention(a, b, c, d, 0, false))

/* A result of attention as one kernel, with a mask unless it is NULL. */
static tensor *kernel(tensor *q, tensor *k, tensor *v, tensor *mask, bool sums)
{
	tensor *out[2];

	return tensor__attention(mask ? mask : tensor_none, TENSOR_LIST(q, k, v), !mask, 0.7,
				 &out[0], &out[1]) < 0 ?
		       NULL :
		       out[sums];
}

CASE(fn_attention_kernel, kernel(a, b, c, NULL, false))
CASE(fn_masked_attention_kernel, kernel(a, b, c, d, false))
CASE(fn_attention_sums, kernel(a, b, c, d, true))

static const struct formula formulas[] = {
	ROW(attention, 3, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3, 3), IN(1, 0, 2, 3, 2)),
	ROW(causal_attention, 3, IN(1, 0, 2, 3), IN(1, 0, 3, 3), IN(1, 0, 3, 2)),
	ROW(masked_attention, 4, IN(1, 0, 2, 3), IN(1, 0, 3, 3), IN(1, 0, 3, 2), IN(1, 0, 2, 3)),
	ROW(attention_kernel, 3, IN(1, 0, 2, 4, 3), IN(1, 0, 2, 3, 3), IN(1, 0, 2, 3, 2)),
	ROW(masked_attention_kernel, 4, IN(1, 0, 2, 3), IN(1, 0, 3, 3), IN(1, 0, 3, 2),
	    IN(1, 0, 2, 3)),
	ROW(attention_sums, 4, IN(1, 0, 2, 3), IN(1, 0, 3, 3), IN(1, 0, 3, 2), IN(1, 0, 2, 3)),
	ROW(complex_mm, 2, IN(1, 0, 2, 3, 2), IN(1, 0, 3, 2, 2)),
	ROW(complex_mm_t, 2, IN(1, 0, 2, 3, 2), IN(1, 0, 2, 3, 2)),
	ROW(complex_bmm, 2, IN(1, 0, 2, 2, 2, 2), IN(1, 0, 2, 2, 2, 2)),
	ROW(complex_addmm, 3, IN(1, 0, 2, 2), IN(1, 0, 2, 3, 2), IN(1, 0, 3, 2, 2)),
	ROW(bmm, 2, IN(1, 0, 2, 2, 3), IN_T(1, 0, 2, 3, 2)),
	ROW(baddbmm, 3, IN(1, 0, 3), IN(1, 0, 2, 2, 2), IN_T(1, 0, 2, 2, 3)),
	ROW(baddbmm_in_place, 3, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 2, 2), IN(1, 0, 2, 2, 3)),
	ROW(mv, 2, IN_T(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(addmv, 3, IN(1, 0, 2), IN(1, 0, 2, 3), IN(1, 0, 3)),
	ROW(dot, 2, IN(1, 0, 3), IN(1, 0, 3)),
	ROW(vdot, 2, IN(1, 0, 3), IN(1, 0, 3)),
	ROW(outer, 2, IN(1, 0, 2), IN(1, 0, 3)),
	ROW(addr, 3, IN(1, 0, 2, 3), IN(1, 0, 2), IN(1, 0, 3)),
	ROW(addbmm, 3, IN(1, 0, 3), IN(1, 0, 2, 2, 2), IN(1, 0, 2, 2, 3)),
	ROW(matmul, 2, IN(1, 0, 2, 1, 2, 3), IN(1, 0, 2, 3, 2)),
	ROW(matmul, 2, IN(1, 0, 3), IN(1, 0, 2, 3, 2)),
	ROW(matmul, 2, IN(1, 0, 4, 3), IN(1, 0, 2, 3, 2)),
	ROW(matmul, 2, IN(1, 0, 2, 2, 3), IN(1, 0, 3)),
	ROW(linear, 3, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3), IN(1, 0, 2)),
	ROW(addmm_relu, 3, IN(1, 0, 2), IN(1, 0, 3, 3), IN(1, 0, 3, 2)),
	ROW(addmm_gelu, 3, IN(1, 0, 2), IN(1, 0, 3, 3), IN(1, 0, 2, 3)),
	ROW(addmm_gelu_tanh, 3, IN(1, 0, 3, 2), IN(1, 0, 3, 3), IN(1, 0, 3, 2)),
	ROW(addmm_silu, 3, IN(1, 0, 2), IN(1, 0, 3, 3), IN(1, 0, 3, 2)),
	ROW(addmm_none, 3, IN(1, 0, 2), IN(1, 0, 3, 3), IN(1, 0, 3, 2)),
	ROW(linear_gelu, 3, IN(1, 0, 2, 2, 3), IN(1, 0, 2, 3), IN(1, 0, 2)),
	ROW(linear, 3, IN(1, 0, 3), IN(1, 0, 2, 3), IN(1, 0, 2)),
	ROW(tensordot, 2, IN(1, 0, 2, 3, 2), IN(1, 0, 2, 2, 2)),
	ROW(kron, 2, IN(1, 0, 2, 2), IN(1, 0, 3)),
	ROW(cross, 2, IN(1, 0, 2, 3), IN(1, 0, 2, 3)),
	ROW(multi_dot, 3, IN(1, 0, 2, 3), IN(1, 0, 3, 2), IN(1, 0, 2)),
};

FORMULA_TESTS

/* If the mask excludes all keys of a query, its result and gradient are zeros. */
static void attention_without_keys_has_gradient_zero(void **state)
{
	tensor_scope {
		tensor *q = ok(tensor_ones(TENSOR_SHAPE(2, 2), F64)),
		       *mask = ok(tensor_zeros(TENSOR_SHAPE(2, 2), F64));

		((double *)tensor_mutable_data(mask))[0] =
			((double *)tensor_mutable_data(mask))[1] = -INFINITY;
		assert_done(tensor_set_requires_grad(q, true));
		assert_done(tensor_backward(ok(
			tensor_sum(tensor_scaled_dot_product_attention(q, q, q, mask, 0, false)))));
		assert_values(tensor_grad(q), 1e-12, 0.5, 0.5, 0.5, 0.5);
	}
}

static tensor *reduced(tensor_ints sizes, double value)
{
	return ok(tensor_full(sizes, S(value), OF(TENSOR_BF16)));
}

/* 2 * MANY numbers of bf16: the first MANY are `first`, the others `second`. */
enum { MANY = 256 };

static tensor *halves(double first, double second)
{
	return ok(tensor_cat(TENSOR_LIST(reduced(TENSOR_SHAPE(MANY), first),
					 reduced(TENSOR_SHAPE(MANY), second)),
			     0));
}

/* (1 + 2^-7)^2 - (1 + 2^-6) is 2^-14, and zero if the square is rounded to bf16 first. */
static void products_of_gradients_are_rounded_after_their_sum(void **state)
{
	(void)state;
	tensor_scope {
		tensor *seed = halves(1 + 0x1p-7, -1), *factors = halves(1 + 0x1p-7, 1 + 0x1p-6);
		tensor *batch = ok(tensor_view(factors, TENSOR_INTS(2 * MANY, 1, 1)));
		tensor *vector = reduced(TENSOR_SHAPE(1), 1),
		       *matrix = reduced(TENSOR_SHAPE(1, 1), 1);
		tensor *row = reduced(TENSOR_SHAPE(1), 1), *in[] = { vector, matrix, row }, *out[3];

		for (size_t i = 0; i < ARRAY_SIZE(in); i++)
			assert_done(tensor_set_requires_grad(in[i], true));
		out[0] = ok(tensor_matmul(vector, batch));
		out[1] = ok(tensor_matmul(matrix, batch));
		out[2] = ok(tensor_addr(reduced(TENSOR_SHAPE(1), 0), row, factors));
		for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
			assert_true(tensor_is_contiguous(out[i]));
			out[i] = ok(tensor_view(out[i], TENSOR_INTS(2 * MANY)));
			assert_done(tensor_backward(ok(tensor_sum(tensor_mul(out[i], seed)))));
			assert_values(ok(tensor_view(tensor_grad(in[i]), TENSOR_INTS(1))), 0,
				      MANY * 0x1p-14);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORMULA_TEST_LIST,
		cmocka_unit_test(products_of_gradients_are_rounded_after_their_sum),
		cmocka_unit_test(attention_without_keys_has_gradient_zero),
	};

	return cmocka_run_group_tests_name("autograd_product", tests, NULL, NULL);
}
