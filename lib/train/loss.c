// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Losses with defaults. Most are operators; the others are formulas over operators. */
#include "base/error.h"
#include "core/tensor_impl.h"

#include <tensor/loss.h>
#include <tensor/ops.h>

enum { IGNORED = -100 }; /* PyTorch's default, no class */

static bool known(const char *op, enum tensor_reduction reduction)
{
	if (reduction == TENSOR_REDUCTION_NONE || reduction == TENSOR_REDUCTION_MEAN ||
	    reduction == TENSOR_REDUCTION_SUM)
		return true;
	tensor_fail(EINVAL, "%s: %d is no reduction", op, (int)reduction);
	return false;
}

/* An optional tensor. NULL if it is given and NULL: operators refuse that. */
static tensor *optional(tensor *const *t)
{
	return t ? *t : tensor_none;
}

static double or_default(double value, double otherwise)
{
	return value != 0 ? value : otherwise; /* NaN stays */
}

static tensor *reduced(tensor *loss, enum tensor_reduction reduction)
{
	return reduction == TENSOR_REDUCTION_MEAN ? tensor_mean(loss) :
	       reduction == TENSOR_REDUCTION_SUM  ? tensor_sum(loss) :
						    loss;
}

/* ---- operators ---- */

TENSOR_EXPORT tensor *tensor_loss_cross_entropy_opt(tensor *x, tensor *target,
						    enum tensor_reduction reduction,
						    struct tensor_loss_options o)
{
	return known("loss_cross_entropy", reduction) ?
		       tensor_cross_entropy_loss(x, target, optional(o.weight), reduction,
						 o.ignore ? o.ignore_index : IGNORED,
						 o.label_smoothing) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_nll_opt(tensor *x, tensor *target,
					  enum tensor_reduction reduction,
					  struct tensor_loss_options o)
{
	return known("loss_nll", reduction) ?
		       tensor_nll_loss_nd(x, target, optional(o.weight), reduction,
					  o.ignore ? o.ignore_index : IGNORED) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_mse_opt(tensor *x, tensor *target,
					  enum tensor_reduction reduction,
					  struct tensor_loss_options o)
{
	return known("loss_mse", reduction) ? tensor_mse_loss(x, target, reduction) : NULL;
}

TENSOR_EXPORT tensor *tensor_loss_l1_opt(tensor *x, tensor *target, enum tensor_reduction reduction,
					 struct tensor_loss_options o)
{
	return known("loss_l1", reduction) ? tensor_l1_loss(x, target, reduction) : NULL;
}

TENSOR_EXPORT tensor *tensor_loss_smooth_l1_opt(tensor *x, tensor *target,
						enum tensor_reduction reduction,
						struct tensor_loss_options o)
{
	return known("loss_smooth_l1", reduction) ?
		       tensor_smooth_l1_loss(x, target, reduction, or_default(o.beta, 1)) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_huber_opt(tensor *x, tensor *target,
					    enum tensor_reduction reduction,
					    struct tensor_loss_options o)
{
	return known("loss_huber", reduction) ?
		       tensor_huber_loss(x, target, reduction, or_default(o.delta, 1)) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_bce_opt(tensor *x, tensor *target,
					  enum tensor_reduction reduction,
					  struct tensor_loss_options o)
{
	return known("loss_bce", reduction) ?
		       tensor_binary_cross_entropy(x, target, optional(o.weight), reduction) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_bce_with_logits_opt(tensor *x, tensor *target,
						      enum tensor_reduction reduction,
						      struct tensor_loss_options o)
{
	return known("loss_bce_with_logits", reduction) ?
		       tensor_binary_cross_entropy_with_logits(x, target, optional(o.weight),
							       optional(o.pos_weight), reduction) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_hinge_embedding_opt(tensor *x, tensor *target,
						      enum tensor_reduction reduction,
						      struct tensor_loss_options o)
{
	return known("loss_hinge_embedding", reduction) ?
		       tensor_hinge_embedding_loss(x, target, or_default(o.margin, 1), reduction) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_soft_margin_opt(tensor *x, tensor *target,
						  enum tensor_reduction reduction,
						  struct tensor_loss_options o)
{
	return known("loss_soft_margin", reduction) ?
		       tensor_soft_margin_loss(x, target, reduction) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_margin_ranking_opt(tensor *x1, tensor *x2, tensor *target,
						     enum tensor_reduction reduction,
						     struct tensor_loss_options o)
{
	return known("loss_margin_ranking", reduction) ?
		       tensor_margin_ranking_loss(x1, x2, target, o.margin, reduction) :
		       NULL;
}

TENSOR_EXPORT tensor *tensor_loss_ctc_opt(tensor *log_probs, tensor *targets, tensor *input_lengths,
					  tensor *target_lengths, enum tensor_reduction reduction,
					  struct tensor_loss_options o)
{
	return known("loss_ctc", reduction) ?
		       tensor_ctc_loss_tensor(log_probs, targets, input_lengths, target_lengths,
					      o.blank, reduction, o.zero_infinity) :
		       NULL;
}

/* ---- formulas ---- */

static tensor *kl_div(tensor *x, tensor *target, enum tensor_reduction reduction,
		      const struct tensor_loss_options *o)
{
	const bool samples = reduction == TENSOR_REDUCTION_MEAN && o->batch_mean;
	tensor *loss = tensor_kl_div_opt(x, target, samples ? TENSOR_REDUCTION_SUM : reduction,
					 o->log_target);

	if (!loss || !samples)
		return loss;
	if (!tensor_dim(x))
		return tensor_fail_null(EINVAL, "loss_kl_div: .batch_mean needs a batch");
	return tensor_div_scalar(loss, tensor_scalar_int(tensor_size(x, 0)));
}

TENSOR_EXPORT tensor *tensor_loss_kl_div_opt(tensor *x, tensor *target,
					     enum tensor_reduction reduction,
					     struct tensor_loss_options o)
{
	struct tensor_scope_guard scope;

