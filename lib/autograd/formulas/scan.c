// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas of scans, and of operators that choose by position: sort, topk and others. */
#include "autograd/formulas/formulas.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/factory.h"
#include "family/cat.h"
#include "family/index.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/scan.h"
#include "family/ternary.h"
#include "family/view.h"

/* An element is part of all sums from its own position on. */
tensor *cumsum_backward(tensor *grad, int64_t dim)
{
	if (!grad || !grad->ndim || grad->numel <= 1)
		return grad;
	return formula_flip(tensor_cumsum(formula_flip(grad, dim), dim), dim);
}

/* Without division, one element at a time along dim: for products with a zero. */
static tensor *cumprod_backward_slow(tensor *grad, tensor *self, int64_t dim)
{
	int64_t n = self->sizes[dim];
	tensor *all = NULL;

	for (int64_t k = 0; k < n; k++) {
		/* The products that include element k, divided by it. */
		tensor *before = tensor_prod_dim(tensor_narrow(self, dim, 0, k), dim, true);
		tensor *after = tensor_cumprod(tensor_narrow(self, dim, k + 1, n - k - 1), dim);
		tensor *rest = tensor_cat(TENSOR_LIST(before, tensor_mul(after, before)), dim);
		tensor *part = formula_sum_dim(
			formula_mul_conj(tensor_narrow(grad, dim, k, n - k), rest), dim);

		all = k ? tensor_cat(TENSOR_LIST(all, part), dim) : part;
	}
	return all;
}

tensor *cumprod_backward(tensor *grad, tensor *self, tensor *result, int64_t dim)
{
	if (!self->ndim || self->numel <= 1)
		return grad;
	if (dim < 0)
		dim += self->ndim;
	if (formula_has_zero(self))
		return cumprod_backward_slow(grad, self, dim);
	return formula_div_conj(cumsum_backward(formula_mul_conj(grad, result), dim), self);
}

/* The gradient at j contributes to i <= j with weight exp(self[i] - result[j]). */
tensor *logcumsumexp_backward(tensor *grad, tensor *self, tensor *result, int64_t dim)
{
	tensor *zero = formula_zeros_for(grad, TENSOR_SCALAR_SHAPE), *sum[2];

	if (!self->ndim || !self->numel)
		return grad;
	if (dtype_is_complex(self->dtype)) { /* the logarithm of a complex gradient is defined */
		sum[0] = tensor_sub(tensor_log(grad), formula_conj(result));
		sum[0] = formula_flip(tensor_logcumsumexp(formula_flip(sum[0], dim), dim), dim);
		return tensor_exp(tensor_add(sum[0], formula_conj(self)));
	}
	for (int i = 0; i < 2; i++) {
		tensor *none = tensor_sub_scalar(zero, formula_scalar(__builtin_inf()));
		/* A result of -infinity has only summands of 0, whose weights are 0 / 0. */
		tensor *sign = tensor_logical_and(i ? tensor_lt(grad, zero) : tensor_gt(grad, zero),
						  tensor_ne(result, none));
		tensor *size = tensor_where(sign, i ? tensor_neg(grad) : grad,
					    tensor_ones_like(grad, TENSOR_OPTIONS(0)));
		tensor *log = tensor_where(sign, tensor_sub(tensor_log(size), result), none);

		log = formula_flip(tensor_logcumsumexp(formula_flip(log, dim), dim), dim);
		sum[i] = tensor_exp(tensor_add(log, self));
	}
	return tensor_sub(sum[0], sum[1]);
}

tensor *gathered_backward(tensor *grad, tensor_ints sizes, tensor *indices, int64_t dim)
{
	tensor *zero = formula_zeros_for(grad, sizes);

	if (!sizes.len)
		return tensor_view(grad, sizes);
	return tensor_scatter_add(zero, dim, indices, grad);
}

tensor *cummax_backward(tensor *grad, tensor_ints sizes, tensor *indices, int64_t dim)
{
	return gathered_backward(grad, sizes, indices, dim);
}
