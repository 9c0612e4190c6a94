// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* nll_loss: rows of all samples are rows of one matrix, and each sample reduces its own. */
#include "batch/batch.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/loss.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/shape.h"
#include "family/ternary.h"
#include "family/view.h"

enum { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM };

/* self, target, weight at `first`; a sample is a vector with a target, or a matrix with a target for each row. */
static bool has_rows(const struct batch_call *c, int first)
{
	int ndim = arg_ndim(c, first);

	return !arg_batched(c, first + 2) && (ndim == 1 || ndim == 2) &&
	       arg_ndim(c, first + 1) == ndim - 1;
}

/* Makes self and target those of all rows. */
static int fold_rows(struct batch_call *c, int first)
{
	bool matrix = arg_ndim(c, first) == 2;

	for (int i = first; i < first + 2; i++) {
		tensor *t = batch_full(c, i);

		c->phys[i].t = matrix ? batch_fold(t) : t;
		if (!c->phys[i].t)
			return batch_failed();
	}
	return 0;
}

/* The weight of each row: that of its class, 0 for an ignored one. */
static tensor *row_weights(const struct batch_call *c, tensor *target, int64_t ignored)
{
	enum tensor_dtype dtype = c->phys[0].t->dtype;
	tensor *weight = arg_physical(c, 2),
	       *mask = tensor_ne_scalar(target, tensor_scalar_int(ignored));

	if (!weight)
		return tensor_to(mask, TENSOR_OPTIONS(.dtype = dtype));
	weight = tensor_index_select(weight, 0, tensor_mul(target, mask));
	return tensor_mul(weight, mask);
}

/* The sum over the rows of each sample. */
static tensor *sum_rows(const struct batch_call *c, tensor *t)
{
	return t && t->numel != c->size ?
		       tensor_sum_dim(batch_flatten(c, t), TENSOR_INTS(1), false) :
	       t ? tensor_reshape(t, TENSOR_INTS(c->size)) :
		   NULL;
}

int batch_rule_nll_loss_forward(struct batch_call *c)
{
	int64_t reduction = arg_int(c, 3);
	tensor *each, *total, *zero;

	if (!has_rows(c, 0))
		return batch_rule_loop(c);
	if (fold_rows(c, 0) < 0)
		return batch_failed();
	if (tensor_nll_loss_forward(c->phys[0].t, c->phys[1].t, or_none(arg_physical(c, 2)),
				    REDUCTION_NONE, arg_int(c, 4), &each, &zero) < 0)
		return batch_failed();
	if (reduction == REDUCTION_NONE && arg_ndim(c, 0) == 2)
		return batch_return(c, 0, batch_unfold(c, each)) ?:
			       batch_return(c, 1, batch_expand(c, zero));
	total = sum_rows(c, row_weights(c, c->phys[1].t, arg_int(c, 4)));
	each = sum_rows(c, each);
	if (reduction == REDUCTION_MEAN)
		each = tensor_div(each, total);
	return batch_return(c, 0, each) ?: batch_return(c, 1, total);
}

/* The gradient of each row's loss; arguments: grad_output, self, target, weight, reduction, ignored, total. */
static tensor *row_gradients(struct batch_call *c, int64_t rows)
{
	tensor *grad = batch_full(c, 0), *total = batch_full(c, 6);
	int64_t reduction = arg_int(c, 4);

	if (reduction == REDUCTION_MEAN)
		grad = tensor_div(grad, total);
	if (reduction != REDUCTION_NONE && grad)
		grad = tensor_expand(tensor_unsqueeze(grad, 1), TENSOR_INTS(c->size, rows));
	return tensor_reshape(grad, TENSOR_INTS(c->size * rows));
}

int batch_rule_nll_loss_backward(struct batch_call *c)
{
	const tensor *self = c->args[1].t;
	tensor *grad, *zero;

	if (!has_rows(c, 1))
		return batch_rule_loop(c);
	grad = row_gradients(c, self->ndim == 2 ? self->sizes[0] : 1);
	zero = tensor_zeros(TENSOR_SCALAR_SHAPE,
			    TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device));
	if (fold_rows(c, 1) < 0)
		return batch_failed();
	grad = tensor_nll_loss_backward(grad, c->phys[1].t, c->phys[2].t,
					or_none(arg_physical(c, 3)), REDUCTION_NONE, arg_int(c, 5),
					zero);
	return batch_return(c, 0, self->ndim == 2 ? batch_unfold(c, grad) : grad);
}
