// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* matmul, linear and other products of any rank, composed of mm, bmm, mv and dot. */
#include "ops/op.h"

#include "family/activation.h"
#include "family/copy.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/view.h"

/* ---- matmul ---- */

/* Sizes of t with the last `drop` replaced by `tail`. */
static tensor_ints shape_with(int64_t *sizes, const tensor *t, int drop, tensor_ints tail)
{
	int n = t->ndim - drop;

	memcpy(sizes, t->sizes, n * sizeof(*sizes));
	if (tail.len)
		memcpy(sizes + n, tail.data, tail.len * sizeof(*sizes));
	return (tensor_ints){ sizes, n + tail.len };
}

/* self [.., k] times one matrix or vector, as a single product of all rows. */
static tensor *rows_times(tensor *self, tensor *other)
{
	int64_t sizes[TENSOR_MAX_DIMS], k = self->sizes[self->ndim - 1], rows = 1;
	tensor_ints tail = { other->sizes + 1, other->ndim - 1 };
	tensor *flat;

	for (int i = 0; i < self->ndim - 1; i++)
		rows *= self->sizes[i];
	flat = tensor_reshape(self, TENSOR_INTS(rows, k));
	return tensor_view(other->ndim == 1 ? tensor_mv(flat, other) : tensor_mm(flat, other),
			   shape_with(sizes, self, 1, tail));
}

/* t as [count, r, c]: the last two dimensions stay, the others are expanded to `batch`. */
static tensor *as_batch(tensor *t, tensor_ints batch, int64_t count)
{
	int64_t sizes[TENSOR_MAX_DIMS], r = t->sizes[t->ndim - 2], c = t->sizes[t->ndim - 1];

	if (batch.len)
		memcpy(sizes, batch.data, batch.len * sizeof(*sizes));
	sizes[batch.len] = r;
	sizes[batch.len + 1] = c;
	return tensor_reshape(tensor_expand(t, (tensor_ints){ sizes, batch.len + 2 }),
			      TENSOR_INTS(count, r, c));
}

/* Product of operands with at least two dimensions. */
static tensor *batches_times(tensor *self, tensor *other)
{
	tensor a = *self, b = *other;
	int64_t sizes[TENSOR_MAX_DIMS], count = 1;
	int n;

	a.ndim -= 2;
	b.ndim -= 2;
	n = iter_broadcast_sizes("matmul", &a, &b, sizes);
	if (n < 0)
		return NULL;
	if (n + 2 > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "matmul: more than %d dimensions", TENSOR_MAX_DIMS);
	for (int i = 0; i < n; i++)
		count *= sizes[i];
	self = as_batch(self, (tensor_ints){ sizes, n }, count);
	other = as_batch(other, (tensor_ints){ sizes, n }, count);
	self = tensor_bmm(self, other);
	if (!self)
		return NULL;
	sizes[n] = self->sizes[1];
	sizes[n + 1] = self->sizes[2];
	return tensor_view(self, (tensor_ints){ sizes, n + 2 });
}

/*
 * A vector or matrix times [.., k, c]. Of reduced floats a single product, whose gradient is a sum over all matrices before
 * it is rounded.
 */
static tensor *times_batch(tensor *self, tensor *other)
{
	tensor *self_t, *other_t, *product;

	if (!dtype_is_reduced_float(self->dtype))
		return batches_times(self, other);
	self_t = tensor_t(self);
	other_t = tensor_transpose(other, -2, -1);
	product = self_t && other_t ? rows_times(other_t, self_t) : NULL;
	return tensor_contiguous(tensor_transpose(product, -2, -1));
}

static tensor *matmul(tensor *self, tensor *other)
{
	int a, b;

	if (!self || !other)
		return NULL;
	a = self->ndim;
	b = other->ndim;
	if (!a || !b)
		return tensor_fail_null(EINVAL,
					"matmul: both must have a dimension, got shapes %s "
					"and %s",
					SHAPE_STR(self), SHAPE_STR(other));
	if (self->sizes[a - 1] != other->sizes[b == 1 ? 0 : b - 2])
		return tensor_fail_null(EINVAL,
					"matmul: other must have %lld rows to match self %s, "
					"got %s",
					(long long)self->sizes[a - 1], SHAPE_STR(self),
					SHAPE_STR(other));
	if (a == 1 && b == 1)
		return tensor_dot(self, other);
	if (a == 2 && b == 2)
		return tensor_mm(self, other);
	if (a == 2 && b == 1)
		return tensor_mv(self, other);
	if (a == 1 && b == 2)
		return tensor_squeeze_dim(tensor_mm(tensor_unsqueeze(self, 0), other), 0);
	if (b <= 2)
		return rows_times(self, other);
	if (a == 2)
		return times_batch(self, other);
	if (a == 1) {
		self = tensor_unsqueeze(self, 0);
		return self ? tensor_squeeze_dim(times_batch(self, other), -2) : NULL;
	}
	return batches_times(self, other);
}

