// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Losses of pairs of tensors, composed of elementwise operators and a reduction; those that depend
 * on the distance alone have a kernel for contiguous tensors of one shape. Reduced float dtypes are
 * computed in f32 and rounded once at the end. */
#include "ops/op.h"

#include "kernels/abi/pair_loss.h"

#include "family/activation.h"
#include "family/binary.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/pointwise.h"
#include "family/pointwise_loss.h"
#include "family/reduce.h"
#include "family/reinterpret.h"
#include "family/ternary.h"
#include "family/unary.h"

#include <math.h>

#define SCALAR(v) tensor_scalar_float(v)

static tensor *as_dtype(tensor *t, enum tensor_dtype dtype)
{
	return tensor_to(t, TENSOR_OPTIONS(.dtype = dtype));
}

static tensor *reduce(const char *op, tensor *loss, int64_t reduction)
{
	switch (reduction) {
	case LOSS_NONE:
		return loss;
	case LOSS_MEAN:
		return tensor_mean(loss);
	case LOSS_SUM:
		return tensor_sum(loss);
	default:
		return tensor_fail_null(EINVAL,
					"%s: reduction must be 0 (none), 1 (mean) or 2 (sum), "
					"got %lld",
					op, (long long)reduction);
	}
}

/* The operands with their promoted dtype and the dtype to compute in. */
struct pair {
	tensor *x, *y;
	enum tensor_dtype dtype, wide;
};

static struct pair widened(tensor *self, tensor *target)
{
	struct pair p = { .dtype = tensor_result_type(self, target) };

	p.wide = dtype_wide(p.dtype);
	p.x = as_dtype(self, p.wide);
	p.y = as_dtype(target, p.wide);
	return p;
}

/* Whether the kernels compute the pairs. */
static bool has_kernel(const struct pair *p, const struct tensor_kernel_table *kernels)
{
	const tensor *x = p->x, *y = p->y;

	return x && y && sizes_equal(x, y) && (p->wide == TENSOR_F32 || p->wide == TENSOR_F64) &&
	       x->contiguous && y->contiguous && backend_key(x) == backend_key(y) &&
	       kernels->fn[backend_key(x)];
}

/* Whether an operator on t has no other function than that of a backend. */
static bool is_plain(const tensor *t)
{
	return !(t->keys & ~thread()->modes.exclude & ~KEYS_DENSE);
}

/* The loss of the pairs, or NULL without an error if the kernel does not compute it. */
static tensor *pair_loss(const struct pair *p, const struct pair_loss *loss, int64_t reduction)
{
	pair_loss_kernel fn;
	tensor *out;

	if (reduction < LOSS_NONE || reduction > LOSS_SUM || !has_kernel(p, &kernels_pair_loss))
		return NULL;
	fn = (pair_loss_kernel)kernels_pair_loss.fn[backend_key(p->x)];
	out = tensor_scope_add(tensor_new(p->x->device, p->wide, p->x->sizes,
					  reduction == LOSS_NONE ? p->x->ndim : 0));
	return out && fn(out, p->x, p->y, loss, (enum loss_reduction)reduction) < 0 ? NULL : out;
}

/* The same outside of graphs and batches, for losses that are differentiated as composed. */
static tensor *plain_pair_loss(const struct pair *p, const struct pair_loss *loss,
			       int64_t reduction)
{
	return p->x && p->y && is_plain(p->x) && is_plain(p->y) ? pair_loss(p, loss, reduction) :
								  NULL;
}

