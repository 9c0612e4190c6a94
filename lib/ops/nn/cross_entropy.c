// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* nll_loss and cross_entropy of any rank. Classes are dimension 1, or 0 for a single sample; the
 * kernel of nll_loss takes [rows, classes]. */
#include "ops/op.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/loss.h"
#include "family/pointwise.h"
#include "family/pointwise_loss.h"
#include "family/reduce.h"
#include "family/ternary.h"
#include "family/view.h"

static int class_dim(const tensor *self)
{
	return self->ndim > 1 ? 1 : 0;
}

/* ---- nll_loss ---- */

static int check_shapes(const char *op, const tensor *self, const tensor *target)
{
	bool fits = self->ndim >= 1 && target->ndim == (self->ndim > 1 ? self->ndim - 1 : 0);

	for (int i = 0; fits && i < target->ndim; i++)
		fits = target->sizes[i] == self->sizes[i ? i + 1 : 0];
	if (fits)
		return 0;
	return tensor_fail(EINVAL,
			   "%s: self [n, c, ...] and target [n, ...] are needed, got shapes %s "
			   "and %s",
			   op, SHAPE_STR(self), SHAPE_STR(target));
}

/* Reshape self from [n, c, ...] to [rows, c] and target to [rows] of i64. */
static int as_rows(tensor **self, tensor **target)
{
	int64_t dims[TENSOR_MAX_DIMS], c = (*self)->sizes[1], rows = (*target)->numel;
	int n = (*self)->ndim;

	for (int i = 0; i < n; i++)
		dims[i] = !i ? 0 : i == n - 1 ? 1 : i + 1;
	*self = tensor_reshape(tensor_permute(*self, (tensor_ints){ dims, n }),
			       TENSOR_INTS(rows, c));
	*target = tensor_reshape(*target, TENSOR_INTS(rows));
	return *self && *target ? 0 : error_code();
}

static int nll_forward(const char *op, tensor *self, tensor *target, tensor *weight,
		       int64_t reduction, int64_t ignore_index, tensor **output,
		       tensor **total_weight)
{
	tensor_ints shape = { target->sizes, target->ndim };

	if (self->ndim > 2 && check_shapes(op, self, target) < 0)
		return error_code();
	if (target->dtype == TENSOR_U8)
		target = tensor_to(target, TENSOR_OPTIONS(.dtype = TENSOR_I64));
	if (!target || (self->ndim > 2 && as_rows(&self, &target) < 0))
		return error_code();
	if (tensor_nll_loss_forward(self, target, weight ? weight : tensor_none, reduction,
				    ignore_index, output, total_weight) < 0)
		return error_code();
	if (reduction == LOSS_NONE && shape.len > 1)
		*output = tensor_reshape(*output, shape);
	return *output ? 0 : error_code();
}

static tensor *nll_loss(const char *op, tensor *self, tensor *target, tensor *weight,
			int64_t reduction, int64_t ignore_index)
{
	tensor *output, *total_weight;

	return nll_forward(op, self, target, weight, reduction, ignore_index, &output,
			   &total_weight) < 0 ?
		       NULL :
		       output;
}

tensor *composite_nll_loss(tensor *self, tensor *target, tensor *weight, int64_t reduction,
			   int64_t ignore_index)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, nll_loss("nll_loss", self, target, weight, reduction,
						 ignore_index));
}

int composite_nll_loss2d_forward(tensor *self, tensor *target, tensor *weight, int64_t reduction,
				 int64_t ignore_index, tensor **output, tensor **total_weight)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int err = nll_forward("nll_loss2d_forward", self, target, weight, reduction, ignore_index,
			      output, total_weight);

	if (!err) {
		tensor_get(*output);
		tensor_get(*total_weight);
	} else {
		*output = *total_weight = NULL;
	}
	scope_leave(&guard);
	return err;
}

/* ---- cross_entropy ---- */

/* Reshape weight [c] so that it broadcasts against self's class dimension. */
static tensor *beside_classes(tensor *weight, const tensor *self)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	for (int i = 0; i < self->ndim; i++)
		sizes[i] = i == class_dim(self) ? weight->numel : 1;
	return tensor_reshape(weight, (tensor_ints){ sizes, self->ndim });
}

static tensor *sum_classes(tensor *t)
{
	return t ? tensor_neg(tensor_sum_dim(t, TENSOR_INTS(class_dim(t)), false)) : NULL;
}

static tensor *scale_loss(tensor *t, double k)
{
	return tensor_mul_scalar(t, tensor_scalar_float(k));
}

