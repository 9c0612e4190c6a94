// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Multi-head attention as a layer. */
#include "train/layers/layer.h"

#include "ops/nn/attention.h"

#include <math.h>
#include <tensor/autograd.h>
#include <tensor/init.h>

static const struct layer_type attention_type = {
	.op = "module_multi_head_attention",
	.d = { "dropout" },
	.i = { "embed", "key features", "value features", "heads", "bias", "batch_first" },
};

struct attention {
	struct layer_key key;
	const struct tensor_attention_options *o;
	tensor_module *layer;
	int64_t embed, kdim, vdim, heads;
	tensor *q, *k, *v;	    /* [batch, length, features] */
	tensor *w[3], *b[3];	    /* projections of q, k, v */
	tensor *joint, *joint_bias; /* the three in one, unless their features differ */
};

/* ---- parameters ---- */

static tensor *init_xavier(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_init_xavier_uniform(t, 1, NULL);
}

static tensor *weight(struct attention *a, const char *name, int64_t rows, int64_t columns)
{
	return layer_parameter(a->layer, &a->key, name, TENSOR_INTS(rows, columns), init_xavier,
			       NULL);
}

static int projections(struct attention *a)
{
	const int64_t e = a->embed;
	bool bias = !a->o->no_bias;

	if (a->kdim == e && a->vdim == e) {
		a->joint = weight(a, "in_proj_weight", 3 * e, e);
	} else {
		a->w[0] = weight(a, "q_proj_weight", e, e);
		a->w[1] = a->w[0] ? weight(a, "k_proj_weight", e, a->kdim) : NULL;
		a->w[2] = a->w[1] ? weight(a, "v_proj_weight", e, a->vdim) : NULL;
	}
	if (!a->joint && !a->w[2])
		return -EINVAL;
	a->joint_bias = bias ? layer_parameter(a->layer, &a->key, "in_proj_bias",
					       TENSOR_INTS(3 * e), NULL, NULL) :
			       tensor_none;
	return a->joint_bias ? layer_made(a->layer, &a->key) : -EINVAL;
}

/* ---- the three inputs ---- */

/* [batch, length, features] of any form of x. */
static tensor *batch_first(const struct attention *a, tensor *x)
{
	if (tensor_dim(x) == 2)
		return tensor_unsqueeze(x, 0);
	return a->o->batch_first ? x : tensor_transpose(x, 0, 1);
}

/* [batch, length, embed] as [batch, heads, length, embed / heads]. */
static tensor *heads_of(const struct attention *a, tensor *x)
{
	x = x ? tensor_unflatten(x, 2, TENSOR_INTS(a->heads, a->embed / a->heads)) : NULL;
	return x ? tensor_transpose(x, 1, 2) : NULL;
}

/* Part i of the projection of x. */
static tensor *project(const struct attention *a, int i, tensor *x)
{
	const int64_t e = a->embed;
	tensor *b = a->joint_bias == tensor_none ? tensor_none :
						   tensor_narrow(a->joint_bias, 0, i * e, e);

	return tensor_linear(x, a->joint ? tensor_narrow(a->joint, 0, i * e, e) : a->w[i], b);
}

/* Projects the inputs; one product if they are the same tensor. */
static int project_all(struct attention *a, tensor **heads)
{
	tensor *in[] = { a->q, a->k, a->v }, *part[3];

	if (a->joint && a->q == a->k && a->k == a->v) {
		tensor *all = tensor_linear(a->q, a->joint, a->joint_bias);

		if (tensor_chunk(all, 3, 2, part, 3) < 0)
			return -EINVAL;
	} else {
		for (int i = 0; i < 3; i++)
			part[i] = project(a, i, in[i]);
	}
	for (int i = 0; i < 3; i++)
		heads[i] = heads_of(a, part[i]);
	return heads[0] && heads[1] && heads[2] ? 0 : -EINVAL;
}

/* ---- masks ---- */

/* A mask of scaled_dot_product_attention: bool is true where attention is allowed. */
static tensor *attention_mask(const struct attention *a)
{
	tensor *mask = a->o->mask ? *a->o->mask : tensor_none;

	if (!mask)
		return null_argument(a->key.type->op);
	if (mask == tensor_none)
		return mask;
	if (tensor_dim(mask) == 3) /* [batch * heads, ...] */
		mask = tensor_unflatten(mask, 0, TENSOR_INTS(tensor_size(a->q, 0), a->heads));
	return tensor_dtype(mask) == TENSOR_BOOL ? tensor_logical_not(mask) : mask;
}

