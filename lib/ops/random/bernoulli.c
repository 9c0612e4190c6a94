// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* bernoulli and dropout. */
#include "ops/memory_format.h"
#include "ops/random/random.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/pointwise.h"
#include "family/random.h"

static int check_probability(const char *op, double p)
{
	if (p >= 0 && p <= 1)
		return 0;
	return tensor_fail(EINVAL, "%s: p must be within [0, 1], got %g", op, p);
}

int op_bernoulli_p(const struct tensor_op *op, tensor **out, tensor *self, double p,
		   tensor_generator *generator)
{
	struct random_params params = { .a = p };

	if (check_probability(op->schema.name, p) < 0)
		return error_code();
	return random_op(op, out, self, &params, generator);
}

/* prob expanded to self's shape in a dtype of the kernel. Owned. */
static tensor *probabilities(const struct tensor_op *op, const tensor *self, tensor *prob)
{
	enum tensor_dtype dtype = prob->dtype == TENSOR_F64 ? TENSOR_F64 : TENSOR_F32;
	tensor *t;

	if (!dtype_is_float(prob->dtype)) {
		tensor_kernel_no_dtype(op->schema.name, prob->dtype, "cpu");
		return NULL;
	}
	if (!iter_broadcasts_to(prob, self->sizes, self->ndim))
		return tensor_fail_null(EINVAL, "%s: p %s does not broadcast to self %s",
					op->schema.name, SHAPE_STR(prob), SHAPE_STR(self));
	if (prob->dtype == dtype && prob->contiguous && sizes_equal(prob, self))
		return tensor_get(prob);
	t = tensor_new(self->device, dtype, self->sizes, self->ndim);
	if (t && operand_copy(t, prob) < 0) {
		tensor_put(t);
		return NULL;
	}
	return t;
}

static int toss_each(const struct tensor_op *op, tensor *mask, const tensor *prob,
		     tensor_generator *generator)
{
	random_each_kernel fn = (random_each_kernel)op_kernel(op, op->kernels, prob);
	struct random_params p = { .wide = prob->dtype == TENSOR_F64 };

	if (!fn)
		return error_code();
	if (random_take(&p, mask, generator, prob->numel) < 0)
		return error_code();
	return fn(mask, prob, &p);
}

int op_bernoulli_tensor(const struct tensor_op *op, tensor **out, tensor *self, tensor *p,
			tensor_generator *generator)
{
	struct op_output o = { .given = *out, .dtype = self->dtype };
	tensor *prob;
	int err = -1;

	if (operand_check_device(op->schema.name, self, p) < 0)
		return error_code();
	if (*out && tensor_overlaps_itself(*out))
		return tensor_fail(EINVAL, "%s: elements of self share memory; clone it first",
				   op->schema.name);
	prob = probabilities(op, self, p);
	o.t = prob ? tensor_new(self->device, TENSOR_BOOL, self->sizes, self->ndim) : NULL;
	if (o.t) {
		err = toss_each(op, o.t, prob, generator);
		err = output_end(op, &o, out, err);
	}
	tensor_put(prob);
	return err < 0 ? error_code() : 0;
}

int op_bernoulli(const struct tensor_op *op, tensor **out, tensor *self,
		 tensor_generator *generator)
{
	const tensor *inputs[] = { self };
	struct op_output o;
	tensor *prob = probabilities(op, self, self), *mask = NULL;
	int err = -1;

	if (!prob)
		return error_code();
	if (output_begin(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		goto out;
	mask = tensor_new(self->device, TENSOR_BOOL, self->sizes, self->ndim);
	err = mask ? toss_each(op, mask, prob, generator) : -1;
	if (!err)
		err = operand_copy(o.t, mask);
	err = output_end(op, &o, out, err);
out:
	tensor_put(mask);
	tensor_put(prob);
	return err < 0 ? error_code() : 0;
}

/* ---- dropout ---- */

/* Dropout that keeps every element. */
static int keep_all(tensor **output, tensor **mask, tensor *input)
{
	tensor_options options = { .dtype = TENSOR_BOOL, .device = input->device };

	*output = call_clone(input, TENSOR_PRESERVE_FORMAT);
	*mask = *output ? call_ones_like(input, options) : NULL;
	return *mask ? 0 : error_code();
}

/* Copy a contiguous *t to a tensor with like's order of dimensions. */
static int follow_order(tensor **t, const tensor *like)
{
	tensor *made;
	int err;

	if (like->contiguous)
		return 0;
	made = memory_new_like(like, TENSOR_OPTIONS(.dtype = (*t)->dtype, .device = (*t)->device));
	if (!made)
		return error_code();
	err = operand_copy(made, *t);
	tensor_put(*t);
	*t = made;
	return err;
}

static int drop(const struct tensor_op *op, tensor **output, tensor **mask, tensor *input, double p)
{
	dropout_kernel fn = (dropout_kernel)op_kernel(op, op->kernels, input);
	struct random_params params = { .a = 1 - p, .b = p == 1 ? 0 : 1 / (1 - p) };
	tensor *in = fn ? operand_contiguous(input) : NULL;
	int err = -1;

	*output = in ? tensor_new_like(input, input->sizes, input->ndim) : NULL;
	*mask = *output ? tensor_new(input->device, TENSOR_BOOL, input->sizes, input->ndim) : NULL;
	if (*mask) {
		err = random_take(&params, input, NULL, input->numel);
		if (!err)
			err = fn(*output, *mask, in, &params);
	}
	tensor_put(in);
	if (err < 0 || follow_order(output, input) < 0 || follow_order(mask, input) < 0)
		return error_code();
	return 0;
}

int op_native_dropout(const struct tensor_op *op, tensor **output, tensor **mask, tensor *input,
		      double p, int64_t train)
{
	int err;

	if (check_probability(op->schema.name, p) < 0)
		return error_code();
	*output = *mask = NULL;
	err = train ? drop(op, output, mask, input, p) : keep_all(output, mask, input);
	if (err < 0) {
		tensor_put(*output);
		tensor_put(*mask);
		*output = *mask = NULL;
	}
	return err;
}

tensor *composite_native_dropout_backward(tensor *grad_output, tensor *mask, double scale)
{
	tensor *kept, *result;

	if (mask->dtype != TENSOR_BOOL)
		return tensor_fail_null(EINVAL,
					"native_dropout_backward: mask must be bool, got %s",
					tensor_dtype_name(mask->dtype));
	kept = call_mul_Tensor(grad_output, mask);
	/* Not in place: integers become floating point. */
	result = kept ? call_mul_Scalar(kept, tensor_scalar_float(scale)) : NULL;
	tensor_put(kept);
	return result;
}

tensor *composite_dropout(tensor *input, double p, bool train)
{
	tensor *output, *mask;

	if (check_probability("dropout", p) < 0)
		return NULL;
	if (!train || p == 0 || !input->numel)
		return tensor_get(input);
	if (call_native_dropout(input, p, true, &output, &mask) < 0)
		return NULL;
	tensor_put(mask);
	return output;
}