/* Loss for a target of class probabilities. */
static tensor *of_probabilities(tensor *logs, tensor *target, tensor *weight, int64_t reduction,
				double smoothing)
{
	int64_t classes = logs->sizes[class_dim(logs)];
	tensor *loss;

	target = tensor_to(target, TENSOR_OPTIONS(.dtype = logs->dtype));
	if (smoothing > 0)
		target = tensor_add_scalar(scale_loss(target, 1 - smoothing),
					   tensor_scalar_float(smoothing / (double)classes));
	loss = tensor_mul(logs, target);
	if (weight)
		loss = tensor_mul(loss, beside_classes(weight, logs));
	if (reduction == LOSS_NONE)
		return sum_classes(loss);
	loss = tensor_neg(tensor_sum(loss));
	if (reduction == LOSS_MEAN)
		loss = tensor_div_scalar(
			loss, tensor_scalar_float((double)logs->numel / (double)classes));
	return loss;
}

/* The uniform term of label smoothing, summed over the targets that are not ignored. */
static tensor *smoothed(tensor *logs, tensor *target, tensor *weight, int64_t reduction,
			int64_t ignore_index)
{
	tensor *counted = tensor_ne_scalar(target, tensor_scalar_int(ignore_index)), *number;
	tensor *zero = tensor_zeros(TENSOR_SCALAR_SHAPE, TENSOR_OPTIONS(.dtype = logs->dtype));
	tensor *loss, *first;

	loss = sum_classes(weight ? tensor_mul(logs, beside_classes(weight, logs)) : logs);
	loss = tensor_where(counted, loss, zero);
	if (reduction == LOSS_NONE)
		return loss;
	loss = tensor_sum(loss);
	if (reduction == LOSS_SUM)
		return loss;
	number = tensor_to(counted, TENSOR_OPTIONS(.dtype = logs->dtype));
	if (weight) {
		first = tensor_zeros(TENSOR_SCALAR_SHAPE, TENSOR_OPTIONS(.dtype = TENSOR_I64));
		first = tensor_reshape(tensor_where(counted, target, first), TENSOR_INTS(-1));
		number = tensor_mul(tensor_index_select(weight, 0, first),
				    tensor_reshape(number, TENSOR_INTS(-1)));
	}
	return tensor_div(loss, tensor_sum(number));
}

static tensor *cross_entropy(tensor *self, tensor *target, tensor *weight, int64_t reduction,
			     int64_t ignore_index, double smoothing)
{
	enum tensor_dtype dtype = self->dtype;
	tensor *logs, *loss;

	if (!self->ndim || !dtype_is_float(dtype))
		return tensor_fail_null(EINVAL,
					"cross_entropy: self must be floating and have a dimension "
					"of classes, got %s %s",
					tensor_dtype_name(dtype), SHAPE_STR(self));
	if (reduction < LOSS_NONE || reduction > LOSS_SUM)
		return tensor_fail_null(EINVAL,
					"cross_entropy: reduction must be 0 (none), 1 (mean) or 2 "
					"(sum), got %lld",
					(long long)reduction);
	if (smoothing < 0 || smoothing > 1)
		return tensor_fail_null(EINVAL,
					"cross_entropy: label_smoothing must lie within 0 and 1, "
					"got %g",
					smoothing);
	if (weight && (weight->ndim != 1 || weight->numel != self->sizes[class_dim(self)]))
		return tensor_fail_null(EINVAL,
					"cross_entropy: weight must have %lld elements for the "
					"classes of self, got shape %s",
					(long long)self->sizes[class_dim(self)], SHAPE_STR(weight));
	/* Reduced float dtypes are computed in f32 and rounded once at the end. */
	logs = tensor_log_softmax(tensor_to(self, TENSOR_OPTIONS(.dtype = dtype_wide(dtype))),
				  class_dim(self));
	if (weight)
		weight = tensor_to(weight, TENSOR_OPTIONS(.dtype = dtype_wide(dtype)));
	if (!logs)
		return NULL;
	if (sizes_equal(self, target) && dtype_is_float(target->dtype))
		return of_probabilities(logs, target, weight, reduction, smoothing);
	if (smoothing > 0 && check_shapes("cross_entropy", self, target) < 0)
		return NULL;
	loss = nll_loss("cross_entropy", logs, target, weight, reduction, ignore_index);
	if (smoothing == 0)
		return loss;
	return tensor_add(scale_loss(loss, 1 - smoothing),
			  scale_loss(smoothed(logs, target, weight, reduction, ignore_index),
				     smoothing / (double)self->sizes[class_dim(self)]));
}

tensor *composite_cross_entropy(tensor *self, tensor *target, tensor *weight, int64_t reduction,
				int64_t ignore_index)
{
	return composite_cross_entropy_loss(self, target, weight, reduction, ignore_index, 0);
}

tensor *composite_cross_entropy_loss(tensor *self, tensor *target, tensor *weight,
				     int64_t reduction, int64_t ignore_index,
				     double label_smoothing)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	tensor *loss =
		cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing);

	return scope_leave_with(
		&guard, loss ? tensor_to(loss, TENSOR_OPTIONS(.dtype = self->dtype)) : NULL);
}
