// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of batch_norm and its gradient; composites batch_norm and instance_norm. */
#include "ops/nn/norm.h"

#include "kernels/abi/batch_norm.h"

#include "family/batch_norm.h"
#include "family/copy.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/unary.h"
#include "family/view.h"

#define SCALAR(v) tensor_scalar_float(v)

static int check(const struct tensor_op *op, const tensor *input, const tensor *weight,
		 const tensor *bias, const tensor *mean, const tensor *var, bool training)
{
	int64_t c = input->ndim > 1 ? input->sizes[1] : 0;

	if (input->ndim < 2)
		return tensor_fail(EINVAL, "%s: input must have shape [n, c, ...], got %s",
				   op->schema.name, SHAPE_STR(input));
	if (!mean != !var || (!training && !mean))
		return tensor_fail(EINVAL,
				   "%s: running_mean and running_var are needed, both, unless in "
				   "training",
				   op->schema.name);
	if (mean && (mean->numel != c || var->numel != c))
		return tensor_fail(EINVAL,
				   "%s: running statistics must have %lld elements, got shapes %s "
				   "and %s",
				   op->schema.name, (long long)c, SHAPE_STR(mean), SHAPE_STR(var));
	return norm_check(op, input, weight, bias, c);
}

/* Input as [n, c, inner]. */
static tensor_ints shape_of(const tensor *input, int64_t *sizes)
{
	sizes[0] = input->sizes[0];
	sizes[1] = input->sizes[1];
	sizes[2] = 1;
	for (int i = 2; i < input->ndim; i++)
		sizes[2] *= input->sizes[i];
	return (tensor_ints){ sizes, 3 };
}

/* 1 / sqrt(var + eps); belongs to the open scope. */
static tensor *inverse_deviation(tensor *var, double eps)
{
	return tensor_rsqrt(tensor_add_scalar(var, SCALAR(eps)));
}

/* running += momentum * (value - running). Not recorded and no new version: running statistics are
 * not differentiated. */
static int move_towards(tensor *running, tensor *value, double momentum)
{
	tensor *moved;

	if (!value)
		return error_code();
	moved = tensor_add(
		tensor_mul_scalar(tensor_to(running, TENSOR_OPTIONS(.dtype = value->dtype)),
				  SCALAR(1 - momentum)),
		tensor_mul_scalar(value, SCALAR(momentum)));
	return moved ? operand_copy(running, moved) : error_code();
}

/* Compute the batch's mean and variance, and update the running statistics if given. */
static int batch_statistics(batch_stats_kernel fn, const tensor *x, tensor *mean, tensor *var,
			    tensor *running_mean, tensor *running_var, double momentum)
{
	double n = (double)x->sizes[0] * (double)x->sizes[2];

	if (fn(mean, var, x) < 0)
		return error_code();
	if (!running_mean)
		return 0;
	if (move_towards(running_mean, mean, momentum) < 0)
		return error_code();
	return move_towards(running_var, tensor_mul_scalar(var, SCALAR(n / (n - 1))), momentum);
}

/* Fill out; *mean and *invstd are the statistics used. Needs an open scope. */
static int normalize(const struct tensor_op *op, tensor *out, tensor *input, tensor *weight,
		     tensor *bias, tensor *running_mean, tensor *running_var, bool training,
		     double momentum, double eps, tensor **mean, tensor **invstd)
{
	batch_stats_kernel stats = (batch_stats_kernel)op_kernel(op, op->kernels, input);
	batch_apply_kernel apply = (batch_apply_kernel)op_kernel(op, &kernels_batch_apply, input);
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor *x, *w, *b, *var, header[2];
	tensor_ints shape;
	int64_t sizes[3];

	shape = shape_of(input, sizes);
	x = tensor_scope_add(norm_operand(input, out->dtype));
	w = tensor_scope_add(norm_operand(weight, wide));
	b = tensor_scope_add(norm_operand(bias, wide));
	if (training) {
		*mean = tensor_scope_add(tensor_new(input->device, wide, &sizes[1], 1));
		var = tensor_scope_add(tensor_new(input->device, wide, &sizes[1], 1));
	} else {
		*mean = tensor_scope_add(norm_operand(running_mean, wide));
		var = tensor_scope_add(norm_operand(running_var, wide));
	}
	if (!stats || !apply || !x || !w != !weight || !b != !bias || !*mean || !var)
		return error_code();
	norm_shape(&header[0], x, shape);
	norm_shape(&header[1], out, shape);
	if (training && batch_statistics(stats, &header[0], *mean, var, running_mean, running_var,
					 momentum) < 0)
		return error_code();
	*invstd = inverse_deviation(var, eps);
	return *invstd ? apply(&header[1], &header[0], *mean, *invstd, w, b) : error_code();
}

