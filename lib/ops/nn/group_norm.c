// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of group_norm and its gradient; composite group_norm. */
#include "ops/nn/norm.h"

#include "family/norm.h"

static int check_groups(const struct tensor_op *op, const tensor *input, int64_t n, int64_t c,
			int64_t inner, int64_t group)
{
	int64_t channels, numel;

	if (group < 1 || c % group)
		return tensor_fail(EINVAL, "%s: %lld channels cannot be divided into %lld groups",
				   op->schema.name, (long long)c, (long long)group);
	/* An overflowing product is not a valid element count. */
	if (n < 0 || c < 0 || inner < 0 || __builtin_mul_overflow(n, c, &channels) ||
	    __builtin_mul_overflow(channels, inner, &numel) || input->numel != numel)
		return tensor_fail(EINVAL, "%s: input %s does not have %lld * %lld * %lld elements",
				   op->schema.name, SHAPE_STR(input), (long long)n, (long long)c,
				   (long long)inner);
	return 0;
}

int op_group_norm(const struct tensor_op *op, tensor **output, tensor **mean, tensor **rstd,
		  tensor *input, tensor *weight, tensor *bias, int64_t N, int64_t C, int64_t HxW,
		  int64_t group, double eps)
{
	group_norm_kernel fn = (group_norm_kernel)op_kernel(op, op->kernels, input);
	enum tensor_dtype wide = dtype_wide(input->dtype), stat;
	const int64_t sizes[] = { N, group, C / (group > 0 ? group : 1), HxW };
	tensor_ints shape = { sizes, 4 };
	tensor *x, *w, *b, *results[3], header[2];
	int err;

	if (!fn || check_groups(op, input, N, C, HxW, group) < 0 ||
	    norm_check(op, input, weight, bias, C) < 0)
		return error_code();
	stat = norm_stat_dtype(input, weight, bias);
	x = norm_operand(input, norm_kernel_dtype(input));
	w = norm_operand(weight, wide);
	b = norm_operand(bias, wide);
	results[0] = tensor_new(input->device, norm_kernel_dtype(input), input->sizes, input->ndim);
	results[1] = tensor_new(input->device, wide, sizes, 2);
	results[2] = tensor_new(input->device, wide, sizes, 2);
	err = x && results[0] && results[1] && results[2] && !w == !weight && !b == !bias ?
		      fn(norm_shape(&header[0], results[0], shape), results[1], results[2],
			 norm_shape(&header[1], x, shape), w, b, eps) :
		      error_code();
	tensor_put(x);
	tensor_put(w);
	tensor_put(b);
	err = norm_forward_end(results, input->dtype, stat, memory_channels_last(input), err);
	*output = results[0];
	*mean = results[1];
	*rstd = results[2];
	return err;
}

int op_group_norm_backward(const struct tensor_op *op, tensor **grad_input, tensor **grad_weight,
			   tensor **grad_bias, tensor *grad_out, tensor *input, tensor *mean,
			   tensor *rstd, tensor *weight, int64_t N, int64_t C, int64_t HxW,
			   int64_t group, uint64_t output_mask)
{
	group_norm_backward_kernel fn =
		(group_norm_backward_kernel)op_kernel(op, op->kernels, input);
	const int64_t sizes[] = { N, group, C / (group > 0 ? group : 1), HxW };
	tensor_ints shape = { sizes, 4 };
	tensor *out[3], header[3];
	struct norm_backward b;
	int err;

	if (!fn || check_groups(op, input, N, C, HxW, group) < 0 ||
	    norm_check(op, input, weight, NULL, C) < 0 ||
	    norm_check_backward(op, grad_out, input, mean, rstd, N * group) < 0)
		return error_code();
	norm_backward_begin(&b, grad_out, input, mean, rstd, weight, norm_kernel_dtype(input),
			    TENSOR_INTS(C), output_mask);
	err = b.complete ? fn(norm_shape(&header[0], b.dx, shape), b.dweight, b.dbias,
			      norm_shape(&header[1], b.grad, shape),
			      norm_shape(&header[2], b.x, shape), b.mean, b.rstd, b.weight) :
			   error_code();
	err = norm_backward_end(&b, input, norm_stat_dtype(input, weight, NULL), output_mask, out,
				err);
	*grad_input = out[0];
	*grad_weight = out[1];
	*grad_bias = out[2];
	return err;
}

tensor *composite_group_norm(tensor *input, int64_t num_groups, tensor *weight, tensor *bias,
			     double eps, bool cudnn_enabled)
{
	tensor *output, *mean, *rstd;
	int64_t inner = 1;

	if (input->ndim < 2)
		return tensor_fail_null(EINVAL,
					"group_norm: input must have shape [n, c, ...], got %s",
					SHAPE_STR(input));
	if (!input->sizes[1])
		return tensor_fail_null(EINVAL,
					"group_norm: input must have channels, got shape %s",
					SHAPE_STR(input));
	for (int i = 2; i < input->ndim; i++)
		inner *= input->sizes[i];
	if (!inner)
		return tensor_fail_null(EINVAL,
					"group_norm: a channel must have elements, got shape "
					"%s",
					SHAPE_STR(input));
	if (call_native_group_norm(input, weight, bias, input->sizes[0], input->sizes[1], inner,
				   num_groups, eps, &output, &mean, &rstd) < 0)
		return NULL;
	tensor_put(mean);
	tensor_put(rstd);
	return output;
}