tensor *composite_matmul(tensor *self, tensor *other)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, matmul(self, other));
}

/* ---- linear ---- */

static tensor *linear(tensor *input, tensor *weight, tensor *bias)
{
	int64_t sizes[TENSOR_MAX_DIMS], rows = 1;
	tensor *t = tensor_t(weight), *flat;

	if (!bias || input->ndim < 2 || weight->ndim != 2 ||
	    (input->ndim > 2 && !input->contiguous)) {
		t = matmul(input, t);
		return bias ? tensor_add(t, bias) : t;
	}
	if (input->ndim == 2)
		return tensor_addmm(bias, input, t);
	for (int i = 0; i < input->ndim - 1; i++)
		rows *= input->sizes[i];
	flat = tensor_view(input, TENSOR_INTS(rows, input->sizes[input->ndim - 1]));
	return tensor_view(tensor_addmm(bias, flat, t),
			   shape_with(sizes, input, 1, TENSOR_INTS(weight->sizes[0])));
}

tensor *composite_linear(tensor *input, tensor *weight, tensor *bias)
{
	struct tensor_scope_guard guard;

	if (weight->ndim > 2 || !weight->ndim)
		return tensor_fail_null(EINVAL,
					"linear: weight must be a matrix or a vector, got "
					"shape %s",
					SHAPE_STR(weight));
	if (!input->ndim)
		return tensor_fail_null(EINVAL, "linear: input must have a dimension");
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, linear(input, weight, bias));
}

/* ---- linear and an activation ---- */

static tensor *activate(tensor *t, const char *activation)
{
	if (!strcmp(activation, "none"))
		return t;
	if (!strcmp(activation, "relu"))
		return tensor_relu(t);
	if (!strcmp(activation, "silu"))
		return tensor_silu(t);
	if (!strcmp(activation, "gelu"))
		return tensor_gelu(t);
	if (!strcmp(activation, "gelu_tanh"))
		return tensor_gelu_opt(t, "tanh");
	return tensor_fail_null(
		EINVAL,
		"linear_activation: activation must be none, relu, gelu, gelu_tanh or "
		"silu, got %s",
		QUOTED(activation));
}

/* The activation's derivative needs the value before it: a recorded call writes that, and then reads it. */
static bool may_fuse(const tensor *input, const tensor *weight, const tensor *bias)
{
	const uint32_t plain = KEY_BIT(TENSOR_KEY_CPU) | KEY_BIT(TENSOR_KEY_CUDA) | AUTOGRAD_BIT;

	return bias && input->ndim >= 2 && weight->ndim == 2 &&
	       (input->ndim == 2 || input->contiguous) &&
	       !((input->keys | weight->keys | bias->keys) & ~plain) && !input->ext &&
	       !weight->ext && !bias->ext && !operand_is_recorded(input) &&
	       !operand_is_recorded(weight) && !operand_is_recorded(bias);
}

static tensor *linear_activation(tensor *input, tensor *weight, tensor *bias,
				 const char *activation)
{
	int64_t sizes[TENSOR_MAX_DIMS], rows = 1;
	tensor *t;

	if (!strcmp(activation, "none") || !may_fuse(input, weight, bias))
		return activate(tensor_linear(input, weight, bias ? bias : tensor_none),
				activation);
	t = tensor_t(weight);
	if (input->ndim == 2)
		return tensor__addmm_pointwise(bias, input, t, activation);
	for (int i = 0; i < input->ndim - 1; i++)
		rows *= input->sizes[i];
	t = tensor__addmm_pointwise(
		bias, tensor_view(input, TENSOR_INTS(rows, input->sizes[input->ndim - 1])), t,
		activation);
	return tensor_view(t, shape_with(sizes, input, 1, TENSOR_INTS(weight->sizes[0])));
}

tensor *composite_linear_activation(tensor *input, tensor *weight, tensor *bias,
				    const char *activation)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, linear_activation(input, weight, bias, activation));
}

