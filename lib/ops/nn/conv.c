// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions: shape checks, dispatch to a backend's three kernels, and composites. Each kernel
 * computes a gradient of the others; a transposed convolution is the input gradient of a
 * convolution.
 */
#include "ops/memory_format.h"
#include "ops/nn/spatial.h"

#include "family/conv.h"
#include "family/pad.h"
#include "family/reduce.h"
#include "family/view.h"

/* Channels of the convolution's input and output, from its weight. */
static int64_t in_channels(const tensor *weight, bool transposed, int64_t groups)
{
	return transposed ? weight->sizes[0] : weight->sizes[1] * groups;
}

static int64_t out_channels(const tensor *weight, bool transposed, int64_t groups)
{
	return transposed ? weight->sizes[1] * groups : weight->sizes[0];
}

static int check_tensors(const struct tensor_op *op, const tensor *input, const tensor *weight,
			 const tensor *bias, bool transposed, int64_t groups)
{
	const char *name = op->schema.name;
	int64_t out;

	if (weight->ndim < 3 || weight->ndim > 5)
		return tensor_fail(EINVAL, "%s: weight must have 3 to 5 dimensions, got %s", name,
				   SHAPE_STR(weight));
	if (input->ndim != weight->ndim)
		return tensor_fail(EINVAL,
				   "%s: input must have %d dimensions like weight %s, got %s", name,
				   weight->ndim, SHAPE_STR(weight), SHAPE_STR(input));
	if (groups < 1)
		return tensor_fail(EINVAL, "%s: groups must be positive, got %lld", name,
				   (long long)groups);
	if (weight->sizes[0] % groups)
		return tensor_fail(EINVAL,
				   "%s: weight %s must have a first size that %lld groups "
				   "divide",
				   name, SHAPE_STR(weight), (long long)groups);
	if (__builtin_mul_overflow(weight->sizes[1], groups, &out))
		return tensor_fail(EINVAL,
				   "%s: the number of channels of %lld groups overflows for "
				   "weight %s",
				   name, (long long)groups, SHAPE_STR(weight));
	if (input->sizes[1] != in_channels(weight, transposed, groups))
		return tensor_fail(EINVAL,
				   "%s: input must have %lld channels for weight %s and "
				   "%lld groups, got %s",
				   name, (long long)in_channels(weight, transposed, groups),
				   SHAPE_STR(weight), (long long)groups, SHAPE_STR(input));
	if (input->dtype != weight->dtype)
		return tensor_fail(EINVAL,
				   "%s: input and weight must have one dtype, got %s and %s", name,
				   tensor_dtype_name(input->dtype),
				   tensor_dtype_name(weight->dtype));
	out = out_channels(weight, transposed, groups);
	if (bias && (bias->ndim != 1 || bias->sizes[0] != out || bias->dtype != input->dtype))
		return tensor_fail(EINVAL, "%s: bias must be %s [%lld], got %s %s", name,
				   tensor_dtype_name(input->dtype), (long long)out,
				   tensor_dtype_name(bias->dtype), SHAPE_STR(bias));
	for (int d = 2; d < weight->ndim; d++)
		if (!weight->sizes[d])
			return tensor_fail(EINVAL,
					   "%s: weight must not have a spatial size of 0, "
					   "got %s",
					   name, SHAPE_STR(weight));
	return 0;
}

static int get_params(const struct tensor_op *op, int n, tensor_ints stride, tensor_ints padding,
		      tensor_ints dilation, tensor_ints output_padding, int64_t groups,
		      struct conv_params *p, int64_t *extra)
{
	p->groups = groups;
	if (spatial_list(op, "stride", stride, n, 1, 1, p->stride) < 0 ||
	    spatial_list(op, "padding", padding, n, 0, 0, p->padding) < 0 ||
	    spatial_list(op, "dilation", dilation, n, 1, 1, p->dilation) < 0)
		return error_code();
	return spatial_list(op, "output_padding", output_padding, n, 0, 0, extra);
}