	if (!known("loss_kl_div", reduction))
		return NULL;
	scope = tensor_scope_enter();
	return scope_own(thread(), scope_leave_with(&scope, kl_div(x, target, reduction, &o)));
}

/* 1 - cos where target is 1, max(cos - margin, 0) where it is -1, else 0. PyTorch computes the cosine
 * with 1e-12 added to the squares. */
static tensor *cosine_embedding(tensor *x1, tensor *x2, tensor *target, double margin)
{
	const tensor_ints last = { (const int64_t[]){ -1 }, 1 };
	const tensor_scalar eps = tensor_scalar_float(1e-12);
	tensor *product, *s1, *s2, *cosine, *near, *far;

	product = tensor_sum_dim(tensor_mul(x1, x2), last, false);
	s1 = tensor_add_scalar(tensor_sum_dim(tensor_mul(x1, x1), last, false), eps);
	s2 = tensor_add_scalar(tensor_sum_dim(tensor_mul(x2, x2), last, false), eps);
	cosine = tensor_div(product, tensor_sqrt(tensor_mul(s1, s2)));
	near = tensor_neg(tensor_sub_scalar(cosine, tensor_scalar_int(1)));
	far = tensor_clamp_min(tensor_sub_scalar(cosine, tensor_scalar_float(margin)),
			       tensor_scalar_int(0));
	near = tensor_where_scalarother(tensor_eq_scalar(target, tensor_scalar_int(1)), near,
					tensor_scalar_int(0));
	far = tensor_where_scalarother(tensor_eq_scalar(target, tensor_scalar_int(-1)), far,
				       tensor_scalar_int(0));
	return tensor_add(near, far);
}

TENSOR_EXPORT tensor *tensor_loss_cosine_embedding_opt(tensor *x1, tensor *x2, tensor *target,
						       enum tensor_reduction reduction,
						       struct tensor_loss_options o)
{
	const char *op = "loss_cosine_embedding";
	struct tensor_scope_guard scope;
	tensor *loss;

	if (!known(op, reduction) || tensor_absent(op, x1) || tensor_absent(op, x2) ||
	    tensor_absent(op, target))
		return NULL;
	if (x1->ndim < 1 || x1->ndim > 2 || !sizes_equal(x1, x2) || target->ndim != x1->ndim - 1 ||
	    (target->ndim && target->sizes[0] != x1->sizes[0]))
		return tensor_fail_null(
			EINVAL, "%s: x1 and x2 must be [n, d] and target [n], got %s, %s, %s", op,
			SHAPE_STR(x1), SHAPE_STR(x2), SHAPE_STR(target));
	scope = tensor_scope_enter();
	loss = reduced(cosine_embedding(x1, x2, target, o.margin), reduction);
	return scope_own(thread(), scope_leave_with(&scope, loss));
}

static tensor *triplet(tensor *anchor, tensor *positive, tensor *negative,
		       const struct tensor_loss_options *o)
{
	const double p = or_default(o->p, 2), eps = or_default(o->eps, 1e-6);
	tensor *near = tensor_pairwise_distance(anchor, positive, p, eps, false);
	tensor *far = tensor_pairwise_distance(anchor, negative, p, eps, false);

	if (o->swap)
		far = tensor_minimum(far,
				     tensor_pairwise_distance(positive, negative, p, eps, false));
	near = tensor_add_scalar(tensor_sub(near, far),
				 tensor_scalar_float(or_default(o->margin, 1)));
	return tensor_clamp_min(near, tensor_scalar_int(0));
}

TENSOR_EXPORT tensor *tensor_loss_triplet_margin_opt(tensor *anchor, tensor *positive,
						     tensor *negative,
						     enum tensor_reduction reduction,
						     struct tensor_loss_options o)
{
	struct tensor_scope_guard scope;
	tensor *loss;

	if (!known("loss_triplet_margin", reduction))
		return NULL;
	scope = tensor_scope_enter();
	loss = reduced(triplet(anchor, positive, negative, &o), reduction);
	return scope_own(thread(), scope_leave_with(&scope, loss));
}
