// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Formulas: scalars, reductions, softmax, lists. */
#include "autograd/formulas/formulas.h"

#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/ranges.h"
#include "family/reduce.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

int formula_check_out(const struct tensor_thread *th, const char *op, const char *name,
		      const tensor *t)
{
	if (likely(!th->modes.grad_enabled || !t || !needs_grad(t)))
		return 0;
	return tensor_fail(EINVAL,
			   "%s: out= records no gradient, but %s requires one; use the "
			   "functional form, or tensor_no_grad",
			   op, name);
}

tensor *formula_no_derivative(const char *op)
{
	return tensor_fail_null(EOPNOTSUPP, "%s: has no derivative", op);
}

tensor_scalar formula_scalar(double v)
{
	return tensor_scalar_float(v);
}

tensor *formula_scale(tensor *grad, tensor_scalar k)
{
	if (scalar_double(k) == 1 && !k.imag)
		return grad;
	return tensor_mul_scalar(grad, k);
}

tensor *formula_conj(tensor *t)
{
	return t && dtype_is_complex(t->dtype) ? tensor_conj_physical(t) : t;
}

tensor_scalar formula_conj_scalar(tensor_scalar s)
{
	s.imag = -s.imag;
	return s;
}

tensor *formula_adjoint(tensor *t)
{
	return formula_conj(tensor_transpose(t, -2, -1));
}

tensor *(*formula_vjp)(formula_composed fn, const void *ctx, tensor_list in, tensor *const *grads,
		       int n, int part);
int (*formula_vjp_all)(formula_composed fn, const void *ctx, tensor_list in, tensor *const *grads,
		       int n, tensor **out);

/* No other reference to t, its base or its memory exists. */
static bool is_alone(const tensor *t)
{
	const tensor *base = t->base;

	return atomic_load_explicit(&t->refs, memory_order_acquire) == REF_HOLDER &&
	       (base ? atomic_load_explicit(&base->refs, memory_order_acquire) == REF_VIEW :
		       t->owns_storage) &&
	       atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1;
}

/* An operator that writes to an argument computes what the function would. */
static bool is_plain(const tensor *t)
{
	return t && t != tensor_none && !t->ext && t->layout == TENSOR_STRIDED &&
	       t->device.type == TENSOR_CPU && !(t->keys & (BATCHED_BIT | FORWARD_BIT));
}

static bool may_overwrite(const tensor *t)
{
	const struct autograd_thread *at = thread()->autograd;

	return at && at->owned && is_plain(t) && !(t->keys & ~KEYS_BACKEND) && is_alone(t);
}

bool formula_may_overwrite(const tensor *grad, const tensor *other)
{
	return may_overwrite(grad) && grad->contiguous && is_plain(other) &&
	       other->dtype == grad->dtype;
}

/*
 * The sum of earlier gradients of mat2, to which a product can be added: it is transposed as the product is. NULL if there
 * is none.
 */
static tensor *sum_of_products(const tensor *mat1, const tensor *grad, unsigned edge)
{
	const struct autograd_thread *at = thread()->autograd;
	tensor *sum = at && at->owned ? at->owned->sum(at->owned, edge) : NULL;

	if (!sum || sum->ndim != 2 || sum->strides[0] != 1 || sum->strides[1] != sum->sizes[0] ||
	    sum->dtype != grad->dtype || sum->dtype != mat1->dtype || !dtype_is_float(sum->dtype) ||
	    !is_plain(grad) || !is_plain(mat1))
		return NULL;
	return may_overwrite(sum) ? sum : NULL;
}

tensor *mm_mat2_backward(tensor *mat1, tensor *grad, tensor_ints mat2_strides, tensor_scalar alpha,
			 unsigned edge)
{
	tensor *sum, *product;

	if (!mat1 || !grad)
		return NULL;
	alpha = formula_conj_scalar(alpha);
	if (mat2_strides.data[0] != 1 || mat2_strides.data[1] == 1)
		return formula_scale(tensor_mm(tensor_t(mat1), grad), alpha);
	sum = sum_of_products(mat1, grad, edge);
	if (sum) {
		if (!tensor_addmm_opt_(tensor_t(sum), tensor_t(grad), mat1, formula_scalar(1),
				       alpha))
			return NULL;
		((struct autograd_thread *)thread()->autograd)->owned->added = edge + 1;
		return sum;
	}
	product = tensor_mm(tensor_t(grad), mat1);
	return tensor_t(formula_scale(product, alpha));
}

tensor *formula_one_minus_twice(tensor *t)
{
	return tensor_add_scalar(tensor_mul_scalar(t, formula_scalar(-2)), formula_scalar(1));
}

tensor *formula_flip(tensor *t, int64_t dim)
{
	tensor *order;
	int64_t n;

	if (!t || !t->ndim)
		return t;
	n = t->sizes[dim < 0 ? dim + t->ndim : dim];
	order = tensor_arange_step(tensor_scalar_int(n - 1), tensor_scalar_int(-1),
				   tensor_scalar_int(-1),
				   TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = t->device));
	return tensor_index_select(t, dim, order);
}

bool formula_has_zero(tensor *t)
{
	bool found = true; /* also after an error, which the formula reports */

	if (t && t->keys & BATCHED_BIT)
		return true; /* unknown: the formula for any values */
	tensor_scope {
		tensor_no_grad {
			tensor *any =
				tensor_any(tensor_eq_scalar(tensor_detach(t), formula_scalar(0)));

			if (any)
				tensor_copy_to(any, &found, sizeof(found));
		}
	}
	return found;
}