/* Restricts a mask to where `allowed` is true. */
static tensor *restricted(tensor *mask, tensor *allowed)
{
	if (mask == tensor_none || !allowed)
		return allowed;
	if (tensor_dtype(mask) == TENSOR_BOOL)
		return tensor_logical_and(mask, allowed);
	return tensor_where_scalarother(allowed, mask, tensor_scalar_float(-INFINITY));
}

static tensor *padding_mask(const struct attention *a, tensor *mask)
{
	tensor *padding = *a->o->key_padding;

	if (tensor_absent(a->key.type->op, padding))
		return NULL;
	if (tensor_dtype(padding) != TENSOR_BOOL || tensor_dim(padding) != 2)
		return tensor_fail_null(EINVAL,
					"%s: key_padding must be bool [batch, keys], got %s",
					a->key.type->op, SHAPE_STR(padding));
	padding = tensor_unsqueeze(tensor_unsqueeze(tensor_logical_not(padding), 1), 1);
	return restricted(mask, padding);
}

/* The mask of all options; *causal remains set if the operator can do it alone. */
static tensor *whole_mask(const struct attention *a, bool *causal)
{
	tensor *mask = attention_mask(a);

	*causal = a->o->causal;
	if (mask && a->o->key_padding)
		mask = padding_mask(a, mask);
	if (mask && mask != tensor_none && *causal) {
		const int64_t l = tensor_size(a->q, 1), s = tensor_size(a->k, 1);
		tensor *all =
			tensor_ones(TENSOR_INTS(l, s), (tensor_options){ .dtype = TENSOR_BOOL,
									 .device = a->q->device });

		mask = restricted(mask, tensor_tril(all, 0));
		*causal = false;
	}
	return mask;
}

/* ---- the weights of attention ---- */

/* Number of weights from which a graph does not keep them: below, the memory is less than the time. */
enum { MANY_WEIGHTS = 1 << 16 };

static int weigh(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	const bool *causal = ctx;

	(void)nin, (void)nout;
	out[0] = tensor_scaled_dot_product_attention(in[0], in[1], in[2], in[3], 0, *causal);
	return out[0] ? 0 : -thread()->error.code;
}

/* Whether the weights of all heads are many, and more than the query. */
static bool has_many_weights(tensor *const *heads)
{
	const tensor *q = heads[0], *k = heads[1];

	return k->sizes[2] > q->sizes[3] && q->numel / q->sizes[3] >= MANY_WEIGHTS / k->sizes[2];
}

/* Whether a graph would keep the weights. Tensors of tensor_vmap() and forward mode have no checkpoints. */
static bool keeps_weights(tensor *const *heads)
{
	bool recorded = false;

	for (int i = 0; i < 3; i++) {
		if (heads[i]->keys & (FORWARD_BIT | BATCHED_BIT) || heads[i]->ext)
			return false;
		recorded |= tensor_requires_grad(heads[i]);
	}
	return recorded && tensor_is_grad_enabled();
}

/* One kernel that makes no matrix of weights. */
static tensor *weighted_by_kernel(tensor *const *heads, tensor *mask, bool causal)
{
	tensor *y, *sums;

	return tensor__attention(mask, TENSOR_LIST(heads[0], heads[1], heads[2]), causal,
				 TENSOR_NO_FLOAT, &y, &sums) < 0 ?
		       NULL :
		       y;
}

/* Many weights are not in memory after forward: computed by the kernel, or again in backward. */
static tensor *weighted(tensor *const *heads, tensor *mask, double dropout, bool causal)
{
	static bool yes = true, no = false;
	const bool many = !(dropout > 0) && has_many_weights(heads);
	tensor *y;

	if (many &&
	    attention_has_kernel(heads[0], heads[1], heads[2], mask == tensor_none ? NULL : mask))
		return weighted_by_kernel(heads, mask, causal);
	if (!many || !keeps_weights(heads))
		return tensor_scaled_dot_product_attention(heads[0], heads[1], heads[2], mask,
							   dropout, causal);
	if (tensor_checkpoint(weigh, causal ? &yes : &no, NULL,
			      TENSOR_LIST(heads[0], heads[1], heads[2], mask), &y, 1) < 0)
		return NULL;
	return y;
}