/* The gradient of a loss likewise, outside of graphs of second derivatives. */
static tensor *plain_pair_backward(const struct pair *p, const struct pair_loss *loss,
				   tensor *grad_output, int64_t reduction)
{
	tensor *g = as_dtype(grad_output, p->wide), *out;
	pair_loss_backward_kernel fn;

	if (!g || !has_kernel(p, &kernels_pair_loss_backward) || !is_plain(p->x) ||
	    !is_plain(p->y) || !is_plain(g) || backend_key(g) != backend_key(p->x) ||
	    (g->ndim && !sizes_equal(g, p->x)) || !g->contiguous)
		return NULL;
	fn = (pair_loss_backward_kernel)kernels_pair_loss_backward.fn[backend_key(g)];
	out = tensor_scope_add(tensor_new(p->x->device, p->wide, p->x->sizes, p->x->ndim));
	return out && fn(out, g, p->x, p->y, loss,
			 reduction == LOSS_MEAN ? 1 / (double)p->x->numel : 1) < 0 ?
		       NULL :
		       out;
}

/* Leave the scope with a result in the promoted dtype. */
static tensor *leave_with(struct tensor_scope_guard *guard, const struct pair *p, tensor *loss)
{
	return scope_leave_with(guard, loss ? as_dtype(loss, p->dtype) : NULL);
}

/* self - target in the wider dtype. */
static tensor *difference(struct pair *p, tensor *self, tensor *target)
{
	*p = widened(self, target);
	return tensor_sub(p->x, p->y);
}

/* Leave the scope with the loss in the promoted dtype. */
static tensor *finish_loss(struct tensor_scope_guard *guard, const char *op, const struct pair *p,
			   tensor *loss, int64_t reduction)
{
	return leave_with(guard, p, reduce(op, loss, reduction));
}

/* grad_output * derivative, divided by the number of elements for a mean reduction. */
static tensor *finish_backward(struct tensor_scope_guard *guard, const struct pair *p,
			       tensor *derivative, tensor *grad_output, int64_t reduction)
{
	if (derivative && reduction == LOSS_MEAN)
		derivative = tensor_div_scalar(derivative, SCALAR((double)derivative->numel));
	derivative = tensor_mul(derivative, as_dtype(grad_output, p->wide));
	return leave_with(guard, p, derivative);
}

/* ---- mse, l1 ---- */

static const struct pair_loss squared = { .edge = INFINITY, .square = 1 };

tensor *composite_mse_loss(tensor *self, tensor *target, int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);
	tensor *d, *loss = plain_pair_loss(&p, &squared, reduction);

	if (loss)
		return leave_with(&guard, &p, loss);
	d = tensor_sub(p.x, p.y);
	return finish_loss(&guard, "mse_loss", &p, tensor_mul(d, d), reduction);
}

tensor *composite_mse_loss_backward(tensor *grad_output, tensor *self, tensor *target,
				    int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);
	tensor *result = plain_pair_backward(&p, &squared, grad_output, reduction);

	if (result)
		return leave_with(&guard, &p, result);
	return finish_backward(&guard, &p, tensor_mul_scalar(tensor_sub(p.x, p.y), SCALAR(2)),
			       grad_output, reduction);
}

tensor *composite_l1_loss(tensor *self, tensor *target, int64_t reduction)
{
	const struct pair_loss straight = { .edge = 0, .slope = 1 };
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);
	tensor *loss = plain_pair_loss(&p, &straight, reduction);

	p.dtype = dtype_real(p.dtype);
	if (loss)
		return leave_with(&guard, &p, loss);
	return finish_loss(&guard, "l1_loss", &p, tensor_abs(tensor_sub(p.x, p.y)), reduction);
}

/* ---- smooth l1, huber ---- */

/* The loss of struct pair_loss, or |d| if edge is 0. */
static tensor *bent(const struct pair *p, const struct pair_loss *loss)
{
	tensor *d = tensor_sub(p->x, p->y), *a = tensor_abs(d), *line, *square;

	if (loss->edge == 0)
		return a;
	line = tensor_sub_scalar(a, SCALAR(loss->edge / 2));
	square = tensor_mul_scalar(tensor_mul(d, d), SCALAR(loss->square));
	return tensor_where(tensor_lt_scalar(a, SCALAR(loss->edge)), square,
			    tensor_mul_scalar(line, SCALAR(loss->slope)));
}