tensor *formula_zeros_for(tensor *grad, tensor_ints sizes)
{
	if (grad && grad->keys & BATCHED_BIT)
		return tensor_new_zeros(grad, sizes, (tensor_options){ 0 });
	return grad ? tensor_zeros(sizes,
				   TENSOR_OPTIONS(.dtype = grad->dtype, .device = grad->device)) :
		      NULL;
}

double formula_dropout_scale(double p, int64_t train)
{
	if (!train)
		return 1;
	return p == 1 ? 0 : 1 / (1 - p);
}

/* Not a product with 0 and 1: NaN and infinity of the other branch would propagate. */
tensor *where_backward(tensor *grad, tensor *condition, bool keep)
{
	tensor *zero = formula_zeros_for(grad, TENSOR_SCALAR_SHAPE);

	return keep ? tensor_where(condition, grad, zero) : tensor_where(condition, zero, grad);
}

/* ---- reductions ---- */

/* Set bit d if dimension d is reduced. */
static uint32_t reduced(tensor_ints dim, int ndim)
{
	uint32_t mask = 0;

	if (dim.len <= 0 || !ndim)
		return ~0u;
	for (int64_t i = 0; i < dim.len; i++)
		mask |= 1u << (dim.data[i] < 0 ? dim.data[i] + ndim : dim.data[i]);
	return mask;
}

tensor *formula_sum_dim(tensor *t, int64_t dim)
{
	return tensor_sum_dim(t, TENSOR_INTS(dim), true);
}

tensor *sum_backward(tensor *grad, tensor_ints sizes, tensor_ints dim, bool keepdim)
{
	uint32_t mask = reduced(dim, (int)sizes.len);
	int64_t kept[TENSOR_MAX_DIMS];

	for (int64_t i = 0; i < sizes.len; i++)
		kept[i] = mask >> i & 1 ? 1 : sizes.data[i];
	if (!keepdim)
		grad = tensor_view(tensor_contiguous(grad), (tensor_ints){ kept, sizes.len });
	return tensor_expand(grad, sizes);
}

tensor *mean_backward(tensor *grad, tensor_ints sizes, tensor_ints dim, bool keepdim)
{
	uint32_t mask = reduced(dim, (int)sizes.len);
	double n = 1;

	for (int64_t i = 0; i < sizes.len; i++)
		n *= mask >> i & 1 ? (double)sizes.data[i] : 1;
	/* The quotient of no elements is unused, but its own derivative would be 0 / 0. */
	n = n > 0 ? n : 1;
	return sum_backward(tensor_div_scalar(grad, formula_scalar(n)), sizes, dim, keepdim);
}

/* Equal largest elements share the gradient. */
tensor *max_backward(tensor *grad, tensor *self, tensor *result)
{
	tensor *where = tensor_eq(self, result), *mask;
	double value = 0;

	/* NaN is the result if any element is NaN, but NaN does not compare equal to itself. */
	if (self->keys & BATCHED_BIT)
		where = tensor_logical_or(where, tensor_logical_and(tensor_isnan(self),
								    tensor_isnan(result)));
	else if (dtype_is_float(self->dtype) && tensor_item(result, &value) < 0)
		return NULL;
	else if (isnan(value))
		where = tensor_isnan(self);
	mask = tensor_to(where, TENSOR_OPTIONS(.dtype = self->dtype));
	return tensor_mul(mask, tensor_div(grad, tensor_sum(mask)));
}

tensor *max_dim_backward(tensor *grad, tensor_ints sizes, tensor *indices, int64_t dim,
			 bool keepdim)
{
	if (!keepdim && sizes.len) {
		grad = tensor_unsqueeze(grad, dim);
		indices = tensor_unsqueeze(indices, dim);
	}
	return tensor_scatter_add(formula_zeros_for(grad, sizes), dim, indices, grad);
}

/* ---- softmax ---- */

/* Derivative with respect to y of softmax_backward, y (g - sum(g y)). */
tensor *softmax_double_backward(tensor *grad, tensor *grad_output, tensor *output, int64_t dim)
{
	tensor *centred =
		tensor_sub(grad_output, formula_sum_dim(tensor_mul(grad_output, output), dim));

	return tensor_sub(tensor_mul(grad, centred),
			  tensor_mul(grad_output, formula_sum_dim(tensor_mul(grad, output), dim)));
}

/* Derivative with respect to g of log_softmax_backward, g - exp(o) sum(g). */
tensor *log_softmax_double_backward(tensor *grad, tensor *output, int64_t dim)
{
	return tensor_sub(grad, formula_sum_dim(tensor_mul(grad, tensor_exp(output)), dim));
}

/* ---- lists ---- */

/* A tensor of length 0 has no elements, so it gets no gradient. */
int cat_backward(tensor **out, tensor *grad, tensor_ints lengths, int64_t dim)
{
	int64_t at = 0;

	for (int64_t i = 0; i < lengths.len; i++) {
		out[i] = tensor_none;
		if (lengths.data[i])
			out[i] = tensor_narrow(grad, dim, at, lengths.data[i]);
		if (!out[i])
			return -1;
		at += lengths.data[i];
	}
	return 0;
}
