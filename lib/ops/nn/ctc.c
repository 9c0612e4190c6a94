// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Connectionist temporal classification loss (Graves et al. 2006): checks, loss of each sequence,
 * reduction. */
#include "kernels/abi/ctc.h"
#include "ops/op.h"

#include "family/compare.h"
#include "family/copy.h"
#include "family/ctc.h"
#include "family/factory.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/ternary.h"
#include "family/view.h"

#include <math.h>
#include <stdlib.h>

#define OP "ctc_loss"

/* Copy that stays alive and unchanged during the kernel; belongs to the open scope. */
static tensor *private_copy(tensor *t, enum tensor_dtype dtype)
{
	return tensor_scope_add(operand_contiguous_copy(t, TENSOR_OPTIONS(.dtype = dtype)));
}

static tensor *on_host(tensor *t)
{
	if (!t || t->device.type == TENSOR_CPU)
		return t;
	return tensor_to(t, TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU));
}

/* ---- lengths and labels ---- */

static int check_lengths(const struct ctc *c, tensor_ints input_lengths, tensor_ints target_lengths)
{
	if (input_lengths.len != c->batch || target_lengths.len != c->batch)
		return tensor_fail(
			EINVAL,
			OP ": %lld input lengths and %lld target lengths for a batch of %lld",
			(long long)input_lengths.len, (long long)target_lengths.len,
			(long long)c->batch);
	for (int64_t i = 0; i < c->batch; i++) {
		if (input_lengths.data[i] < 0 || input_lengths.data[i] > c->steps)
			return tensor_fail(EINVAL,
					   OP ": input lengths must be from 0 to %lld, got %lld",
					   (long long)c->steps, (long long)input_lengths.data[i]);
		if (target_lengths.data[i] < 0)
			return tensor_fail(EINVAL,
					   OP ": target lengths must not be negative, got %lld",
					   (long long)target_lengths.data[i]);
	}
	return 0;
}

/* Compute where each sequence's labels begin, and the width of alpha. */
static int place_targets(struct ctc *c, const tensor *targets, int64_t *first)
{
	int64_t sum = 0, longest = 0;

	for (int64_t i = 0; i < c->batch; i++) {
		int64_t n = c->target_lengths[i];

		longest = n > longest ? n : longest;
		first[i] = targets->ndim == 2 ? i * targets->sizes[1] : sum;
		if (n > targets->numel - (targets->ndim == 1 ? sum : 0))
			return tensor_fail(EINVAL,
					   OP ": a target of %lld labels, targets have shape %s",
					   (long long)n, SHAPE_STR(targets));
		sum += targets->ndim == 1 ? n : 0;
	}
	if (targets->ndim == 1 ? sum != targets->numel :
				 targets->sizes[0] != c->batch || longest > targets->sizes[1])
		return tensor_fail(
			EINVAL,
			OP ": targets of shape %s do not have %lld sequences of these lengths",
			SHAPE_STR(targets), (long long)c->batch);
	c->width = 2 * longest + 1;
	c->first = first;
	return 0;
}

static int check_labels(const struct ctc *c)
{
	for (int64_t i = 0; i < c->batch; i++)
		for (int64_t k = 0; k < c->target_lengths[i]; k++) {
			int64_t label = c->labels[c->first[i] + k];

			if (label < 0 || label >= c->classes)
				return tensor_fail(EINVAL,
						   OP
						   ": label %lld is out of range for %lld classes",
						   (long long)label, (long long)c->classes);
		}
	return 0;
}