/*
 * Output size of dimension d: `size` positions, `taps` of the weight; -1 if it is negative. Tensors without elements have
 * sizes whose products overflow: then it is INT64_MAX.
 */
static int64_t output_size(const struct conv_params *p, int d, int64_t size, int64_t taps,
			   bool transposed, int64_t extra)
{
	__int128 reach = (__int128)p->dilation[d] * (taps - 1), n;

	if (transposed)
		n = (__int128)(size - 1) * p->stride[d] - 2 * p->padding[d] + reach + extra + 1;
	else
		n = (__int128)size + 2 * p->padding[d] - reach - 1;
	if (!transposed && n >= 0)
		n = n / p->stride[d] + 1;
	return n < 0 ? -1 : n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int check_extra(const struct tensor_op *op, const struct conv_params *p, int d,
		       int64_t extra)
{
	if (extra < p->stride[d] || extra < p->dilation[d])
		return 0;
	return tensor_fail(EINVAL,
			   "%s: output_padding must be smaller than stride %lld or dilation "
			   "%lld, got %lld",
			   op->schema.name, (long long)p->stride[d], (long long)p->dilation[d],
			   (long long)extra);
}

static int infer(const struct tensor_op *op, const tensor *input, const tensor *weight,
		 const struct conv_params *p, bool transposed, const int64_t *extra, int64_t *sizes)
{
	sizes[0] = input->sizes[0];
	sizes[1] = out_channels(weight, transposed, p->groups);
	for (int i = 2; i < input->ndim; i++) {
		int d = SPATIAL - input->ndim + i;
		int64_t size = input->sizes[i], taps = weight->sizes[i];

		if (transposed && check_extra(op, p, d, extra[d]) < 0)
			return error_code();
		sizes[i] = output_size(p, d, size, taps, transposed, extra[d]);
		if (sizes[i] == INT64_MAX)
			return tensor_fail(EINVAL,
					   "%s: the output's size of dimension %d overflows for "
					   "input %s and weight %s",
					   op->schema.name, i, SHAPE_STR(input), SHAPE_STR(weight));
		if (sizes[i] < (transposed ? 1 : 0))
			return tensor_fail(EINVAL,
					   "%s: input %s with padding %lld is too small for "
					   "weight %s with dilation %lld in dimension %d",
					   op->schema.name, SHAPE_STR(input),
					   (long long)p->padding[d], SHAPE_STR(weight),
					   (long long)p->dilation[d], i);
	}
	return 0;
}

int conv_infer(const struct tensor_op *op, const tensor *input, const tensor *weight,
	       const tensor *bias, tensor_ints stride, tensor_ints padding, tensor_ints dilation,
	       bool transposed, tensor_ints output_padding, int64_t groups, struct conv_params *p,
	       int64_t *sizes)
{
	int64_t extra[SPATIAL];

	if (check_tensors(op, input, weight, bias, transposed, groups) < 0 ||
	    get_params(op, input->ndim - 2, stride, padding, dilation, output_padding, groups, p,
		       extra) < 0)
		return error_code();
	return infer(op, input, weight, p, transposed, extra, sizes);
}

struct convolution {
	const struct tensor_op *op;
	const struct tensor_kernel_table *kernels;
	tensor *a, *b, *bias; /* of any strides, borrowed; bias may be NULL */
	struct conv_params p;
	/* Of the kernel's result: the backend takes a and b of a reduced float as they are; or NONE: widened. */
	enum tensor_dtype reduced;
};

static enum tensor_dtype reduced_result(const struct convolution *c, const int64_t *sizes)
{
	/* cppcheck takes a pointer to a function that returns an enumerator for the enumerator. */
	/* cppcheck-suppress AssignmentAddressToInteger */
	convolution_reduced_kernel fn =
		(convolution_reduced_kernel)kernels_convolution_reduced.fn[backend_key(c->a)];
	const bool of_weight = c->kernels == &kernels_convolution_weight;

	return dtype_wide(c->a->dtype) == c->a->dtype || !fn ?
		       TENSOR_DTYPE_NONE :
		       fn(c->a, c->b, sizes, &c->p, of_weight);
}

/* As output_begin_dense(), with the result of a dtype that the backend takes. */
static int begin_result(struct convolution *c, struct op_output *o, tensor *given,
			const int64_t *sizes, const tensor *const *inputs, int ninputs)
{
	const int n = c->a->ndim;

	c->reduced = reduced_result(c, sizes);
	if (c->reduced != c->a->dtype)
		return output_begin_dense(c->op, o, given, c->a->dtype, sizes, n, inputs, ninputs);
	if (output_begin_apart(c->op, o, given, c->reduced, sizes, n, inputs, ninputs) < 0)
		return error_code();
	if (!o->t->contiguous)
		o->t = tensor_new(given->device, c->reduced, sizes, n);
	return o->t ? 0 : error_code();
}

static int run_kernel(const struct convolution *c, tensor *result)
{
	convolution_kernel fn = (convolution_kernel)op_kernel(c->op, c->kernels, result);
	tensor *(*operand)(tensor *) = c->reduced ? operand_contiguous : operand_dense;
	tensor *a = fn ? operand(c->a) : NULL, *b = a ? operand(c->b) : NULL;
	tensor *bias = b && c->bias ? (c->reduced == c->a->dtype ? operand_contiguous :
								   operand_dense)(c->bias) :
				      NULL;
	int err = error_code();

	if (b && (bias || !c->bias))
		err = fn(result, a, b, bias, &c->p);
	tensor_put(a);
	tensor_put(b);
	tensor_put(bias);
	return err;
}

int op_convolution(const struct tensor_op *op, tensor **out, tensor *input, tensor *weight,
		   tensor *bias, tensor_ints stride, tensor_ints padding, tensor_ints dilation,
		   bool transposed, tensor_ints output_padding, int64_t groups)
{
	const tensor *inputs[] = { input, weight, bias };
	struct convolution c = { .op = op,
				 .kernels = transposed ? &kernels_convolution_input : op->kernels,
				 .a = input,
				 .b = weight,
				 .bias = bias };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct op_output o;

	if (conv_infer(op, input, weight, bias, stride, padding, dilation, transposed,
		       output_padding, groups, &c.p, sizes) < 0 ||
	    begin_result(&c, &o, *out, sizes, inputs, bias ? 3 : 2) < 0)
		return error_code();
	output_keep_format(&o, memory_channels_last(input) ? input : weight);
	return output_end(op, &o, out, run_kernel(&c, o.t));
}

/* ---- gradients ---- */

static int check_gradient(const struct tensor_op *op, const tensor *grad, const tensor *input,
			  const int64_t *sizes)
{
	char text[SHAPE_TEXT];

	if (grad->ndim != input->ndim || memcmp(grad->sizes, sizes, grad->ndim * sizeof(*sizes)))
		return tensor_fail(EINVAL,
				   "%s: grad_output must have the output's shape %s, got %s",
				   op->schema.name,
				   format_sizes(sizes, input->ndim, text, sizeof(text)),
				   SHAPE_STR(grad));
	if (grad->dtype != input->dtype)
		return tensor_fail(EINVAL, "%s: grad_output must be %s like input, got %s",
				   op->schema.name, tensor_dtype_name(input->dtype),
				   tensor_dtype_name(grad->dtype));
	return 0;
}

/* Compute a gradient of like's shape with one of the kernels if it is wanted. */
static int gradient(const struct tensor_op *op, const struct tensor_kernel_table *kernels,
		    bool wanted, tensor **out, tensor *like, tensor *a, tensor *b,
		    const struct conv_params *p)
{
	const tensor *inputs[] = { like, a, b };
	struct convolution c = { .op = op, .kernels = kernels, .a = a, .b = b, .p = *p };
	struct op_output o;

	if (!wanted)
		return 0;
	if (begin_result(&c, &o, NULL, like->sizes, inputs, 3) < 0)
		return error_code();
	output_keep_format(&o, like);
	return output_end(op, &o, out, run_kernel(&c, o.t));
}

/* Sum of grad over all dimensions but the channels. */
static int bias_gradient(bool wanted, tensor **out, tensor *grad)
{
	if (!wanted)
		return 0;
	*out = call_sum_dim_IntList(
		grad, (tensor_ints){ (const int64_t[]){ 0, 2, 3, 4 }, grad->ndim - 1 }, false,
		TENSOR_DTYPE_NONE);
	return *out ? 0 : error_code();
}

int op_convolution_backward(const struct tensor_op *op, tensor **grad_input, tensor **grad_weight,
			    tensor **grad_bias, tensor *grad_output, tensor *input, tensor *weight,
			    tensor_ints bias_sizes, tensor_ints stride, tensor_ints padding,
			    tensor_ints dilation, bool transposed, tensor_ints output_padding,
			    int64_t groups, uint64_t output_mask)
{
	const struct tensor_kernel_table *data = transposed ? &kernels_convolution :
							      &kernels_convolution_input;
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *grad = grad_output;
	struct conv_params p;
	int err;

	if (conv_infer(op, input, weight, NULL, stride, padding, dilation, transposed,
		       output_padding, groups, &p, sizes) < 0 ||
	    check_gradient(op, grad, input, sizes) < 0)
		return error_code();
	*grad_input = *grad_weight = *grad_bias = NULL;
	err = gradient(op, data, output_mask & 1, grad_input, input, grad, weight, &p);
	if (!err)
		err = gradient(op, &kernels_convolution_weight, output_mask & 2, grad_weight,
			       weight, transposed ? input : grad, transposed ? grad : input, &p);
	if (!err)
		err = bias_gradient(output_mask & 4, grad_bias, grad);
	if (!err)
		return 0;
	tensor_put(*grad_input);
	tensor_put(*grad_weight);
	*grad_input = *grad_weight = NULL;
	return err;
}

/* ---- composites ---- */

/* Convolution over n spatial dimensions; the batch dimension is optional. */
static tensor *conv(const char *name, int n, tensor *input, tensor *weight, tensor *bias,
		    tensor_ints stride, tensor_ints padding, tensor_ints dilation, bool transposed,
		    tensor_ints output_padding, int64_t groups)
{
	tensor *batched, *result, *single;

	if (weight->ndim != n + 2)
		return tensor_fail_null(EINVAL, "%s: weight must have %d dimensions, got %s", name,
					n + 2, SHAPE_STR(weight));
	if (input->ndim == n + 2)
		return call_convolution(input, weight, bias, stride, padding, dilation, transposed,
					output_padding, groups);
	if (input->ndim != n + 1)
		return tensor_fail_null(EINVAL,
					"%s: input must have %d dimensions, or %d without a "
					"batch, got %s",
					name, n + 2, n + 1, SHAPE_STR(input));
	batched = call_unsqueeze(input, 0);
	result = batched ? call_convolution(batched, weight, bias, stride, padding, dilation,
					    transposed, output_padding, groups) :
			   NULL;
	single = result ? call_squeeze_dim(result, 0) : NULL;
	tensor_put(batched);
	tensor_put(result);
	return single;
}

/*
 * Compute the padding for an output of the input's size. If a total is odd, the extra zero goes
 * after the data: *input is replaced by a padded tensor. The caller releases the reference in
 * *input.
 */
static int same_padding(const char *name, int n, tensor **input, const tensor *weight,
			tensor_ints stride, tensor_ints dilation, int64_t *padding)
{
	int64_t more[2 * SPATIAL] = { 0 };
	bool uneven = false;

	for (int64_t i = 0; i < stride.len; i++)
		if (stride.data[i] != 1)
			return tensor_fail(EINVAL, "%s: padding same needs stride 1, got %lld",
					   name, (long long)stride.data[i]);
	if (weight->ndim != n + 2 || (dilation.len != n && dilation.len != 1))
		return tensor_fail(EINVAL,
				   "%s: weight must have %d dimensions and dilation 1 or %d "
				   "numbers, got %s and %lld",
				   name, n + 2, n, SHAPE_STR(weight), (long long)dilation.len);
	for (int i = 0; i < n; i++) {
		int64_t all = dilation.data[dilation.len == 1 ? 0 : i] * (weight->sizes[i + 2] - 1);

		padding[i] = all > 0 ? all / 2 : 0;
		more[2 * (n - 1 - i) + 1] = all > 0 ? all % 2 : 0;
		uneven |= all > 0 && all % 2;
	}
	*input = uneven ? call_constant_pad_nd(*input, (tensor_ints){ more, 2 * n },
					       tensor_scalar_int(0)) :
			  tensor_get(*input);
	return *input ? 0 : error_code();
}

static tensor *conv_padded(const char *name, int n, tensor *input, tensor *weight, tensor *bias,
			   tensor_ints stride, const char *how, tensor_ints dilation,
			   int64_t groups)
{
	bool same = !strcmp(how, "same");
	int64_t padding[SPATIAL] = { 0 };
	tensor *padded = input, *result;

	if (!same && strcmp(how, "valid"))
		return tensor_fail_null(EINVAL, "%s: padding must be valid or same, got %s", name,
					QUOTED(how));
	if (!same)
		return conv(name, n, input, weight, bias, stride, TENSOR_INTS(0), dilation, false,
			    TENSOR_INTS(0), groups);
	if (same_padding(name, n, &padded, weight, stride, dilation, padding) < 0)
		return NULL;
	result = conv(name, n, padded, weight, bias, stride, (tensor_ints){ padding, n }, dilation,
		      false, TENSOR_INTS(0), groups);
	tensor_put(padded);
	return result;
}

tensor *composite_conv1d(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
			 tensor_ints padding, tensor_ints dilation, int64_t groups)
{
	return conv("conv1d", 1, input, weight, bias, stride, padding, dilation, false,
		    TENSOR_INTS(0), groups);
}

tensor *composite_conv1d_padding(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
				 const char *padding, tensor_ints dilation, int64_t groups)
{
	return conv_padded("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
}

tensor *composite_conv_transpose1d(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
				   tensor_ints padding, tensor_ints output_padding, int64_t groups,
				   tensor_ints dilation)
{
	return conv("conv_transpose1d", 1, input, weight, bias, stride, padding, dilation, true,
		    output_padding, groups);
}

tensor *composite_conv2d(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
			 tensor_ints padding, tensor_ints dilation, int64_t groups)
{
	return conv("conv2d", 2, input, weight, bias, stride, padding, dilation, false,
		    TENSOR_INTS(0), groups);
}

tensor *composite_conv2d_padding(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
				 const char *padding, tensor_ints dilation, int64_t groups)
{
	return conv_padded("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
}

tensor *composite_conv_transpose2d(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
				   tensor_ints padding, tensor_ints output_padding, int64_t groups,
				   tensor_ints dilation)
{
	return conv("conv_transpose2d", 2, input, weight, bias, stride, padding, dilation, true,
		    output_padding, groups);
}

tensor *composite_conv3d(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
			 tensor_ints padding, tensor_ints dilation, int64_t groups)
{
	return conv("conv3d", 3, input, weight, bias, stride, padding, dilation, false,
		    TENSOR_INTS(0), groups);
}

tensor *composite_conv3d_padding(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
				 const char *padding, tensor_ints dilation, int64_t groups)
{
	return conv_padded("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
}

tensor *composite_conv_transpose3d(tensor *input, tensor *weight, tensor *bias, tensor_ints stride,
				   tensor_ints padding, tensor_ints output_padding, int64_t groups,
				   tensor_ints dilation)
{
	return conv("conv_transpose3d", 3, input, weight, bias, stride, padding, dilation, true,
		    output_padding, groups);
}
