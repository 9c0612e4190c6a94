// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Layers: linear, embedding, dropout. */
#include "train/layers/layer.h"

/* ---- linear ---- */

static const struct layer_type linear_type = { .op = "module_linear",
					       .i = { "in", "out", "bias" } };

tensor *layer_linear(tensor_module *m, const char *name, tensor *x, int64_t out, bool no_bias,
		     const char *activation)
{
	const int64_t in = tensor_size(x, -1);
	struct layer_key key = { .type = &linear_type, .i = { in, out, !no_bias } };
	double bound = layer_bound((double)in);
	tensor_module *layer;
	tensor *w, *b;

	if (!tensor_dim(x))
		return tensor_fail_null(EINVAL, "module_linear: x has no dimensions");
	if (layer_at_least("module_linear", "out", out, 0) < 0)
		return NULL;
	layer = layer_module(m, name, &key);
	if (!layer)
		return NULL;
	w = layer_parameter(layer, &key, "weight", TENSOR_INTS(out, in), layer_init_uniform,
			    &bound);
	b = no_bias || !w ? tensor_none :
			    layer_parameter(layer, &key, "bias", TENSOR_INTS(out),
					    layer_init_uniform, &bound);
	if (!w || !b || layer_made(layer, &key) < 0)
		return NULL;
	return activation ? tensor_linear_activation(x, w, b, activation) : tensor_linear(x, w, b);
}

TENSOR_EXPORT tensor *tensor_module_linear_opt(tensor_module *m, const char *name, tensor *x,
					       int64_t out, struct tensor_linear_options o)
{
	struct tensor_scope_guard scope;

	if (layer_absent("module_linear", m, x))
		return NULL;
	scope = tensor_scope_enter();
	return layer_leave(&scope, layer_linear(m, name, x, out, o.no_bias, NULL));
}

/* ---- embedding ---- */

static const struct layer_type embedding_type = { .op = "module_embedding",
						  .i = { "num", "dim", "padding_idx" } };

static tensor *init_embedding(tensor *t, void *ctx)
{
	const int64_t *padding = ctx;

	t = tensor_normal_(t, 0, 1);
	if (t && *padding >= 0 && !tensor_zero_(tensor_select(t, 0, *padding)))
		return NULL;
	return t;
}

static tensor *embedding(tensor_module *m, const char *name, tensor *indices, int64_t num,
			 int64_t dim, const struct tensor_embedding_options *o)
{
	const char *op = embedding_type.op;
	int64_t padding = !o->padding ? -1 : o->padding_idx + (o->padding_idx < 0 ? num : 0);
	struct layer_key key = { .type = &embedding_type, .i = { num, dim, padding } };
	tensor_module *layer;
	tensor *w;

	if (layer_at_least(op, "num", num, 0) < 0 || layer_at_least(op, "dim", dim, 0) < 0)
		return NULL;
	if (o->padding && (o->padding_idx < -num || o->padding_idx >= num))
		return tensor_fail_null(EINVAL, "%s: padding_idx %lld is no row of %lld", op,
					(long long)o->padding_idx, (long long)num);
	layer = layer_module(m, name, &key);
	if (!layer)
		return NULL;
	w = layer_parameter(layer, &key, "weight", TENSOR_INTS(num, dim), init_embedding, &padding);
	if (!w || layer_made(layer, &key) < 0)
		return NULL;
	return tensor_embedding(w, indices, padding, false, false);
}

TENSOR_EXPORT tensor *tensor_module_embedding_opt(tensor_module *m, const char *name,
						  tensor *indices, int64_t num, int64_t dim,
						  struct tensor_embedding_options o)
{
	struct tensor_scope_guard scope;

	if (layer_absent("module_embedding", m, indices))
		return NULL;
	scope = tensor_scope_enter();
	return layer_leave(&scope, embedding(m, name, indices, num, dim, &o));
}

/* ---- dropout ---- */

TENSOR_EXPORT tensor *tensor_module_dropout(tensor_module *m, tensor *x, double p)
{
	return layer_absent("module_dropout", m, x) ? NULL : tensor_dropout(x, p, m->training);
}