/* These have derivatives of their own, so that the kernel also serves tensors of a graph. */
static tensor *bent_loss(const char *op, tensor *self, tensor *target, const struct pair_loss *loss,
			 int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);
	tensor *result = pair_loss(&p, loss, reduction);

	return result ? leave_with(&guard, &p, result) :
			finish_loss(&guard, op, &p, bent(&p, loss), reduction);
}

static struct pair_loss smooth_l1(double beta)
{
	return (struct pair_loss){ beta, beta == 0 ? 0 : 1 / beta / 2, 1 };
}

static struct pair_loss huber(double delta)
{
	return (struct pair_loss){ delta, 0.5, delta };
}

tensor *explicit_smooth_l1_loss(tensor *self, tensor *target, int64_t reduction, double beta)
{
	struct pair_loss loss = smooth_l1(beta);

	if (beta < 0)
		return tensor_fail_null(EINVAL, "smooth_l1_loss: beta must not be negative, got %g",
					beta);
	return bent_loss("smooth_l1_loss", self, target, &loss, reduction);
}

static tensor *clamped(tensor *t, double bound)
{
	return tensor_clamp(t, SCALAR(-bound), SCALAR(bound));
}

/* The gradient of bent() for complex numbers, times grad_output: its square is that of d, not |d|. */
static tensor *complex_backward(struct tensor_scope_guard *guard, const struct pair *p,
				const struct pair_loss *loss, tensor *grad_output,
				int64_t reduction)
{
	tensor *d = tensor_sub(p->x, p->y), *g = as_dtype(grad_output, p->wide), *near, *far;

	if (g && d && reduction == LOSS_MEAN)
		g = tensor_div_scalar(g, SCALAR((double)d->numel));
	near = tensor_mul(tensor_mul_scalar(tensor_conj_physical(d), SCALAR(2 * loss->square)), g);
	far = tensor_mul(tensor_mul_scalar(tensor_sgn(d), SCALAR(loss->slope)), tensor_real(g));
	return leave_with(guard, p,
			  tensor_where(tensor_lt_scalar(tensor_abs(d), SCALAR(loss->edge)), near,
				       far));
}

tensor *composite_smooth_l1_loss_backward(tensor *grad_output, tensor *self, tensor *target,
					  int64_t reduction, double beta)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair_loss loss = smooth_l1(beta);
	struct pair p = widened(self, target);
	tensor *d;

	if (dtype_is_complex(p.dtype))
		return complex_backward(&guard, &p, &loss, grad_output, reduction);
	p.dtype = self->dtype;
	d = plain_pair_backward(&p, &loss, grad_output, reduction);
	if (d)
		return leave_with(&guard, &p, d);
	d = tensor_sub(p.x, p.y);
	d = beta == 0 ? tensor_sign(d) : clamped(tensor_div_scalar(d, SCALAR(beta)), 1);
	return finish_backward(&guard, &p, d, grad_output, reduction);
}

tensor *explicit_huber_loss(tensor *self, tensor *target, int64_t reduction, double delta)
{
	struct pair_loss loss = huber(delta);

	if (!(delta > 0))
		return tensor_fail_null(EINVAL, "huber_loss: delta must be positive, got %g",
					delta);
	return bent_loss("huber_loss", self, target, &loss, reduction);
}

tensor *composite_huber_loss_backward(tensor *grad_output, tensor *self, tensor *target,
				      int64_t reduction, double delta)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair_loss loss = huber(delta);
	struct pair p = widened(self, target);
	tensor *result;

	if (dtype_is_complex(p.dtype))
		return complex_backward(&guard, &p, &loss, grad_output, reduction);
	result = plain_pair_backward(&p, &loss, grad_output, reduction);
	if (result)
		return leave_with(&guard, &p, result);
	return finish_backward(&guard, &p, clamped(tensor_sub(p.x, p.y), delta), grad_output,
			       reduction);
}

