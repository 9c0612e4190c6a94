// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Convolutions as layers. */
#include "train/layers/layer.h"

enum { MOST_DIMS = 3 };

#define CONV_OPTIONS                                                                               \
	{                                                                                          \
		"in", "out", "groups", "bias", "kernel[0]", "kernel[1]", "kernel[2]", "stride[0]", \
			"stride[1]", "stride[2]", "padding[0]", "padding[1]", "padding[2]",        \
			"dilation[0]", "dilation[1]", "dilation[2]", "output_padding[0]",          \
			"output_padding[1]", "output_padding[2]"                                   \
	}
static const struct layer_type types[MOST_DIMS + 1] = {
	{ .op = "module_conv_transpose2d", .i = CONV_OPTIONS },
	{ .op = "module_conv1d", .i = CONV_OPTIONS },
	{ .op = "module_conv2d", .i = CONV_OPTIONS },
	{ .op = "module_conv3d", .i = CONV_OPTIONS },
};
/* Where they are in the key. */
enum { IN, OUT, GROUPS, BIAS, KERNEL, STRIDE = 7, PADDING = 10, DILATION = 13, OUT_PADDING = 16 };

struct conv {
	int dims;
	bool transposed;
	struct layer_key key;
};

/* n numbers from a list, or n times one number, which is `zero` if it is 0. */
static int spread(struct conv *c, int at, const char *option, tensor_ints list, int64_t number,
		  int64_t zero)
{
	if (list.len && (list.len != c->dims || !list.data))
		return tensor_fail(EINVAL, "%s: %s has %lld numbers%s, expected %d",
				   c->key.type->op, option, (long long)list.len,
				   list.data ? "" : " at NULL", c->dims);
	for (int i = 0; i < c->dims; i++)
		c->key.i[at + i] = list.len ? list.data[i] : number ? number : zero;
	return 0;
}

static int fill_key(struct conv *c, tensor *x, int64_t out, int64_t kernel,
		    const struct tensor_conv_options *o)
{
	const char *op = c->key.type->op;
	int64_t *i = c->key.i;
	int err;

	if (tensor_dim(x) != c->dims + 1 && tensor_dim(x) != c->dims + 2)
		return tensor_fail(EINVAL, "%s: x must have %d or %d dimensions, got %s", op,
				   c->dims + 1, c->dims + 2, SHAPE_STR(x));
	i[IN] = tensor_size(x, -(c->dims + 1));
	i[OUT] = out;
	i[GROUPS] = o->groups ? o->groups : 1;
	i[BIAS] = !o->no_bias;
	err = spread(c, KERNEL, "kernels", o->kernels, kernel, 0)		     ?:
		      spread(c, STRIDE, "strides", o->strides, o->stride, 1)	     ?:
		      spread(c, PADDING, "paddings", o->paddings, o->padding, 0)     ?:
		      spread(c, DILATION, "dilations", o->dilations, o->dilation, 1) ?:
		      spread(c, OUT_PADDING, "output_paddings", o->output_paddings,
			     o->output_padding, 0);
	for (int k = 0; k < c->dims && !err; k++)
		err = layer_at_least(op, "kernel", i[KERNEL + k], 1)	       ?:
			      layer_at_least(op, "stride", i[STRIDE + k], 1)   ?:
			      layer_at_least(op, "padding", i[PADDING + k], 0) ?:
			      layer_at_least(op, "dilation", i[DILATION + k], 1);
	if (err || layer_at_least(op, "out", out, 1) < 0 ||
	    layer_at_least(op, "groups", i[GROUPS], 1) < 0)
		return -EINVAL;
	if (i[IN] % i[GROUPS] || out % i[GROUPS])
		return tensor_fail(EINVAL,
				   "%s: in %lld and out %lld must be multiples of groups %lld", op,
				   (long long)i[IN], (long long)out, (long long)i[GROUPS]);
	return 0;
}