static int batch_norm(const struct tensor_op *op, tensor **output, tensor **save_mean,
		      tensor **save_invstd, tensor *input, tensor *weight, tensor *bias,
		      tensor *running_mean, tensor *running_var, bool training, double momentum,
		      double eps)
{
	struct tensor_scope_guard guard;
	tensor *results[3] = { NULL }, *mean, *invstd;
	const int64_t none = 0;
	int err;

	if (check(op, input, weight, bias, running_mean, running_var, training) < 0)
		return error_code();
	/* Running statistics are written even by operators whose schema does not mark them as
	 * mutable. */
	if (training && running_mean &&
	    (check_writable(op, running_mean) < 0 || check_writable(op, running_var) < 0))
		return error_code();
	guard = tensor_scope_enter();
	results[0] = tensor_new(input->device, norm_kernel_dtype(input), input->sizes, input->ndim);
	err = results[0] ? normalize(op, results[0], input, weight, bias, running_mean, running_var,
				     training, momentum, eps, &mean, &invstd) :
			   error_code();
	if (!err) {
		results[1] = training ? tensor_get(mean) : tensor_new_like(mean, &none, 1);
		results[2] = training ? tensor_get(invstd) : tensor_new_like(mean, &none, 1);
	}
	scope_leave(&guard);
	err = norm_forward_end(results, input->dtype, norm_stat_dtype(input, weight, bias),
			       !input->contiguous && memory_channels_last(input), err);
	*output = results[0];
	*save_mean = results[1];
	*save_invstd = results[2];
	return err;
}

int op_batch_norm(const struct tensor_op *op, tensor **output, tensor **save_mean,
		  tensor **save_invstd, tensor *input, tensor *weight, tensor *bias,
		  tensor *running_mean, tensor *running_var, bool training, double momentum,
		  double eps)
{
	return batch_norm(op, output, save_mean, save_invstd, input, weight, bias, running_mean,
			  running_var, training, momentum, eps);
}

int op_batch_norm_no_stats(const struct tensor_op *op, tensor **output, tensor **save_mean,
			   tensor **save_invstd, tensor *input, tensor *weight, tensor *bias,
			   bool training, double momentum, double eps)
{
	return batch_norm(op, output, save_mean, save_invstd, input, weight, bias, NULL, NULL, true,
			  momentum, eps);
}

int op_batch_norm_no_training(const struct tensor_op *op, tensor **output, tensor **save_mean,
			      tensor **save_invstd, tensor *input, tensor *weight, tensor *bias,
			      tensor *running_mean, tensor *running_var, double momentum,
			      double eps)
{
	return batch_norm(op, output, save_mean, save_invstd, input, weight, bias, running_mean,
			  running_var, false, momentum, eps);
}

int op_batch_norm_backward(const struct tensor_op *op, tensor **grad_input, tensor **grad_weight,
			   tensor **grad_bias, tensor *grad_out, tensor *input, tensor *weight,
			   tensor *running_mean, tensor *running_var, tensor *save_mean,
			   tensor *save_invstd, bool train, double eps, uint64_t output_mask)
{
	batch_norm_backward_kernel fn =
		(batch_norm_backward_kernel)op_kernel(op, op->kernels, input);
	tensor *mean = train ? save_mean : running_mean, *invstd = train ? save_invstd : NULL;
	struct tensor_scope_guard guard;
	struct norm_backward b;
	tensor *out[3], header[3];
	tensor_ints shape;
	int64_t sizes[3];
	int err;

	if (!fn || check(op, input, weight, NULL, running_mean, running_var, train) < 0)
		return error_code();
	guard = tensor_scope_enter();
	if (!train)
		invstd = inverse_deviation(tensor_scope_add(operand_widen(running_var)), eps);
	if (!mean || !invstd)
		err = tensor_fail(EINVAL, "%s: save_mean and save_invstd are needed in training",
				  op->schema.name);
	else
		err = norm_check_backward(op, grad_out, input, mean, invstd, input->sizes[1]);
	if (!err) {
		shape = shape_of(input, sizes);
		norm_backward_begin(&b, grad_out, input, mean, invstd, weight,
				    norm_kernel_dtype(input), TENSOR_INTS(sizes[1]), output_mask);
		err = b.complete ? fn(norm_shape(&header[0], b.dx, shape), b.dweight, b.dbias,
				      norm_shape(&header[1], b.grad, shape),
				      norm_shape(&header[2], b.x, shape), b.mean, b.rstd, b.weight,
				      train) :
				   error_code();
		err = norm_backward_end(&b, input, norm_stat_dtype(input, weight, NULL),
					output_mask, out, err);
		*grad_input = out[0];
		*grad_weight = out[1];
		*grad_bias = out[2];
	}
	scope_leave(&guard);
	return err;
}