static int within_one(tensor *self)
{
	int64_t inside = 1;
	tensor *t;

	/* The values of a batched tensor are not known: outside of the range the result is NaN. */
	if (!self->numel || self->keys & BATCHED_BIT)
		return 0;
	t = tensor_all(
		tensor_mul(tensor_ge_scalar(self, SCALAR(0)), tensor_le_scalar(self, SCALAR(1))));
	if (!t || tensor_item_int(t, &inside) < 0)
		return error_code();
	return inside ? 0 :
			tensor_fail(EINVAL, "binary_cross_entropy: self must lie within 0 and 1");
}

static tensor *weighted(tensor *loss, tensor *weight, enum tensor_dtype wide)
{
	return weight ? tensor_mul(loss, as_dtype(weight, wide)) : loss;
}

static tensor *bce(struct pair *p, tensor *self, tensor *target, tensor *weight)
{
	tensor *zero, *one;

	*p = widened(self, target);
	if (!p->x || !p->y || within_one(p->x) < 0)
		return NULL;
	/* (y - 1) log(1 - x) - y log(x) */
	zero = tensor_clamp_min(tensor_log1p(tensor_neg(p->x)), SCALAR(-100));
	one = tensor_clamp_min(tensor_log(p->x), SCALAR(-100));
	return weighted(tensor_sub(tensor_mul(tensor_sub_scalar(p->y, SCALAR(1)), zero),
				   tensor_mul(p->y, one)),
			weight, p->wide);
}

tensor *explicit_binary_cross_entropy(tensor *self, tensor *target, tensor *weight,
				      int64_t reduction)
{
	struct tensor_scope_guard guard;
	struct pair p;

	if (!sizes_equal(self, target))
		return tensor_fail_null(EINVAL,
					"binary_cross_entropy: target must have self's shape %s, "
					"got %s",
					SHAPE_STR(self), SHAPE_STR(target));
	guard = tensor_scope_enter();
	return finish_loss(&guard, "binary_cross_entropy", &p, bce(&p, self, target, weight),
			   reduction);
}

tensor *composite_binary_cross_entropy_backward(tensor *grad_output, tensor *self, tensor *target,
						tensor *weight, int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);
	tensor *slope = tensor_mul(tensor_sub_scalar(tensor_neg(p.x), SCALAR(-1)), p.x);

	slope = tensor_div(tensor_sub(p.x, p.y), tensor_clamp_min(slope, SCALAR(1e-12)));
	return finish_backward(&guard, &p, weighted(slope, weight, p.wide), grad_output, reduction);
}

/* (1 - y) x + w (log(1 + exp(-|x|)) + max(-x, 0)) where w is 1, or 1 + (pos_weight - 1) y with
 * pos_weight */
tensor *composite_binary_cross_entropy_with_logits(tensor *self, tensor *target, tensor *weight,
						   tensor *pos_weight, int64_t reduction)
{
	struct tensor_scope_guard guard;
	tensor *loss, *log_one;
	struct pair p;

	if (!sizes_equal(self, target))
		return tensor_fail_null(EINVAL,
					"binary_cross_entropy_with_logits: target must have "
					"self's shape %s, got %s",
					SHAPE_STR(self), SHAPE_STR(target));
	guard = tensor_scope_enter();
	p = widened(self, target);
	log_one = tensor_log_sigmoid(p.x);
	if (pos_weight)
		log_one = tensor_mul(
			log_one,
			tensor_add_scalar(tensor_mul(tensor_sub_scalar(as_dtype(pos_weight, p.wide),
								       SCALAR(1)),
						     p.y),
					  SCALAR(1)));
	loss = tensor_sub(tensor_mul(tensor_rsub_scalar(p.y, SCALAR(1), SCALAR(1)), p.x), log_one);
	return finish_loss(&guard, "binary_cross_entropy_with_logits", &p,
			   weighted(loss, weight, p.wide), reduction);
}

