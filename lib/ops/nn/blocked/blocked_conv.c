// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Convolution of blocked tensors, and reordering of its weights into oneDNN's preferred layout. */
#include "ops/nn/blocked/blocked.h"

#include "ops/nn/spatial.h"

#include "family/blocked.h"
#include "family/conv.h"

/* Output size for which a weight is reordered if the caller gives no input size. */
#define DEFAULT_OUTPUT_SIZE 28

int op_blocked_convolution(const struct tensor_op *op, tensor **out, tensor *input, tensor *weight,
			   tensor *bias, tensor_ints stride, tensor_ints padding,
			   tensor_ints dilation, bool transposed, tensor_ints output_padding,
			   int64_t groups)
{
	const char *name = op->schema.name;
	tensor *x, *w = NULL, *b = NULL, *t = NULL;
	int64_t sizes[TENSOR_MAX_DIMS], numel;
	struct conv_params p;

	if (conv_infer(op, input, weight, bias, stride, padding, dilation, transposed,
		       output_padding, groups, &p, sizes) < 0)
		return error_code();
	if (transposed)
		return tensor_fail(EOPNOTSUPP, "%s: blocked tensors have no transposed convolution",
				   name);
	numel = sizes_numel(name, sizes, input->ndim);
	if (blocked_need_form(op, false) < 0 || blocked_need_elements(name, weight) < 0 ||
	    numel < 0)
		return error_code();
	if (!numel)
		return blocked_deliver(op, out,
				       blocked_empty_like(name, input, sizes, input->ndim));
	x = blocked_operand(input);
	if (x)
		w = blocked_operand(weight);
	if (w && bias)
		b = blocked_operand(bias);
	if (w && (b || !bias))
		t = blocked_plugin(name)->convolution(name, x, w, b, sizes, &p);
	tensor_put(x);
	tensor_put(w);
	tensor_put(b);
	return blocked_deliver(op, out, t);
}

tensor *composite_mkldnn_convolution(tensor *self, tensor *weight, tensor *bias,
				     tensor_ints padding, tensor_ints stride, tensor_ints dilation,
				     int64_t groups)
{
	return call_convolution(self, weight, bias, stride, padding, dilation, false,
				TENSOR_INTS(0), groups);
}

/* Compute input sizes from DEFAULT_OUTPUT_SIZE. */
static void default_input_sizes(const tensor *weight, const struct conv_params *p, int64_t *sizes)
{
	sizes[0] = 1;
	sizes[1] = weight->sizes[1] * p->groups;
	for (int i = 2; i < weight->ndim; i++) {
		int d = SPATIAL - weight->ndim + i;
		int64_t reach = p->dilation[d] * (weight->sizes[i] - 1) + 1;
		int64_t size = (DEFAULT_OUTPUT_SIZE - 1) * p->stride[d] + reach - 2 * p->padding[d];

		sizes[i] = size > reach ? size : reach;
	}
}

static tensor *reorder_weight(const char *name, int n, tensor *self, tensor_ints padding,
			      tensor_ints stride, tensor_ints dilation, int64_t groups,
			      tensor_ints input_size)
{
	const struct tensor_op *op = tensor_op_find(name);
	struct tensor input = { .ndim = self->ndim, .dtype = self->dtype };
	int64_t sizes[TENSOR_MAX_DIMS];
	struct conv_params p = { .groups = groups };

	if (self->ndim != n + 2)
		return tensor_fail_null(EINVAL, "%s: self must have %d dimensions, got %s", name,
					n + 2, SHAPE_STR(self));
	if (input_size.len >= 0 && input_size.len != n + 2)
		return tensor_fail_null(EINVAL, "%s: input_size must have %d numbers, got %lld",
					name, n + 2, (long long)input_size.len);
	if (blocked_need_elements(name, self) < 0 ||
	    spatial_list(op, "stride", stride, n, 1, 1, p.stride) < 0 ||
	    spatial_list(op, "padding", padding, n, 0, 0, p.padding) < 0 ||
	    spatial_list(op, "dilation", dilation, n, 1, 1, p.dilation) < 0)
		return NULL;
	default_input_sizes(self, &p, input.sizes);
	if (input_size.len >= 0)
		memcpy(input.sizes, input_size.data, (n + 2) * sizeof(*sizes));
	if (conv_infer(op, &input, self, NULL, stride, padding, dilation, false, TENSOR_INTS(0),
		       groups, &p, sizes) < 0)
		return NULL;
	for (int i = 0; i < n + 2; i++)
		if (input.sizes[i] < 1 || sizes[i] < 1)
			return tensor_fail_null(EINVAL,
						"%s: input_size must be positive and large "
						"enough for self %s",
						name, SHAPE_STR(self));
	return blocked_plugin(name)->convolution_weight(name, self, input.sizes, sizes, &p);
}

tensor *kernel_reorder_conv2d_weight(tensor *self, tensor_ints padding, tensor_ints stride,
				     tensor_ints dilation, int64_t groups, tensor_ints input_size)
{
	return reorder_weight("mkldnn_reorder_conv2d_weight", 2, self, padding, stride, dilation,
			      groups, input_size);
}

tensor *kernel_reorder_conv3d_weight(tensor *self, tensor_ints padding, tensor_ints stride,
				     tensor_ints dilation, int64_t groups, tensor_ints input_size)
{
	return reorder_weight("mkldnn_reorder_conv3d_weight", 3, self, padding, stride, dilation,
			      groups, input_size);
}