/* ---- composites ---- */

/* An empty input of any shape. The result depends on all three arguments, so that each has a
 * gradient. */
static tensor *nothing_to_norm(tensor *input, tensor *weight, tensor *bias)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *t = tensor_clone(input);

	if (weight && weight->numel)
		t = tensor_mul(t, tensor_select(weight, 0, 0));
	if (bias && bias->numel)
		t = tensor_add(t, tensor_select(bias, 0, 0));
	return scope_leave_with(&guard, t);
}

tensor *composite_batch_norm(tensor *input, tensor *weight, tensor *bias, tensor *running_mean,
			     tensor *running_var, bool training, double momentum, double eps,
			     bool cudnn_enabled)
{
	tensor *output, *mean, *invstd;

	if (!input->numel && input->ndim < 2)
		return nothing_to_norm(input, weight, bias);
	if (call_native_batch_norm(input, weight, bias, running_mean, running_var, training,
				   momentum, eps, &output, &mean, &invstd) < 0)
		return NULL;
	tensor_put(mean);
	tensor_put(invstd);
	return output;
}

/* Repeat a vector of channels for each of n batch elements. */
static tensor *repeated(tensor *t, int64_t n)
{
	return t ? tensor_reshape(tensor_expand(t, TENSOR_INTS(n, t->numel)),
				  TENSOR_INTS(n * t->numel)) :
		   NULL;
}

/* Store the mean over the batch of the repeated running statistic. */
static int collect(tensor *running, tensor *moved, int64_t n)
{
	tensor *mean = tensor_mean_dim(tensor_reshape(moved, TENSOR_INTS(n, running->numel)),
				       TENSOR_INTS(0), false);

	return mean ? operand_copy(running, mean) : error_code();
}

static tensor *instance_norm(tensor *input, tensor *weight, tensor *bias, tensor *running_mean,
			     tensor *running_var, bool use_input_stats, double momentum, double eps)
{
	int64_t n = input->sizes[0], sizes[TENSOR_MAX_DIMS];
	tensor *mean = running_mean ? tensor_clone(repeated(running_mean, n)) : NULL;
	tensor *var = running_var ? tensor_clone(repeated(running_var, n)) : NULL;
	tensor *w = repeated(weight, n), *b = repeated(bias, n), *x, *output, *m, *v;

	memcpy(sizes, input->sizes, input->ndim * sizeof(*sizes));
	sizes[0] = 1;
	sizes[1] *= n;
	x = tensor_reshape(input, (tensor_ints){ sizes, input->ndim });
	if (!w != !weight || !b != !bias || !mean != !running_mean || !var != !running_var)
		return NULL;
	if (tensor_native_batch_norm(x, w ? w : tensor_none, b ? b : tensor_none,
				     mean ? mean : tensor_none, var ? var : tensor_none,
				     use_input_stats, momentum, eps, &output, &m, &v) < 0)
		return NULL;
	if (use_input_stats && mean &&
	    (collect(running_mean, mean, n) < 0 || collect(running_var, var, n) < 0))
		return NULL;
	return tensor_reshape(output, (tensor_ints){ input->sizes, input->ndim });
}

tensor *composite_instance_norm(tensor *input, tensor *weight, tensor *bias, tensor *running_mean,
				tensor *running_var, bool use_input_stats, double momentum,
				double eps, bool cudnn_enabled)
{
	struct tensor_scope_guard guard;

	if (input->ndim < 2)
		return tensor_fail_null(EINVAL,
					"instance_norm: input must have shape [n, c, ...], got %s",
					SHAPE_STR(input));
	if (use_input_stats &&
	    ((running_mean && tensor_check_writable("instance_norm", running_mean) < 0) ||
	     (running_var && tensor_check_writable("instance_norm", running_var) < 0)))
		return NULL;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, instance_norm(input, weight, bias, running_mean,
						      running_var, use_input_stats, momentum, eps));
}