/* The weight in sizes[], the bound of its initial values. */
static double weight_sizes(const struct conv *c, int64_t *sizes)
{
	const int64_t *i = c->key.i;
	double fan;

	sizes[0] = c->transposed ? i[IN] : i[OUT];
	sizes[1] = (c->transposed ? i[OUT] : i[IN]) / i[GROUPS];
	fan = (double)sizes[1];
	for (int k = 0; k < c->dims; k++) {
		sizes[2 + k] = i[KERNEL + k];
		fan *= (double)i[KERNEL + k];
	}
	return layer_bound(fan);
}

static tensor *convolve(const struct conv *c, tensor *x, tensor *w, tensor *b)
{
	const int64_t *i = c->key.i;
	tensor_ints stride = { i + STRIDE, c->dims }, padding = { i + PADDING, c->dims },
		    dilation = { i + DILATION, c->dims };

	if (c->transposed)
		return tensor_conv_transpose2d(x, w, b, stride, padding,
					       (tensor_ints){ i + OUT_PADDING, c->dims }, i[GROUPS],
					       dilation);
	return (c->dims == 1 ? tensor_conv1d :
		c->dims == 2 ? tensor_conv2d :
			       tensor_conv3d)(x, w, b, stride, padding, dilation, i[GROUPS]);
}

static tensor *conv(struct conv *c, tensor_module *m, const char *name, tensor *x)
{
	int64_t sizes[2 + MOST_DIMS];
	double bound = weight_sizes(c, sizes);
	tensor_module *layer = layer_module(m, name, &c->key);
	tensor *w, *b;

	if (!layer)
		return NULL;
	w = layer_parameter(layer, &c->key, "weight", (tensor_ints){ sizes, 2 + c->dims },
			    layer_init_uniform, &bound);
	b = !c->key.i[BIAS] || !w ?
		    tensor_none :
		    layer_parameter(layer, &c->key, "bias", TENSOR_INTS(c->key.i[OUT]),
				    layer_init_uniform, &bound);
	if (!w || !b || layer_made(layer, &c->key) < 0)
		return NULL;
	return convolve(c, x, w, b);
}

static tensor *conv_layer(tensor_module *m, const char *name, tensor *x, int64_t out,
			  int64_t kernel, const struct tensor_conv_options *o, int dims,
			  bool transposed)
{
	struct conv c = { .dims = dims,
			  .transposed = transposed,
			  .key.type = &types[transposed ? 0 : dims] };
	struct tensor_scope_guard scope;

	if (layer_absent(c.key.type->op, m, x) || fill_key(&c, x, out, kernel, o) < 0)
		return NULL;
	scope = tensor_scope_enter();
	return layer_leave(&scope, conv(&c, m, name, x));
}

TENSOR_EXPORT tensor *tensor_module_conv1d_opt(tensor_module *m, const char *name, tensor *x,
					       int64_t out, int64_t kernel,
					       struct tensor_conv_options o)
{
	return conv_layer(m, name, x, out, kernel, &o, 1, false);
}

TENSOR_EXPORT tensor *tensor_module_conv2d_opt(tensor_module *m, const char *name, tensor *x,
					       int64_t out, int64_t kernel,
					       struct tensor_conv_options o)
{
	return conv_layer(m, name, x, out, kernel, &o, 2, false);
}

TENSOR_EXPORT tensor *tensor_module_conv3d_opt(tensor_module *m, const char *name, tensor *x,
					       int64_t out, int64_t kernel,
					       struct tensor_conv_options o)
{
	return conv_layer(m, name, x, out, kernel, &o, 3, false);
}

TENSOR_EXPORT tensor *tensor_module_conv_transpose2d_opt(tensor_module *m, const char *name,
							 tensor *x, int64_t out, int64_t kernel,
							 struct tensor_conv_options o)
{
	return conv_layer(m, name, x, out, kernel, &o, 2, true);
}