/* ---- outer, addr, addbmm ---- */

static tensor *outer(const char *op, tensor *self, tensor *vec2)
{
	if (self->ndim != 1 || vec2->ndim != 1)
		return tensor_fail_null(EINVAL, "%s: two vectors are needed, got shapes %s and %s",
					op, SHAPE_STR(self), SHAPE_STR(vec2));
	return tensor_mul(tensor_unsqueeze(self, 1), vec2);
}

tensor *composite_outer(tensor *self, tensor *vec2)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, outer("outer", self, vec2));
}

static bool scalar_is(tensor_scalar s, double v)
{
	return scalar_double(s) == v && s.imag == 0;
}

static tensor *scaled(tensor *t, tensor_scalar k)
{
	return scalar_is(k, 1) ? t : tensor_mul_scalar(t, k);
}

/* beta * self + product, in the shape of the product. self is not read if beta is 0. */
static tensor *plus_self(const char *op, tensor *self, tensor *product, tensor_scalar beta)
{
	if (!product)
		return NULL;
	if (!iter_broadcasts_to(self, product->sizes, product->ndim))
		return tensor_fail_null(EINVAL,
					"%s: self %s does not broadcast to the product's "
					"shape %s",
					op, SHAPE_STR(self), SHAPE_STR(product));
	return scalar_is(beta, 0) ? product : tensor_add(scaled(self, beta), product);
}

/* Check that the factor does not change the dtype: a bool for bools, no fraction for integers. */
static int addr_factor(const char *name, enum tensor_dtype dtype, tensor_scalar *s)
{
	if (dtype_is_integral(dtype) && s->kind >= TENSOR_SCALAR_FLOAT)
		return tensor_fail(EINVAL, "addr: %s must be an integer for dtype %s", name,
				   tensor_dtype_name(dtype));
	if (dtype == TENSOR_BOOL)
		*s = (tensor_scalar){ .kind = TENSOR_SCALAR_BOOL, .i = s->i != 0 };
	return 0;
}

/* Reduced floats use a product of matrices, because its gradients are products, which are rounded once. */
static tensor *addr_product(tensor *vec1, tensor *vec2, tensor_scalar beta)
{
	if (dtype_is_reduced_float(vec1->dtype) && vec1->dtype == vec2->dtype && vec1->ndim == 1 &&
	    vec2->ndim == 1 && !scalar_is(beta, 0) && !(thread()->modes.include & AUTOCAST_BIT))
		return tensor_mm(tensor_unsqueeze(vec1, 1), tensor_unsqueeze(vec2, 0));
	return outer("addr", vec1, vec2);
}

tensor *composite_addr(tensor *self, tensor *vec1, tensor *vec2, tensor_scalar beta,
		       tensor_scalar alpha)
{
	enum tensor_dtype dtype = tensor_promote_types(self->dtype, vec1->dtype);
	struct tensor_scope_guard guard;

	if (dtype)
		dtype = tensor_promote_types(dtype, vec2->dtype);
	if (!dtype || addr_factor("beta", dtype, &beta) < 0 ||
	    addr_factor("alpha", dtype, &alpha) < 0)
		return NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard,
				plus_self("addr", self,
					  scaled(addr_product(vec1, vec2, beta), alpha), beta));
}

/* The sum of the products is one product whose inner dimension joins theirs. */
tensor *composite_addbmm(tensor *self, tensor *batch1, tensor *batch2, tensor_scalar beta,
			 tensor_scalar alpha)
{
	struct tensor_scope_guard guard;
	tensor *a, *b;
	int64_t k;

	if (batch1->ndim != 3 || batch2->ndim != 3 || batch1->sizes[0] != batch2->sizes[0] ||
	    batch1->sizes[2] != batch2->sizes[1])
		return tensor_fail_null(EINVAL,
					"addbmm: batch1 [b, m, k] and batch2 [b, k, n] are "
					"needed, got %s and %s",
					SHAPE_STR(batch1), SHAPE_STR(batch2));
	guard = tensor_scope_enter();
	k = batch1->sizes[0] * batch1->sizes[2];
	a = tensor_reshape(tensor_transpose(batch1, 0, 1), TENSOR_INTS(batch1->sizes[1], k));
	b = tensor_reshape(batch2, TENSOR_INTS(k, batch2->sizes[2]));
	return scope_leave_with(&guard, tensor_addmm_opt(self, a, b, beta, alpha));
}