/* ---- other losses ---- */

/* y log(y), with 0 log(0) = 0 */
static tensor *times_log(tensor *y)
{
	tensor *one = tensor_full(TENSOR_SCALAR_SHAPE, SCALAR(1),
				  TENSOR_OPTIONS(.dtype = y ? y->dtype : TENSOR_F32));

	return tensor_mul(y, tensor_log(tensor_where(tensor_eq_scalar(y, SCALAR(0)), one, y)));
}

tensor *composite_kl_div(tensor *self, tensor *target, int64_t reduction, bool log_target)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);
	tensor *loss = log_target ? tensor_mul(tensor_exp(p.y), tensor_sub(p.y, p.x)) :
				    tensor_sub(times_log(p.y), tensor_mul(p.y, p.x));

	return finish_loss(&guard, "kl_div", &p, loss, reduction);
}

tensor *composite_soft_margin_loss(tensor *self, tensor *target, int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(self, target);

	return finish_loss(&guard, "soft_margin_loss", &p,
			   tensor_log1p(tensor_exp(tensor_neg(tensor_mul(p.x, p.y)))), reduction);
}

tensor *composite_hinge_embedding_loss(tensor *self, tensor *target, double margin,
				       int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = { .dtype = self->dtype, .wide = dtype_wide(self->dtype) };
	tensor *x = as_dtype(self, p.wide), *zero = tensor_zeros_like(x, TENSOR_OPTIONS(0)), *far;

	far = tensor_clamp_min(tensor_sub_scalar(tensor_neg(x), SCALAR(-margin)), SCALAR(0));
	far = tensor_where(tensor_ne_scalar(target, SCALAR(1)), far, zero);
	x = tensor_where(tensor_ne_scalar(target, SCALAR(-1)), x, zero);
	return finish_loss(&guard, "hinge_embedding_loss", &p, tensor_add(far, x), reduction);
}

tensor *composite_margin_ranking_loss(tensor *input1, tensor *input2, tensor *target, double margin,
				      int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p;
	tensor *d = difference(&p, input1, input2);

	d = tensor_mul(tensor_neg(as_dtype(target, p.wide)), d);
	if (dtype_is_integral(p.dtype)) /* margin is a floating-point number */
		p.dtype = TENSOR_F32;
	return finish_loss(&guard, "margin_ranking_loss", &p,
			   tensor_clamp_min(tensor_add_scalar(d, SCALAR(margin)), SCALAR(0)),
			   reduction);
}

/* The terms of Stirling's approximation are added only if `full`. */
tensor *composite_poisson_nll_loss(tensor *input, tensor *target, bool log_input, bool full,
				   double eps, int64_t reduction)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	struct pair p = widened(input, target);
	tensor *loss, *stirling;

	if (log_input)
		loss = tensor_sub(tensor_exp(p.x), tensor_mul(p.y, p.x));
	else
		loss = tensor_sub(p.x,
				  tensor_mul(p.y, tensor_log(tensor_add_scalar(p.x, SCALAR(eps)))));
	if (full) {
		stirling = tensor_sub(tensor_mul(p.y, tensor_log(p.y)), p.y);
		stirling = tensor_add(stirling,
				      tensor_mul_scalar(tensor_log(tensor_mul_scalar(
								p.y, SCALAR(6.283185307179586))),
							SCALAR(0.5)));
		loss = tensor_add(loss,
				  tensor_where(tensor_gt_scalar(p.y, SCALAR(1)), stirling,
					       tensor_zeros_like(stirling, TENSOR_OPTIONS(0))));
	}
	if (dtype_is_integral(p.dtype)) /* exponentials and logarithms are not integers */
		p.dtype = TENSOR_F32;
	return finish_loss(&guard, "poisson_nll_loss", &p, loss, reduction);
}
