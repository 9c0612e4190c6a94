// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A block of a transformer as a layer: that of PyTorch's TransformerEncoderLayer. */
#include "train/layers/layer.h"

static const struct layer_type block_type = {
	.op = "module_transformer_block",
	.d = { "dropout", "eps" },
	.i = { "embed", "heads", "feedforward", "activation", "norm_first", "bias", "batch_first" },
};

struct block {
	const struct tensor_attention_options *o;
	tensor_module *layer;
	int64_t heads, feedforward;
};

static tensor *norm(const struct block *b, const char *name, tensor *x)
{
	return tensor_module_layer_norm_opt(
		b->layer, name, x,
		(struct tensor_norm_options){ .eps = b->o->eps, .no_bias = b->o->no_bias });
}

static tensor *drop(const struct block *b, tensor *x)
{
	return b->o->dropout > 0 ? tensor_module_dropout(b->layer, x, b->o->dropout) : x;
}

static tensor *attend(const struct block *b, tensor *x)
{
	return drop(b, tensor_module_multi_head_attention_opt(b->layer, "self_attn", x, x, x,
							      b->heads, *b->o));
}

static tensor *feed_forward(const struct block *b, tensor *x)
{
	const struct tensor_linear_options o = { .no_bias = b->o->no_bias };
	const int64_t embed = tensor_size(x, -1);

	if (layer_absent("module_linear", b->layer, x))
		return NULL;
	x = layer_linear(b->layer, "linear1", x, b->feedforward, b->o->no_bias,
			 b->o->activation == TENSOR_ACTIVATION_GELU ? "gelu" : "relu");
	return drop(b, tensor_module_linear_opt(b->layer, "linear2", drop(b, x), embed, o));
}

static tensor *block(const struct block *b, tensor *x)
{
	if (b->o->norm_first) {
		x = tensor_add(x, attend(b, norm(b, "norm1", x)));
		return tensor_add(x, feed_forward(b, norm(b, "norm2", x)));
	}
	x = norm(b, "norm1", tensor_add(x, attend(b, x)));
	return norm(b, "norm2", tensor_add(x, feed_forward(b, x)));
}

/* The children in the order of PyTorch's state dict, whatever norm_first is. */
static int children(const struct block *b)
{
	static const char *const names[] = { "self_attn", "linear1", "linear2", "norm1", "norm2" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!module_child(b->layer, block_type.op, names[i]))
			return -EINVAL;
	return 0;
}

TENSOR_EXPORT tensor *tensor_module_transformer_block_opt(tensor_module *m, const char *name,
							  tensor *x, int64_t heads,
							  struct tensor_attention_options o)
{
	struct block b = { .o = &o,
			   .heads = heads,
			   .feedforward = o.feedforward ? o.feedforward : 2048 };
	struct tensor_scope_guard scope;
	struct layer_key key = { .type = &block_type,
				 .d = { o.dropout, o.eps },
				 .i = { 0, heads, b.feedforward, o.activation, o.norm_first,
					!o.no_bias, o.batch_first } };
	tensor *y;

	if (layer_absent(block_type.op, m, x))
		return NULL;
	if (o.activation > TENSOR_ACTIVATION_GELU)
		return tensor_fail_null(
			EINVAL, "module_transformer_block: activation %d is unknown", o.activation);
	key.i[0] = tensor_size(x, -1);
	b.layer = layer_module(m, name, &key);
	if (!b.layer || children(&b) < 0)
		return NULL;
	scope = tensor_scope_enter();
	y = block(&b, x);
	if (y && layer_made(b.layer, &key) < 0)
		y = NULL;
	return layer_leave(&scope, y);
}
