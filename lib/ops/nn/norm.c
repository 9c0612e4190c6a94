// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of layer_norm and its gradient; composites layer_norm and rms_norm. */
#include "ops/nn/norm.h"

#include "family/copy.h"
#include "family/norm.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/unary.h"

#include <math.h>

/* ---- layer_norm ---- */

/* Check that input's last dimensions are normalized_shape. *n is their product, *rows that of the
 * others. */
static int split(const char *name, const tensor *input, tensor_ints normalized, int64_t *rows,
		 int64_t *n)
{
	int first = input->ndim - (int)normalized.len;
	char text[SHAPE_TEXT];

	*rows = *n = 1;
	if (normalized.len < 1)
		return tensor_fail(EINVAL, "%s: normalized_shape must have a dimension", name);
	if (first < 0 ||
	    memcmp(input->sizes + first, normalized.data, normalized.len * sizeof(int64_t)))
		return tensor_fail(
			EINVAL, "%s: the last sizes of input %s must be normalized_shape %s", name,
			SHAPE_STR(input),
			format_sizes(normalized.data, (int)normalized.len, text, sizeof(text)));
	for (int i = 0; i < first; i++)
		*rows *= input->sizes[i];
	for (int i = first; i < input->ndim; i++)
		*n *= input->sizes[i];
	return 0;
}

/* New tensor for mean or rstd: input's shape with 1 in the normalized dimensions. */
static tensor *new_stat(const tensor *input, int64_t normalized, enum tensor_dtype dtype)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	for (int i = 0; i < input->ndim; i++)
		sizes[i] = i < input->ndim - normalized ? input->sizes[i] : 1;
	return tensor_new(input->device, dtype, sizes, input->ndim);
}

/* The dtype in which the kernels of the gradient get input: those of CUDA convert f16 and bf16 themselves. */
static enum tensor_dtype gradient_dtype(const tensor *input)
{
	return input->device.type == TENSOR_CUDA ? (enum tensor_dtype)input->dtype :
						   dtype_wide(input->dtype);
}

int op_layer_norm(const struct tensor_op *op, tensor **output, tensor **mean, tensor **rstd,
		  tensor *input, tensor_ints normalized_shape, tensor *weight, tensor *bias,
		  double eps)
{
	layer_norm_kernel fn = (layer_norm_kernel)op_kernel(op, op->kernels, input);
	enum tensor_dtype wide = dtype_wide(input->dtype), stat;
	tensor *x, *w, *b, *out, *m, *r, *results[3], shape[2];
	int64_t rows, n;
	int err;

	if (!fn || split(op->schema.name, input, normalized_shape, &rows, &n) < 0 ||
	    norm_check(op, input, weight, bias, n) < 0)
		return error_code();
	stat = norm_stat_dtype(input, weight, bias);
	x = norm_operand(input, norm_kernel_dtype(input));
	w = norm_operand(weight, wide);
	b = norm_operand(bias, wide);
	out = tensor_new(input->device, norm_kernel_dtype(input), input->sizes, input->ndim);
	m = new_stat(input, normalized_shape.len, wide);
	r = new_stat(input, normalized_shape.len, wide);
	err = x && out && m && r && !w == !weight && !b == !bias ?
		      fn(norm_shape(&shape[0], out, TENSOR_INTS(rows, n)), m, r,
			 norm_shape(&shape[1], x, TENSOR_INTS(rows, n)), w, b, eps) :
		      error_code();
	tensor_put(x);
	tensor_put(w);
	tensor_put(b);
	results[0] = out;
	results[1] = m;
	results[2] = r;
	err = norm_forward_end(results, input->dtype, stat, false, err);
	*output = results[0];
	*mean = results[1];
	*rstd = results[2];
	return err;
}

int op_layer_norm_backward(const struct tensor_op *op, tensor **grad_input, tensor **grad_weight,
			   tensor **grad_bias, tensor *grad_out, tensor *input,
			   tensor_ints normalized_shape, tensor *mean, tensor *rstd, tensor *weight,
			   tensor *bias, uint64_t output_mask)
{
	layer_norm_backward_kernel fn =
		(layer_norm_backward_kernel)op_kernel(op, op->kernels, input);
	enum tensor_dtype stat;
	tensor *out[3], shape[3];
	struct norm_backward b;
	int64_t rows, n;
	int err;

	if (!fn || split(op->schema.name, input, normalized_shape, &rows, &n) < 0 ||
	    norm_check(op, input, weight, bias, n) < 0 ||
	    norm_check_backward(op, grad_out, input, mean, rstd, rows) < 0)
		return error_code();
	stat = norm_stat_dtype(input, weight, bias);
	norm_backward_begin(&b, grad_out, input, mean, rstd, weight, gradient_dtype(input),
			    normalized_shape, output_mask);
	err = b.complete ? fn(norm_shape(&shape[0], b.dx, TENSOR_INTS(rows, n)), b.dweight, b.dbias,
			      norm_shape(&shape[1], b.grad, TENSOR_INTS(rows, n)),
			      norm_shape(&shape[2], b.x, TENSOR_INTS(rows, n)), b.mean, b.rstd,
			      b.weight) :
			   error_code();
	err = norm_backward_end(&b, input, stat, output_mask, out, err);
	*grad_input = out[0];
	*grad_weight = out[1];
	*grad_bias = out[2];
	return err;
}

tensor *composite_layer_norm(tensor *input, tensor_ints normalized_shape, tensor *weight,
			     tensor *bias, double eps, bool cudnn_enable)
{
	tensor *output, *mean, *rstd;

	if (call_native_layer_norm(input, normalized_shape, weight, bias, eps, &output, &mean,
				   &rstd) < 0)
		return NULL;
	tensor_put(mean);
	tensor_put(rstd);
	return output;
}

/* ---- rms_norm ---- */

static tensor *rms_norm(tensor *input, int64_t dims, tensor *weight, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	int64_t along[TENSOR_MAX_DIMS];
	tensor *x = tensor_to(input, TENSOR_OPTIONS(.dtype = wide)), *scale;

	for (int64_t i = 0; i < dims; i++)
		along[i] = input->ndim - dims + i;
	scale = tensor_mean_dim(tensor_mul(x, x), (tensor_ints){ along, dims }, true);
	scale = tensor_add_scalar(scale, tensor_scalar_float(eps));
	x = tensor_mul(x, tensor_rsqrt(scale));
	if (weight)
		x = tensor_mul(x, weight);
	return tensor_to(x, TENSOR_OPTIONS(.dtype = input->dtype));
}

tensor *composite_rms_norm(tensor *input, tensor_ints normalized_shape, tensor *weight, double eps)
{
	struct tensor_scope_guard guard;
	int64_t rows, n;

	if (split("rms_norm", input, normalized_shape, &rows, &n) < 0)
		return NULL;
	if (dtype_is_integral(input->dtype))
		return tensor_fail_null(EINVAL, "rms_norm: a floating dtype is needed, got %s",
					tensor_dtype_name(input->dtype));
	if (isnan(eps))
		eps = dtype_real(input->dtype) == TENSOR_F64 ? 0x1p-52 : 0x1p-23;
	guard = tensor_scope_enter();
	return scope_leave_with(&guard, rms_norm(input, normalized_shape.len, weight, eps));
}