static int check(const tensor *log_probs, const tensor *targets, int64_t blank)
{
	if (log_probs->ndim != 3 || !log_probs->numel)
		return tensor_fail(EINVAL,
				   OP
				   ": log_probs must have 3 dimensions and elements, got shape %s",
				   SHAPE_STR(log_probs));
	if (log_probs->dtype != TENSOR_F32 && log_probs->dtype != TENSOR_F64)
		return tensor_fail(EOPNOTSUPP, OP ": log_probs must be f32 or f64, got %s",
				   tensor_dtype_name(log_probs->dtype));
	if (targets->ndim < 1 || targets->ndim > 2 ||
	    (targets->dtype != TENSOR_I64 && targets->dtype != TENSOR_I32))
		return tensor_fail(
			EINVAL,
			OP ": targets must be a vector or matrix of i64 or i32, got %s of shape %s",
			tensor_dtype_name(targets->dtype), SHAPE_STR(targets));
	if (blank < 0 || blank >= log_probs->sizes[2])
		return tensor_fail(EINVAL, OP ": blank %lld is out of range for %lld classes",
				   (long long)blank, (long long)log_probs->sizes[2]);
	return 0;
}

/* Set up everything but the results. Needs an open scope; `first` has space for a number per
 * sequence. */
static int prepare(struct ctc *c, tensor *log_probs, tensor *targets, tensor_ints input_lengths,
		   tensor_ints target_lengths, int64_t blank, int64_t *first)
{
	tensor *probs, *labels;

	c->dtype = log_probs->dtype;
	c->steps = log_probs->sizes[0];
	c->batch = log_probs->sizes[1];
	c->classes = log_probs->sizes[2];
	c->blank = blank;
	if (check_lengths(c, input_lengths, target_lengths) < 0)
		return error_code();
	c->input_lengths = input_lengths.data;
	c->target_lengths = target_lengths.data;
	if (place_targets(c, targets, first) < 0)
		return error_code();
	probs = tensor_scope_add(operand_contiguous(log_probs));
	labels = on_host(private_copy(targets, TENSOR_I64));
	if (!probs || !labels)
		return error_code();
	c->device = log_probs->device;
	c->log_probs = probs->data;
	c->labels = labels->data;
	return check_labels(c);
}

/* ---- the loss of each sequence ---- */

static int losses(struct ctc *c, tensor *log_probs, tensor **loss, tensor **alpha)
{
	ctc_kernel fn = (ctc_kernel)op_kernel(&entry__ctc_loss, &kernels_ctc_loss, log_probs);
	int err = 0;

	*loss = fn ? tensor_new_like(log_probs, &c->batch, 1) : NULL;
	*alpha =
		*loss ? tensor_new_like(log_probs, (int64_t[]){ c->batch, c->steps, c->width }, 3) :
			NULL;
	if (*alpha) {
		c->loss = (*loss)->data;
		c->alpha = (*alpha)->data;
		err = fn(c);
	}
	if (!*alpha || err < 0) {
		err = error_code();
		tensor_put(*loss);
		tensor_put(*alpha);
		*loss = *alpha = NULL;
	}
	return err;
}

int explicit_ctc_loss(tensor *log_probs, tensor *targets, tensor_ints input_lengths,
		      tensor_ints target_lengths, int64_t blank, bool zero_infinity,
		      tensor **neg_log_likelihood, tensor **log_alpha)
{
	struct tensor_scope_guard guard;
	struct ctc c = { .zero_infinity = zero_infinity };
	int64_t *first;
	int err;

	*neg_log_likelihood = *log_alpha = NULL;
	if (check(log_probs, targets, blank) < 0)
		return error_code();
	first = malloc(log_probs->sizes[1] * sizeof(*first));
	if (!first)
		return tensor_fail(ENOMEM, OP ": no memory for a batch");
	guard = tensor_scope_enter();
	err = prepare(&c, log_probs, targets, input_lengths, target_lengths, blank, first);
	if (!err)
		err = losses(&c, log_probs, neg_log_likelihood, log_alpha);
	scope_leave(&guard);
	free(first);
	return err;
}

/* ---- backward ---- */