/* ---- the layer ---- */

static tensor *output(const struct attention *a, tensor *y, int dims)
{
	y = tensor_flatten(tensor_transpose(y, 1, 2), 2, 3);
	y = tensor_module_linear_opt(a->layer, "out_proj", y, a->embed,
				     (struct tensor_linear_options){ .no_bias = a->o->no_bias });
	if (dims == 2)
		return tensor_squeeze_dim(y, 0);
	return a->o->batch_first ? y : tensor_transpose(y, 0, 1);
}

/* The bias of out_proj is zero at first, unlike that of another linear layer. */
static int zero_output_bias(const struct attention *a)
{
	double zero = 0;

	return a->o->no_bias || layer_parameter(a->layer, &a->key, "out_proj.bias",
						TENSOR_INTS(a->embed), layer_init_value, &zero) ?
		       0 :
		       -EINVAL;
}

/* Makes out_proj.weight before the bias, which is PyTorch's order. */
static int output_parameters(const struct attention *a)
{
	double bound = layer_bound((double)a->embed);

	if (!layer_parameter(a->layer, &a->key, "out_proj.weight", TENSOR_INTS(a->embed, a->embed),
			     layer_init_uniform, &bound))
		return -EINVAL;
	return zero_output_bias(a);
}

static tensor *attention(struct attention *a, tensor_module *m, const char *name, tensor *query,
			 tensor *key, tensor *value)
{
	const bool same = query == key && key == value;
	tensor *heads[3], *mask, *y;
	bool causal;

	a->layer = layer_module(m, name, &a->key);
	if (!a->layer || projections(a) < 0 || output_parameters(a) < 0)
		return NULL;
	a->q = batch_first(a, query);
	a->k = same ? a->q : batch_first(a, key);
	a->v = same ? a->q : batch_first(a, value);
	if (!a->q || !a->k || !a->v || project_all(a, heads) < 0)
		return NULL;
	mask = whole_mask(a, &causal);
	if (!mask)
		return NULL;
	y = weighted(heads, mask, a->layer->training ? a->o->dropout : 0, causal);
	return y ? output(a, y, tensor_dim(query)) : NULL;
}

static int check(struct attention *a, tensor *q, tensor *k, tensor *v)
{
	const char *op = attention_type.op;
	const int dims = tensor_dim(q);

	if ((dims != 2 && dims != 3) || tensor_dim(k) != dims || tensor_dim(v) != dims)
		return tensor_fail(
			EINVAL,
			"%s: query, key and value must have 2 or 3 dimensions, got %s, %s, %s", op,
			SHAPE_STR(q), SHAPE_STR(k), SHAPE_STR(v));
	if (a->heads < 1 || a->embed % a->heads || !a->embed)
		return tensor_fail(EINVAL, "%s: %lld features in %lld heads", op,
				   (long long)a->embed, (long long)a->heads);
	if (!(a->o->dropout >= 0 && a->o->dropout <= 1))
		return tensor_fail(EINVAL, "%s: dropout must be 0 to 1, got %g", op, a->o->dropout);
	return 0;
}

TENSOR_EXPORT tensor *tensor_module_multi_head_attention_opt(tensor_module *m, const char *name,
							     tensor *q, tensor *k, tensor *v,
							     int64_t heads,
							     struct tensor_attention_options o)
{
	struct attention a = { .o = &o, .heads = heads };
	struct tensor_scope_guard scope;

	if (layer_absent(attention_type.op, m, q) || tensor_absent(attention_type.op, k) ||
	    tensor_absent(attention_type.op, v))
		return NULL;
	a.embed = tensor_size(q, -1);
	a.kdim = tensor_size(k, -1);
	a.vdim = tensor_size(v, -1);
	if (check(&a, q, k, v) < 0)
		return NULL;
	a.key = (struct layer_key){ .type = &attention_type,
				    .d = { o.dropout },
				    .i = { a.embed, a.kdim, a.vdim, heads, !o.no_bias,
					   o.batch_first } };
	scope = tensor_scope_enter();
	return layer_leave(&scope, attention(&a, m, name, q, k, v));
}