static int check_saved(const struct ctc *c, const tensor *probs, const tensor *grad,
		       const tensor *loss, const tensor *alpha)
{
	const tensor *vectors[] = { grad, loss };

	for (int i = 0; i < 2; i++)
		if (vectors[i]->ndim != 1 || vectors[i]->sizes[0] != c->batch ||
		    vectors[i]->dtype != probs->dtype)
			return tensor_fail(
				EINVAL,
				OP "_backward: %s must be %s of shape [%lld], got %s of shape %s",
				i ? "neg_log_likelihood" : "grad", tensor_dtype_name(probs->dtype),
				(long long)c->batch, tensor_dtype_name(vectors[i]->dtype),
				SHAPE_STR(vectors[i]));
	if (alpha->ndim != 3 || alpha->sizes[0] != c->batch || alpha->sizes[1] != c->steps ||
	    alpha->sizes[2] != c->width || alpha->dtype != probs->dtype)
		return tensor_fail(
			EINVAL,
			OP "_backward: log_alpha must be %s of shape [%lld, %lld, %lld], got %s of "
			   "shape %s",
			tensor_dtype_name(probs->dtype), (long long)c->batch, (long long)c->steps,
			(long long)c->width, tensor_dtype_name(alpha->dtype), SHAPE_STR(alpha));
	if (operand_check_device(OP "_backward", probs, grad) < 0 ||
	    operand_check_device(OP "_backward", probs, loss) < 0)
		return error_code();
	return operand_check_device(OP "_backward", probs, alpha);
}

static tensor *gradient(struct ctc *c, tensor *log_probs, tensor *grad, tensor *loss, tensor *alpha)
{
	ctc_kernel fn =
		(ctc_kernel)op_kernel(&entry__ctc_loss_backward, &kernels_ctc_loss, log_probs);
	tensor *beta, *out;

	if (!fn || check_saved(c, log_probs, grad, loss, alpha) < 0)
		return NULL;
	grad = tensor_scope_add(operand_contiguous(grad));
	loss = tensor_scope_add(operand_contiguous(loss));
	alpha = tensor_scope_add(operand_contiguous(alpha));
	beta = tensor_scope_add(
		tensor_new_like(log_probs, (int64_t[]){ c->batch, 2, c->width }, 3));
	if (!grad || !loss || !alpha || !beta)
		return NULL;
	out = tensor_new_like(log_probs, log_probs->sizes, 3);
	if (!out)
		return NULL;
	c->grad = grad->data;
	c->loss = loss->data;
	c->alpha = alpha->data;
	c->beta = beta->data;
	c->out = out->data;
	if (fn(c) < 0) {
		tensor_put(out);
		return NULL;
	}
	return out;
}

tensor *explicit_ctc_loss_backward(tensor *grad, tensor *log_probs, tensor *targets,
				   tensor_ints input_lengths, tensor_ints target_lengths,
				   tensor *neg_log_likelihood, tensor *log_alpha, int64_t blank,
				   bool zero_infinity)
{
	struct tensor_scope_guard guard;
	struct ctc c = { .zero_infinity = zero_infinity };
	tensor *out = NULL;
	int64_t *first;

	if (check(log_probs, targets, blank) < 0)
		return NULL;
	first = malloc(log_probs->sizes[1] * sizeof(*first));
	if (!first)
		return tensor_fail_null(ENOMEM, OP ": no memory for a batch");
	guard = tensor_scope_enter();
	if (!prepare(&c, log_probs, targets, input_lengths, target_lengths, blank, first))
		out = gradient(&c, log_probs, grad, neg_log_likelihood, log_alpha);
	scope_leave(&guard);
	free(first);
	return out;
}

/* ---- lengths in tensors ---- */

/* Copy the numbers, for which the host waits if they are on a device, into memory of the open scope. */
static int copy_lengths(const char *what, tensor *t, tensor_ints *list)
{
	tensor *copy;

	if (t->ndim != 1 || t->dtype == TENSOR_BOOL || !dtype_is_integral(t->dtype))
		return tensor_fail(EINVAL,
				   OP ": %s must be a vector of integers, got %s of shape %s", what,
				   tensor_dtype_name(t->dtype), SHAPE_STR(t));
	copy = on_host(private_copy(t, TENSOR_I64));
	if (!copy)
		return error_code();
	*list = (tensor_ints){ copy->numel ? copy->data : NULL, copy->numel };
	return 0;
}

int composite_ctc_loss_of_tensors(tensor *log_probs, tensor *targets, tensor *input_lengths,
				  tensor *target_lengths, int64_t blank, bool zero_infinity,
				  tensor **neg_log_likelihood, tensor **log_alpha)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor_ints in, to;
	int err = copy_lengths("input_lengths", input_lengths, &in);

	*neg_log_likelihood = *log_alpha = NULL;
	err = err ? err : copy_lengths("target_lengths", target_lengths, &to);
	err = err ? err :
		    call__ctc_loss(log_probs, targets, in, to, blank, zero_infinity,
				   neg_log_likelihood, log_alpha);
	scope_leave(&guard);
	return err;
}

tensor *composite_ctc_loss_backward_of_tensors(tensor *grad, tensor *log_probs, tensor *targets,
					       tensor *input_lengths, tensor *target_lengths,
					       tensor *neg_log_likelihood, tensor *log_alpha,
					       int64_t blank, bool zero_infinity)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor_ints in, to;
	tensor *t = NULL;

	if (!copy_lengths("input_lengths", input_lengths, &in) &&
	    !copy_lengths("target_lengths", target_lengths, &to))
		t = call__ctc_loss_backward(grad, log_probs, targets, in, to, neg_log_likelihood,
					    log_alpha, blank, zero_infinity);
	scope_leave(&guard);
	return t;
}

/* ---- reduced ---- */

/* Divide each loss by its target's length, at least 1. */
static tensor *by_length(tensor *loss, tensor_ints target_lengths)
{
	tensor *n = tensor_from_data(target_lengths.data, TENSOR_INTS(target_lengths.len),
				     TENSOR_OPTIONS(.dtype = TENSOR_I64));

	n = tensor_clamp_min(
		tensor_to(n, TENSOR_OPTIONS(.dtype = loss->dtype, .device = loss->device)),
		tensor_scalar_int(1));
	return tensor_div(loss, n);
}

static tensor *reduced(tensor *log_probs, tensor *targets, tensor_ints input_lengths,
		       tensor_ints target_lengths, int64_t blank, int64_t reduction,
		       bool zero_infinity)
{
	bool batched = log_probs->ndim == 3;
	tensor *probs = batched ? log_probs : tensor_unsqueeze(log_probs, 1), *loss, *alpha;

	if (!probs || tensor__ctc_loss(probs, targets, input_lengths, target_lengths, blank,
				       zero_infinity, &loss, &alpha) < 0)
		return NULL;
	if (zero_infinity)
		loss = tensor_masked_fill(loss,
					  tensor_eq_scalar(loss, tensor_scalar_float(INFINITY)),
					  tensor_scalar_int(0));
	if (!loss)
		return NULL;
	if (reduction == 1)
		return tensor_mean(by_length(loss, target_lengths));
	if (reduction == 2)
		return tensor_sum(loss);
	return batched ? loss : tensor_squeeze_dim(loss, 0);
}

tensor *composite_ctc_loss(tensor *log_probs, tensor *targets, tensor_ints input_lengths,
			   tensor_ints target_lengths, int64_t blank, int64_t reduction,
			   bool zero_infinity)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	return scope_leave_with(&guard, reduced(log_probs, targets, input_lengths, target_lengths,
						blank, reduction, zero_infinity));
}

tensor *composite_ctc_loss_tensor(tensor *log_probs, tensor *targets, tensor *input_lengths,
				  tensor *target_lengths, int64_t blank, int64_t reduction,
				  bool zero_infinity)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor_ints in, to;
	tensor *t = NULL;

	if (!copy_lengths("input_lengths", input_lengths, &in) &&
	    !copy_lengths("target_lengths", target_lengths, &to))
		t = reduced(log_probs, targets, in, to, blank, reduction, zero_infinity);
	return scope_leave_with(&guard, t);
}
